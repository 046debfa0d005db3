"""What a power failure leaves of a disk."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tools.crash_points.operations import (
    PAGE_BYTES,
    SECTOR_BYTES,
    FolderMade,
    FolderSynced,
    Named,
    Operation,
    Renamed,
    Rewritten,
    SectorWritten,
    Sized,
    Synced,
    Unlinked,
)

_SECTORS_OF_PAGE = PAGE_BYTES // SECTOR_BYTES


@dataclass(frozen=True, slots=True)
class ImageFile:
    """A file that survived."""

    data: bytes
    is_mapped: bool
    mtime_ms: int


@dataclass(frozen=True, slots=True)
class Image:
    """The files and folders that survived a power failure."""

    files: dict[Path, ImageFile]
    folders: set[Path]


@dataclass(slots=True)
class _File:
    """The durable state of a file, and what is not durable yet.

    Attributes:
        data: durable content.
        size: size in memory; ``len(data)`` is the durable size.
        sectors: sectors written since the last sync, in order.
        versions: whole contents written since the last sync.
    """

    is_mapped: bool
    mtime_ms: int
    data: bytes = b""
    size: int = 0
    sectors: list[tuple[int, bytes]] = field(default_factory=list)
    versions: list[bytes] = field(default_factory=list)


class DiskState:
    """The disk after a prefix of a journal: what is durable, and what the system may have written already.

    A sync makes a file's content and size durable. Only a sync of its folder makes a name durable. The
    changes of one folder (names, sizes) become durable in their order, as in a journalling file system;
    those of different folders, and the pages and sectors of files, in any order.
    """

    def __init__(self, image: Image) -> None:
        self._names: dict[Path, int] = {}
        self._files: dict[int, _File] = {}
        self._folders = set(image.folders)
        self._pending: dict[Path, list[Operation]] = {}
        for number, (path, kept) in enumerate(image.files.items()):
            self._names[path] = number
            self._files[number] = _File(kept.is_mapped, kept.mtime_ms, kept.data, len(kept.data))

    def apply(self, operation: Operation, now_ms: int = 0) -> None:
        """Continue with the next operation of the journal."""
        match operation:
            case FolderSynced(path):
                for pending in self._pending.pop(path, ()):
                    self._settle(pending, self._names, self._folders, None)
            case SectorWritten(_, number, sector, data):
                self._files[number].sectors.append((sector, data))
            case Rewritten(_, number, data):
                self._files[number].versions.append(data)
            case Synced(_, number):
                self._sync(self._files[number])
            case Named(path, number, is_mapped):
                self._files[number] = _File(is_mapped, now_ms)
                self._pending.setdefault(path.parent, []).append(operation)
            case Sized(path, number, size):
                self._files[number].size = size
                self._pending.setdefault(path.parent, []).append(operation)
            case FolderMade(path) | Renamed(path, _) | Unlinked(path):
                self._pending.setdefault(path.parent, []).append(operation)

    @staticmethod
    def _sync(file: _File) -> None:
        if file.is_mapped:
            data = bytearray(file.data.ljust(file.size, b"\0"))
            for sector, content in file.sectors:
                data[sector * SECTOR_BYTES : sector * SECTOR_BYTES + len(content)] = content
            file.data = bytes(data)
        elif file.versions:
            file.data = file.versions[-1]
        file.sectors.clear()
        file.versions.clear()

    def _settle(
        self,
        operation: Operation,
        names: dict[Path, int],
        folders: set[Path],
        sizes: dict[int, int] | None,
    ) -> None:
        """Make a change of a folder durable: in this state, or in an image if ``sizes`` is given."""
        match operation:
            case Named(path, number, _):
                names[path] = number
            case Sized(_, number, size) if sizes is not None:
                sizes[number] = size
            case Sized(_, number, size):
                self._files[number].data = self._files[number].data.ljust(size, b"\0")
            case Renamed(path, target):
                names[target] = names.pop(path)
            case Unlinked(path):
                names.pop(path, None)
            case FolderMade(path):
                folders.add(path)

    def cut(self, chance: Random) -> Image:
        """Return one of the disks that a power failure now may leave."""
        names, folders, sizes = dict(self._names), set(self._folders), dict[int, int]()
        for operations in self._pending.values():
            count = chance.choice((0, len(operations), chance.randint(0, len(operations))))
            for operation in operations[:count]:
                self._settle(operation, names, folders, sizes)
        files = {}
        for path, number in names.items():
            if all(folder in folders for folder in path.parents):
                file = self._files[number]
                data = self._surviving(file, max(sizes.get(number, 0), len(file.data)), chance)
                files[path] = ImageFile(data, file.is_mapped, file.mtime_ms)
        reachable = {folder for folder in folders if all(parent in folders for parent in folder.parents)}
        return Image(files, reachable)

    @staticmethod
    def _surviving(file: _File, size: int, chance: Random) -> bytes:
        if file.versions:
            return _torn(file.data, file.versions, chance)
        if not file.sectors or not size:
            return file.data.ljust(size, b"\0")
        return _mixed(file, size, chance)


def _torn(durable: bytes, versions: list[bytes], chance: Random) -> bytes:
    """Return what may be left of a small file that is written as a whole."""
    newest = chance.choice(versions)
    kind = chance.randrange(5)
    if kind == 0:
        return durable
    if kind == 1:
        return newest
    if kind == 2:
        return newest[: chance.randint(0, len(newest))]
    if kind == 3:
        return bytes(len(newest))
    start = chance.randrange(0, len(newest) + 1, SECTOR_BYTES)
    end = min(start + SECTOR_BYTES, len(newest))
    return newest[:start] + bytes(end - start) + newest[end:]


def _mixed(file: _File, size: int, chance: Random) -> bytes:
    """Return durable content with a choice of the writes since; each page or sector stops at its own time."""
    data = bytearray(file.data.ljust(size, b"\0"))
    kind = chance.randrange(4)
    if kind == 0:
        return bytes(data)
    unit = _SECTORS_OF_PAGE if kind == 2 else 1
    groups: dict[int, list[tuple[int, bytes]]] = {}
    for sector, content in file.sectors:
        groups.setdefault(sector // unit, []).append((sector, content))
    for writes in groups.values():
        count = len(writes) if kind == 1 else chance.choice((0, len(writes), chance.randint(0, len(writes))))
        for sector, content in writes[:count]:
            start = sector * SECTOR_BYTES
            data[start : start + len(content)] = content
    return bytes(data)
