"""The store's interface to the file system; tests replace it to make calls fail."""

from __future__ import annotations

import errno
import mmap
import os
import resource
import shutil
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property, wraps
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, TypeVar, cast

from rewindmq.broker.store.files.lock import StoreLock
from rewindmq.broker.store.files.prefault import prefault
from rewindmq.broker.store.files.refused_writes import watch_writes
from rewindmq.broker.store.files.unsynced_names import UnsyncedNames
from rewindmq.protocol.files.copying import copy_file
from rewindmq.protocol.files.private import FILE_MODE, make_private_folder, open_private
from rewindmq.protocol.files.regular import LOST_AND_FOUND, open_regular
from rewindmq.protocol.limits import MAPPED_FILES_SHARE

# Linux gives a process 65,530 mappings (vm.max_map_count); libraries and memory need some of them.
_MAX_MAPPINGS: Final = 16_384
_REWRITE_BYTES: Final = 1_048_576

Call = TypeVar("Call", bound=Callable[..., Any])


def _names_path(call: Call) -> Call:
    """Add the path to errors of calls that know only a descriptor or a mapping."""

    @wraps(call)
    def named(disk: OsDisk, path: Path, *args: Any) -> Any:
        try:
            return call(disk, path, *args)
        except OSError as error:
            if error.filename is None:
                error.filename = str(path)
            raise

    return cast("Call", named)


class DiskEntry(NamedTuple):
    """An entry of a folder. A pipe, a device, a socket and a link to one or to nothing is neither of both.

    Attributes:
        size: size in bytes, of a file.
    """

    path: Path
    is_file: bool
    size: int
    is_folder: bool


class Disk(Protocol):
    """The store's file system calls. Every method may raise OSError, with the path as its ``filename``."""

    def lock(self, path: Path) -> Callable[[], None]:
        """Lock the folder of this file against other stores; return the function that unlocks it.

        Raises:
            StoreError: another store holds the lock, or the file cannot be created.
        """

    def make_folder(self, path: Path) -> None:
        """Make a folder and its parents durably; do nothing if it exists."""

    def list_folder(self, path: Path) -> list[DiskEntry]:
        """Return a folder's entries by name; empty if the folder is missing.

        The folder ``lost+found`` of a mounted file system is not among them.
        """

    def exists(self, path: Path) -> bool:
        """Return True if the path exists."""

    def is_folder(self, path: Path) -> bool:
        """Return True if the path is a folder."""

    def read(self, path: Path) -> bytes | None:
        """Return the content of a small file; None if it is missing."""

    def touch(self, path: Path) -> None:
        """Create an empty file durably, unless it exists."""

    def create(self, path: Path, size: int) -> None:
        """Create a sparse file of exactly ``size`` bytes, and missing folders; ``sync`` keeps them."""

    def map(self, path: Path, size: int) -> mmap.mmap:
        """Return a shared, writable mapping of the whole file.

        The file system may refuse a write to it later: see ``refused_writes``.
        """

    def map_to_read(self, path: Path, size: int) -> mmap.mmap:
        """Return a mapping of the whole file that cannot be written."""

    def allocate(self, path: Path, offset: int, length: int) -> None:
        """Allocate disk blocks, so that a full disk refuses them here, and not a write to a mapping."""

    def prefault(self, path: Path, start: int, end: int) -> None:
        """Bring a part of a file into memory, so that writing to its mapping does not wait.

        Called on worker threads; never raises OSError.
        """

    def sync(self, path: Path) -> None:
        """Make the file durable: its name, and its content with writes through mappings.

        Called on worker threads.
        """

    def sync_folder(self, path: Path) -> None:
        """Make the names in a folder durable."""

    def rewrite(self, path: Path, start: int, end: int) -> None:
        """Write the bytes from ``start`` to ``end`` again, unchanged, so that the next ``sync`` covers them.

        They must not change meanwhile. Called on worker threads.
        """

    def write(self, path: Path, data: bytes) -> None:
        """Write a small file as a whole, durably."""

    def replace(self, source: Path, target: Path) -> None:
        """Rename atomically and durably."""

    def remove(self, path: Path) -> None:
        """Remove a file; do nothing if it is missing."""

    def unshare(self, path: Path) -> bool:
        """Replace a file that has further names (hard links of a snapshot) by a copy; return True if it had.

        Call it before a file that was full is written again. Mappings of the file show the old one.
        """

    def mtime_ms(self, path: Path) -> int:
        """Return the modification time, ms."""

    def set_mtime_ms(self, path: Path, mtime_ms: int) -> None:
        """Set the modification time, ms."""

    def data_beyond(self, path: Path, offset: int) -> int:
        """Return the offset of the first byte of data, not a hole, from ``offset`` on; -1 without any."""

    def used_ratio(self, path: Path) -> float:
        """Return the used part of the file system, 0 to 1."""

    def capacity(self, path: Path) -> tuple[int, int]:
        """Return the bytes of the file system, and those that are free for this process."""

    def physical_memory(self) -> int:
        """Return the machine's memory in bytes."""

    def max_mappings(self) -> int:
        """Return how many files the store may map at once; each holds a descriptor."""


class OsDisk:
    """The operating system's file system. What it creates is private to its owner (``protocol/files``)."""

    @cached_property
    def _new(self) -> UnsyncedNames:
        return UnsyncedNames()

    def lock(self, path: Path) -> Callable[[], None]:
        lock = StoreLock(path)
        lock.acquire()
        return lock.release

    def make_folder(self, path: Path) -> None:
        for folder in self._make_folders(path):
            # The store's own folder may be in a folder that this user may not read.
            with suppress(PermissionError):
                self.sync_folder(folder.parent)

    @staticmethod
    def _make_folders(path: Path) -> list[Path]:
        """Make a folder and its missing parents; return the new folders, the innermost first."""
        missing = []
        for folder in (path, *path.parents):
            if folder.exists():
                break
            missing.append(folder)
        make_private_folder(path)
        return missing

    def list_folder(self, path: Path) -> list[DiskEntry]:
        if not path.exists():
            return []
        entries = []
        for entry in sorted(path.iterdir()):
            is_file = entry.is_file()
            size = entry.stat().st_size if is_file else 0
            entries.append(DiskEntry(entry, is_file, size, entry.is_dir()))
        return [entry for entry in entries if entry.path.name != LOST_AND_FOUND or not entry.is_folder]

    def exists(self, path: Path) -> bool:
        return path.exists()

    def is_folder(self, path: Path) -> bool:
        return path.is_dir()

    def read(self, path: Path) -> bytes | None:
        if not path.exists():
            return None
        with open_regular(path) as file:
            return file.read()

    def touch(self, path: Path) -> None:
        if not path.exists():
            path.touch(FILE_MODE)
            self.sync_folder(path.parent)

    @_names_path
    def create(self, path: Path, size: int) -> None:
        # The folders are noted even if the file cannot be created: the next attempt finds them there.
        for folder in self._make_folders(path.parent):
            self._new.add(folder)
        with open_private(path, "xb") as file:
            file.truncate(size)
        self._new.add(path)

    @_names_path
    def map(self, path: Path, size: int) -> mmap.mmap:
        with path.open("r+b") as file:
            mapping = mmap.mmap(file.fileno(), size)
            watch_writes(mapping, path, os.fstat(file.fileno()).st_ino)
            return mapping

    @_names_path
    def map_to_read(self, path: Path, size: int) -> mmap.mmap:
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)

    @_names_path
    def allocate(self, path: Path, offset: int, length: int) -> None:
        with path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), offset, length)

    def prefault(self, path: Path, start: int, end: int) -> None:
        prefault(path, start, end)

    @_names_path
    def sync(self, path: Path) -> None:
        with path.open("rb") as file:
            os.fdatasync(file.fileno())
        names = self._new.take(path)
        try:
            for name in names:
                self.sync_folder(name.parent)
        except OSError:
            for name in names:
                self._new.add(name)
            raise

    @_names_path
    def sync_folder(self, path: Path) -> None:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    @_names_path
    def rewrite(self, path: Path, start: int, end: int) -> None:
        with path.open("r+b") as file:
            for at in range(start, end, _REWRITE_BYTES):
                data = os.pread(file.fileno(), min(end - at, _REWRITE_BYTES), at)
                if os.pwrite(file.fileno(), data, at) != min(end - at, _REWRITE_BYTES):
                    raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))

    @_names_path
    def write(self, path: Path, data: bytes) -> None:
        with open_private(path, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    @_names_path
    def replace(self, source: Path, target: Path) -> None:
        source.replace(target)
        self.sync_folder(target.parent)

    def remove(self, path: Path) -> None:
        self._new.drop(path)
        path.unlink(missing_ok=True)

    def unshare(self, path: Path) -> bool:
        if path.stat().st_nlink == 1:
            return False
        # Beside the folder: one in it would be taken for a file of the store.
        copy = path.parent.with_name(f"{path.parent.name}.{path.name}.tmp")
        copy.unlink(missing_ok=True)
        copy_file(path, copy)
        self.sync(copy)
        self.replace(copy, path)
        return True

    def mtime_ms(self, path: Path) -> int:
        return path.stat().st_mtime_ns // 1_000_000

    def set_mtime_ms(self, path: Path, mtime_ms: int) -> None:
        os.utime(path, ns=(mtime_ms * 1_000_000, mtime_ms * 1_000_000))

    def data_beyond(self, path: Path, offset: int) -> int:
        with path.open("rb") as file:
            try:
                return os.lseek(file.fileno(), offset, os.SEEK_DATA)
            except OSError as error:
                # If the file system does not report holes, every byte counts as data.
                return -1 if error.errno == errno.ENXIO else offset

    def used_ratio(self, path: Path) -> float:
        usage = shutil.disk_usage(path)
        # As in df and RocketMQ, blocks reserved for root are not part of the total.
        entire = usage.used + usage.free
        return usage.used / entire if entire else 0.0

    def capacity(self, path: Path) -> tuple[int, int]:
        usage = shutil.disk_usage(path)
        return usage.total, usage.free

    def physical_memory(self) -> int:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")

    def max_mappings(self) -> int:
        soft_limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft_limit == resource.RLIM_INFINITY:
            return _MAX_MAPPINGS
        # Connections need the larger part of the descriptors.
        return max(16, min(_MAX_MAPPINGS, soft_limit // MAPPED_FILES_SHARE))
