"""Simulated disk: keeps a store's files in memory, one set per host."""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from rewindmq.broker.store import StoreError
from rewindmq.broker.store.files.disk import DiskEntry

_MEMORY_BYTES: Final = 16 << 30
_MAX_MAPPINGS: Final = 4_096
_USED_RATIO: Final = 0.1
_CAPACITY: Final = 1 << 30


class SimFile:
    """One file.

    Attributes:
        data: the content; for a mapped file, its mapping.
        synced: the content that survives a power failure; None if the file was never synced.
    """

    __slots__ = ("data", "mtime_ms", "synced")

    def __init__(self, data: bytes | mmap.mmap, mtime_ms: int) -> None:
        self.data = data
        self.mtime_ms = mtime_ms
        self.synced: bytes | None = None


class SimDisk:
    """Implements the store's ``Disk`` in memory that is private to the process, so a fork has its own copy.

    Writing never fails. A file's name is durable at once. Its content is durable once it is written as a
    whole or synced.

    Args:
        now_ms: clock for modification times.
        remembers_synced: keep synced content for ``lose_power``; each sync copies the file.
    """

    def __init__(self, now_ms: Callable[[], int], *, remembers_synced: bool = False) -> None:
        self._now_ms = now_ms
        self._remembers_synced = remembers_synced
        self._files: dict[Path, SimFile] = {}
        self._folders: set[Path] = set()
        self._locked: set[Path] = set()

    def files(self) -> list[Path]:
        """Return the paths of all files, sorted."""
        return sorted(self._files)

    def release_locks(self) -> None:
        """Release all locks, as an operating system does when their process ends."""
        self._locked.clear()

    def lose_power(self) -> None:
        """Reset every mapped file to its last synced content; to zeros if it was never synced."""
        assert self._remembers_synced, "made without remembers_synced"
        for file in self._files.values():
            if isinstance(file.data, mmap.mmap):
                size = len(file.data)
                file.data = private_map(size)
                file.data[:] = file.synced if file.synced is not None else bytes(size)
        self.release_locks()

    # The interface ``Disk``.

    def lock(self, path: Path) -> Callable[[], None]:
        if path in self._locked:
            raise StoreError(f"the store {path.parent} is in use by another broker (its lock file is locked)")
        self._locked.add(path)
        self._files.setdefault(path, SimFile(b"lock", self._now_ms()))
        return lambda: self._locked.discard(path)

    def make_folder(self, path: Path) -> None:
        if path not in self._folders:
            self._folders.update((path, *path.parents))

    def list_folder(self, path: Path) -> list[DiskEntry]:
        entries = [
            DiskEntry(known, True, len(file.data), False)
            for known, file in self._files.items()
            if known.parent == path
        ]
        entries += [
            DiskEntry(known, False, 0, True) for known in self._folders if known.parent == path != known
        ]
        return sorted(entries)

    def exists(self, path: Path) -> bool:
        return path in self._files

    def is_folder(self, path: Path) -> bool:
        return path in self._folders

    def read(self, path: Path) -> bytes | None:
        file = self._files.get(path)
        return None if file is None else file.data[:]

    def touch(self, path: Path) -> None:
        self._files.setdefault(path, SimFile(b"", self._now_ms()))

    def create(self, path: Path, size: int) -> None:
        if path in self._files:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
        self.make_folder(path.parent)
        self._files[path] = SimFile(private_map(size), self._now_ms())

    def map(self, path: Path, size: int) -> mmap.mmap:
        mapping = self._file(path).data
        assert isinstance(mapping, mmap.mmap), path
        assert len(mapping) == size, path
        return mapping

    def map_to_read(self, path: Path, size: int) -> mmap.mmap:
        return self.map(path, size)

    def allocate(self, path: Path, offset: int, length: int) -> None:
        """Do nothing: a simulated disk is never full."""

    def prefault(self, path: Path, start: int, end: int) -> None:
        """Do nothing: the content is in memory."""

    def sync(self, path: Path) -> None:
        file = self._file(path)
        if self._remembers_synced:
            file.synced = file.data[:]

    def sync_folder(self, path: Path) -> None:
        """Do nothing: a name is durable at once."""

    def rewrite(self, path: Path, start: int, end: int) -> None:
        """Do nothing: a simulated sync never fails, so none skips bytes."""

    def write(self, path: Path, data: bytes) -> None:
        self._files[path] = SimFile(data, self._now_ms())

    def replace(self, source: Path, target: Path) -> None:
        self._files[target] = self._file(source)
        del self._files[source]

    def remove(self, path: Path) -> None:
        self._files.pop(path, None)

    def unshare(self, path: Path) -> bool:
        """Do nothing: a simulated file has one name."""
        return False

    def mtime_ms(self, path: Path) -> int:
        return self._file(path).mtime_ms

    def set_mtime_ms(self, path: Path, mtime_ms: int) -> None:
        self._file(path).mtime_ms = mtime_ms

    def data_beyond(self, path: Path, offset: int) -> int:
        data = self._file(path).data
        rest = data[offset:].lstrip(b"\0")
        return len(data) - len(rest) if rest else -1

    def used_ratio(self, path: Path) -> float:
        return _USED_RATIO

    def capacity(self, path: Path) -> tuple[int, int]:
        return _CAPACITY, int(_CAPACITY * (1 - _USED_RATIO))

    def physical_memory(self) -> int:
        return _MEMORY_BYTES

    def max_mappings(self) -> int:
        return _MAX_MAPPINGS

    def _file(self, path: Path) -> SimFile:
        try:
            return self._files[path]
        except KeyError:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path)) from None


class _SimMapping(mmap.mmap):
    """Memory in the place of a file's mapping."""

    def madvise(self, option: int, start: int = 0, length: int = 0) -> None:
        """Do nothing: a file keeps what its mapping gives up (MADV_DONTNEED), but this memory would not."""


def private_map(size: int) -> mmap.mmap:
    """Return a mapping of zeros that a fork does not share."""
    return _SimMapping(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
