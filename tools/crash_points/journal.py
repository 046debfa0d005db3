"""A simulated disk that records every operation, for a power failure after any of them."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from pathlib import Path
from typing import Final

from rewindmq.broker.store.files.unsynced_names import UnsyncedNames
from rewindmq.race.sim import SimDisk
from rewindmq.race.sim.disk import SimFile, private_map
from tools.crash_points.image import Image
from tools.crash_points.operations import (
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

_ROOT: Final = Path("/")


class JournalDisk(SimDisk):
    """Records operations. A mapping's writes are found by comparison at the next operation.

    Args:
        image: the files at the beginning, all durable.
        is_dropped: operations for which it returns True take effect but are not recorded, so a sync is lost:
            a fault that the check has to find.

    Attributes:
        journal: the operations so far.
    """

    def __init__(
        self,
        now_ms: Callable[[], int],
        image: Image | None = None,
        *,
        is_dropped: Callable[[Operation], bool] = lambda operation: False,
    ) -> None:
        super().__init__(now_ms)
        self.journal: list[Operation] = []
        self._is_dropped = is_dropped
        self._new = UnsyncedNames()
        self._numbers: dict[SimFile, int] = {}
        # Content of mapped files when they were last compared.
        self._known: dict[SimFile, bytes] = {}
        self._folders.add(_ROOT)
        self.image = image or Image({}, {_ROOT})
        self._load(self.image)

    def _load(self, image: Image) -> None:
        self._folders |= image.folders
        for path, kept in image.files.items():
            data: bytes | mmap.mmap = kept.data
            if kept.is_mapped and kept.data:
                data = private_map(len(kept.data))
                data[:] = kept.data
            file = self._files[path] = SimFile(data, kept.mtime_ms)
            self._number(file)
            self._known[file] = kept.data

    def note(self) -> None:
        """Record what was written to mapped files since the last operation."""
        for path, file in self._files.items():
            if isinstance(file.data, mmap.mmap):
                data, known = file.data[:], self._known[file]
                if data != known:
                    self._note_file(path, file, data, known)

    def _note_file(self, path: Path, file: SimFile, data: bytes, known: bytes) -> None:
        self._known[file] = data
        number = self._numbers[file]
        for start in range(0, len(data), SECTOR_BYTES):
            sector = data[start : start + SECTOR_BYTES]
            if sector != known[start : start + SECTOR_BYTES]:
                self._add(SectorWritten(path, number, start // SECTOR_BYTES, sector))

    def _add(self, operation: Operation) -> None:
        if not self._is_dropped(operation):
            self.journal.append(operation)

    def _number(self, file: SimFile) -> int:
        return self._numbers.setdefault(file, len(self._numbers))

    def _name(self, path: Path, file: SimFile, *, is_mapped: bool) -> int:
        number = self._number(file)
        self._add(Named(path, number, is_mapped))
        return number

    # Operations that change the disk.

    def lock(self, path: Path) -> Callable[[], None]:
        self.note()
        is_new = path not in self._files
        unlock = super().lock(path)
        if is_new:
            self._add(Rewritten(path, self._name(path, self._files[path], is_mapped=False), b"lock"))
        return unlock

    def make_folder(self, path: Path) -> None:
        self.note()
        for folder in reversed((path, *path.parents)):
            if folder not in self._folders:
                self._folders.add(folder)
                self._add(FolderMade(folder))
                self._add(FolderSynced(folder.parent))

    def touch(self, path: Path) -> None:
        self.note()
        if path not in self._files:
            super().touch(path)
            self._name(path, self._files[path], is_mapped=False)
            self._add(FolderSynced(path.parent))

    def create(self, path: Path, size: int) -> None:
        self.note()
        for folder in reversed(path.parents):
            if folder not in self._folders:
                self._folders.add(folder)
                self._add(FolderMade(folder))
                self._new.add(folder)
        super().create(path, size)
        file = self._files[path]
        self._known[file] = bytes(size)
        self._add(Sized(path, self._name(path, file, is_mapped=True), size))
        self._new.add(path)

    def sync(self, path: Path) -> None:
        self.note()
        super().sync(path)
        self._add(Synced(path, self._numbers[self._files[path]]))
        for name in self._new.take(path):
            self._add(FolderSynced(name.parent))

    def sync_folder(self, path: Path) -> None:
        self.note()
        self._add(FolderSynced(path))

    def write(self, path: Path, data: bytes) -> None:
        self.note()
        file = self._files.get(path)
        if file is None:
            super().write(path, data)
            file = self._files[path]
            self._name(path, file, is_mapped=False)
        else:
            file.data = data
        number = self._numbers[file]
        self._add(Rewritten(path, number, data))
        self._add(Synced(path, number))

    def replace(self, source: Path, target: Path) -> None:
        self.note()
        super().replace(source, target)
        self._add(Renamed(source, target))
        self._add(FolderSynced(target.parent))

    def remove(self, path: Path) -> None:
        self.note()
        if path in self._files:
            super().remove(path)
            self._new.drop(path)
            self._add(Unlinked(path))
