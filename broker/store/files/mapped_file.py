"""Fixed-size files named after the position of their first byte, mapped on first use.

Specification: docs/spec/store.md 1.2.
"""

from __future__ import annotations

import errno
import logging
import mmap
import re
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from rewindmq.broker.store.errors import StoreError
from rewindmq.broker.store.files.disk import Disk, DiskEntry
from rewindmq.broker.store.files.refused_writes import REFUSED_WRITES

_log = logging.getLogger(__name__)
_NAME: Final = re.compile(r"[0-9]{20}")
# Such a file is still read.
_NOT_WRITABLE: Final = (errno.EROFS, errno.EPERM, errno.EACCES)
# One in this many mappings of a full cache is idle: taken from its file, but not unmapped yet.
_IDLE_SHARE: Final = 4
# Pages of a deleted file that are unmapped at once: well below 1 ms.
_UNMAPPED_BYTES: Final = 16_777_216


def file_name(base: int) -> str:
    """Return the base as 20 decimal digits."""
    return f"{base:020d}"


class MmapCache:
    """Limits how many files are mapped at once; approximately evicts the least recently used mapping.

    Reads and writes use ``MappedFile.map`` directly, so the cache does not see them. When the cache is full,
    it sets ``map`` to None in the files that were mapped first, but keeps their mappings for a while. If such
    a file is used again, it gets its mapping back at the cost of two dictionary operations, and becomes the
    newest. Otherwise the cache unmaps it. There is no cost until the cache is full.
    """

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._limit = disk.max_mappings()
        # Both in order of insertion; an ordered dictionary finds its first entry in constant time.
        self._in_use: OrderedDict[MappedFile, mmap.mmap] = OrderedDict()
        self._idle: OrderedDict[MappedFile, mmap.mmap] = OrderedDict()

    def map(self, file: MappedFile) -> mmap.mmap:
        """Map ``file``; an evicted mapping stays valid for code that still holds it."""
        mapping = self._idle.pop(file, None)
        if mapping is None:
            if len(self._in_use) + len(self._idle) >= self._limit:
                self._make_room()
            mapping = self._map(file)
        self._in_use[file] = mapping
        return mapping

    def _map(self, file: MappedFile) -> mmap.mmap:
        try:
            return self._disk.map(file.path, file.size)
        except OSError as error:
            if error.errno not in _NOT_WRITABLE:
                raise
        file.refuse_writes()
        return self._disk.map_to_read(file.path, file.size)

    def map_again(self, file: MappedFile) -> mmap.mmap:
        """Map ``file`` for writing, in place of a mapping that cannot be written.

        Raises:
            OSError: the file cannot be written; it keeps the mapping that it has.
        """
        mapping = self._disk.map(file.path, file.size)
        self.release(file)
        self._in_use[file] = mapping
        return mapping

    def _make_room(self) -> None:
        while self._in_use and len(self._idle) <= self._limit // _IDLE_SHARE:
            file, mapping = self._in_use.popitem(last=False)
            file.map = None
            self._idle[file] = mapping
        file, _ = self._idle.popitem(last=False)
        file.give_up_map()

    def release(self, file: MappedFile) -> mmap.mmap | None:
        """Drop one file's mapping; the last reference to it, if there was one, is returned."""
        file.map = None
        return self._in_use.pop(file, None) or self._idle.pop(file, None)

    def release_all(self) -> None:
        """Drop every mapping."""
        for file in self._in_use:
            file.map = None
        self._in_use.clear()
        self._idle.clear()


class MappedFile:
    """One file of a ``MappedFileQueue``.

    Attributes:
        base: position of the file's first byte in the queue of files.
        map: the mapping; if it is None, call ``open_map``.
        allocated: bytes from the front known to have disk blocks.
        mtime_ms: time of the last write, ms; ``save_mtime`` passes it to the file system.
        on_map_given_up: called when the cache evicts the mapping.
    """

    __slots__ = (
        "_is_suspect",
        "_is_written_in_vain",
        "_pool",
        "_saved_mtime_ms",
        "allocated",
        "base",
        "map",
        "mtime_ms",
        "on_map_given_up",
        "path",
        "size",
    )

    def __init__(self, pool: MmapCache, path: Path, base: int, size: int, mtime_ms: int) -> None:
        self._pool = pool
        self.path = path
        self.base = base
        self.size = size
        self.mtime_ms = mtime_ms
        self.map: mmap.mmap | None = None
        self.allocated = 0
        self.on_map_given_up: Callable[[], None] | None = None
        self._saved_mtime_ms = -1
        self._is_suspect = False
        self._is_written_in_vain = False

    def open_map(self) -> mmap.mmap:
        """Return the mapping, made on first use. Raise OSError if mapping fails."""
        if self.map is None:
            self.map = self._pool.map(self)
        return self.map

    def open_for_writing(self) -> mmap.mmap:
        """Return the mapping; map the file again if its mapping cannot be written.

        Raises:
            OSError: mapping fails; reads use the mapping that there is.
        """
        mapping = self.open_map()
        if self._is_written_in_vain:
            mapping = self.map = self._pool.map_again(self)
            self._is_written_in_vain = False
        return mapping

    def refuse_writes(self) -> None:
        """Note that writes to the mapping do not reach the file: the next writer must claim blocks first."""
        self._is_written_in_vain = True
        self.allocated = 0

    def unshare(self, disk: Disk) -> None:
        """Ensure that no snapshot has this file, before it is written. Raise OSError on failure."""
        if disk.unshare(self.path):
            self._pool.release(self)

    def give_up_map(self) -> None:
        """Drop the mapping to make room for another."""
        self.map = None
        if self.on_map_given_up is not None:
            self.on_map_given_up()

    def end_at(self, mtime_ms: int) -> None:
        """End writing; set the modification time again, because the last write changed it."""
        self.mtime_ms = mtime_ms
        self._saved_mtime_ms = -1

    @property
    def is_suspect(self) -> bool:
        """True if the last ``sync`` failed, so that what is on disk is unknown."""
        return self._is_suspect

    def sync(self, disk: Disk, start: int, end: int) -> None:
        """Make the bytes from ``start`` to ``end`` durable; may run on a worker thread.

        After a failure the system may count pages as written that are not, and a second sync would skip them.
        So the next call writes the bytes again first. They must not change meanwhile.

        Args:
            start: everything before it is durable.

        Raises:
            OSError: the disk fails; how much of the bytes is durable is unknown.
        """
        if self._is_suspect:
            disk.rewrite(self.path, start, end)
        self._is_suspect = True
        disk.sync(self.path)
        self._is_suspect = False

    def save_mtime(self, disk: Disk) -> None:
        """Set the file's modification time to its last write; searches by time and retention use it."""
        if self.mtime_ms != self._saved_mtime_ms:
            # This may run on a worker thread after retention has deleted the file.
            with suppress(FileNotFoundError):
                disk.set_mtime_ms(self.path, self.mtime_ms)
            self._saved_mtime_ms = self.mtime_ms


class DroppedFile:
    """A file that is not used any more, and not deleted yet.

    Attributes:
        file: the file; it is no part of its ``MappedFileQueue``.
    """

    def __init__(self, file: MappedFile, pool: MmapCache, disk: Disk) -> None:
        self.file = file
        self._mapping = pool.release(file)
        self._disk = disk
        self._lock = threading.Lock()
        self._is_removed = False

    def remove(self) -> None:
        """Delete the file once; may run on a worker thread. Raise OSError on failure; it may be called again.

        A call waits for that of another thread: after it, there may be a new file of the name.

        The system frees the blocks of a mapped file only with its mapping, and Python lets no other thread
        run while it drops one. So the mapping goes first, some MiB at a time.
        """
        with self._lock:
            if self._is_removed:
                return
            mapping, self._mapping = self._mapping, None
            if mapping is not None:
                for start in range(0, len(mapping), _UNMAPPED_BYTES):
                    mapping.madvise(mmap.MADV_DONTNEED, start, min(_UNMAPPED_BYTES, len(mapping) - start))
                del mapping
            self._disk.remove(self.file.path)
            self._is_removed = True


class MappedFileQueue:
    """The files of one folder, in order of base, without gaps."""

    def __init__(self, folder: Path, file_bytes: int, disk: Disk, pool: MmapCache) -> None:
        self.folder = folder
        self.file_bytes = file_bytes
        self.files: list[MappedFile] = []
        self._disk = disk
        self._pool = pool

    def load(self) -> None:
        """Find the files.

        An empty last file comes from a crash between creating and sizing it. It is removed, as in 5.x.

        Raises:
            StoreError: something in a file's place that is none, a file of another size, or a hole in the
                sequence.
        """
        entries = named_by_position(self._disk, self.folder)
        for index, (path, _, size, _) in enumerate(entries):
            if size == 0 and index == len(entries) - 1:
                self._disk.remove(path)
                continue
            if size != self.file_bytes:
                raise StoreError(
                    f"{path} has {size} bytes, but files of this folder must have {self.file_bytes}"
                )
            base = int(path.name)
            if base % self.file_bytes:
                raise StoreError(f"{path} is not named after a multiple of {self.file_bytes}")
            if self.files and base != self.files[-1].base + self.file_bytes:
                raise StoreError(
                    f"{self.folder} lacks the file {file_name(self.files[-1].base + self.file_bytes)}"
                )
            self.files.append(MappedFile(self._pool, path, base, self.file_bytes, self._disk.mtime_ms(path)))

    def find(self, position: int) -> MappedFile | None:
        """Return the file that holds ``position``, None if there is none."""
        files = self.files
        if not files or position < files[0].base:
            return None
        index = (position - files[0].base) // self.file_bytes
        return files[index] if index < len(files) else None

    def append_file(self, base: int, now_ms: int) -> MappedFile:
        """Create a file at ``base``, right after the last file if there is one. Raise OSError on failure."""
        path = self.folder / file_name(base)
        create_file(self._disk, path, self.file_bytes)
        file = MappedFile(self._pool, path, base, self.file_bytes, now_ms)
        self.files.append(file)
        return file

    def close_files(self) -> bool:
        """Unmap the files; return True if one was mapped."""
        mapped = [file for file in self.files if self._pool.release(file) is not None]
        return bool(mapped)

    def drop_last(self) -> None:
        """Delete the last file. After an OSError the file is still there."""
        # Remove it from the list first: a concurrent flush then knows why the file is missing.
        file = self.files.pop()
        try:
            self._disk.remove(file.path)
        except OSError:
            self.files.append(file)
            raise
        self._pool.release(file)

    def discard_last(self) -> None:
        """Forget the last file, which has no data. If it cannot be deleted, ``append_file`` replaces it."""
        file = self.files.pop()
        self._pool.release(file)
        with suppress(OSError):
            self._disk.remove(file.path)

    def drop_first(self) -> None:
        """Delete the first file. After an OSError the file is still there."""
        # Remove it from the list first: a concurrent flush then knows why the file is missing.
        file = self.files.pop(0)
        self._pool.release(file)
        try:
            self._disk.remove(file.path)
        except OSError:
            self.files.insert(0, file)
            raise

    def take_first(self) -> DroppedFile:
        """Take the first file from the queue, without deleting it yet."""
        return DroppedFile(self.files.pop(0), self._pool, self._disk)

    def put_back(self, dropped: DroppedFile) -> None:
        """Use a file of ``take_first`` again, because it could not be deleted."""
        self.files.insert(0, dropped.file)

    def clear_beyond(self, position: int) -> None:
        """Zero the file from ``position`` on, so that a later crash cannot bring old data back."""
        file = self.find(position)
        if file is not None:
            clear_file_beyond(self._disk, file, position - file.base)


def named_by_position(disk: Disk, folder: Path) -> list[DiskEntry]:
    """Return the files of a folder whose names have 20 digits.

    Other entries are left alone; a warning names them, except folders. RocketMQ 4.9 does not start with one.

    Raises:
        StoreError: an entry with such a name is no file.
    """
    found = []
    for entry in disk.list_folder(folder):
        if _NAME.fullmatch(entry.path.name) is None:
            if not entry.is_folder:
                _log.warning("%s is left alone: files of the store have names of 20 digits", entry.path)
        elif not entry.is_file:
            raise StoreError(f"{entry.path} is no regular file, but has the name of one: move it away")
        else:
            found.append(entry)
    return found


def create_file(disk: Disk, path: Path, size: int) -> None:
    """Create a file that the store does not have; replace one that a failed removal has left there.

    Raises:
        OSError: the disk fails. A file of another size may be left, which the next call replaces.
    """
    try:
        disk.create(path, size)
    except FileExistsError:
        disk.remove(path)
        disk.create(path, size)
    except OSError:
        # Sizing failed: the next load would report a file of the wrong size.
        with suppress(OSError):
            disk.remove(path)
        raise


def clear_file_beyond(disk: Disk, file: MappedFile, at: int) -> None:
    """Zero a file from byte ``at`` on, where writing continues; holes stay holes.

    Files of a snapshot are never written: recovery may continue in a file that was full before.
    """
    file.unshare(disk)
    mapping = file.open_for_writing()
    while 0 <= (at := disk.data_beyond(file.path, at)) < file.size:
        end = min(at + 1_048_576, file.size)
        chunk = mapping[at:end]
        if chunk.strip(b"\0"):
            mapping[at:end] = bytes(end - at)
        at = end
    REFUSED_WRITES.check()
