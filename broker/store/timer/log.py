"""The timer log: a unit for each message that waits, in the order of the timer queue.

Source: RocketMQ 5.5.1 ``TimerLog``.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from rewindmq.broker.store.files.disk import Disk
from rewindmq.broker.store.files.mapped_file import MappedFile, MappedFileQueue, MmapCache
from rewindmq.broker.store.files.refused_writes import REFUSED_WRITES
from rewindmq.broker.store.layout.timer import BLANK, BLANK_MAGIC, MAGIC_MASK, UNIT, UNIT_BYTES

_ALLOCATION_BYTES: Final = 65_536


class Unit(NamedTuple):
    """One message that waits.

    Attributes:
        previous: position of the previous unit of the slot, -1 if there is none.
        magic: bits MAGIC_ROLL and MAGIC_DELETE.
        write_ms: when the unit was written, cut to the precision.
        left_ms: time of its slot, less ``write_ms``.
        position, size: of the record in the commit log.
        topic_hash: ``java_hash`` of the real topic.
    """

    previous: int
    magic: int
    write_ms: int
    left_ms: int
    position: int
    size: int
    topic_hash: int


class TimerLog:
    """Appends and reads units by position.

    Attributes:
        end: position of the next unit.
    """

    def __init__(self, folder: Path, file_bytes: int, disk: Disk, pool: MmapCache) -> None:
        self._folder = folder
        self._disk = disk
        self._queue = MappedFileQueue(folder, file_bytes, disk, pool)
        self._file_bytes = file_bytes
        # Positions in a file from which on no unit fits.
        self._last_start = file_bytes - BLANK.size - UNIT_BYTES
        self.end = 0
        self._synced = 0

    def load(self) -> None:
        """Find the files.

        Raises:
            StoreError: a file of another size, or a hole in the sequence.
            OSError: the disk fails.
        """
        self._queue.load()

    def discard(self) -> None:
        """Delete all files. Raise OSError on failure."""
        self._queue.close_files()
        self._queue.files.clear()
        for entry in self._disk.list_folder(self._folder):
            if entry.is_file:
                self._disk.remove(entry.path)
        self.end = self._synced = 0

    @property
    def start(self) -> int:
        """Position of the first unit that is kept."""
        return self._queue.files[0].base if self._queue.files else 0

    def has(self, position: int) -> bool:
        """Return True if ``position`` is the end of the log, or a position in one of its files."""
        files = self._queue.files
        return self._queue.find(position) is not None or position == (
            files[-1].base + self._file_bytes if files else 0
        )

    def set_end(self, position: int) -> None:
        """Drop everything behind ``position``. Raise OSError on failure."""
        queue = self._queue
        while queue.files and queue.files[-1].base > position:
            queue.drop_last()
        queue.clear_beyond(position)
        self.end = self._synced = position

    def read(self, position: int) -> Unit | None:
        """Return the unit at a position; None if there is none.

        Raises:
            OSError: the file cannot be mapped.
        """
        file = self._queue.find(position)
        if file is None or position - file.base > self._last_start:
            return None
        return _unit(file.map or file.open_map(), position - file.base)

    def units(self, position: int) -> Iterator[tuple[int, Unit]]:
        """Return the units from a position on, up to the first place without one."""
        while (unit := self.read(position)) is not None or self._is_blank(position):
            if unit is None:
                position = position // self._file_bytes * self._file_bytes + self._file_bytes
            else:
                yield position, unit
                position += UNIT_BYTES

    def _is_blank(self, position: int) -> bool:
        file = self._queue.find(position)
        if file is None or position - file.base > self._file_bytes - BLANK.size:
            return False
        return bool(BLANK.unpack_from(file.open_map(), position - file.base)[2] == BLANK_MAGIC)

    def append(self, unit: Unit, now_ms: int) -> int:
        """Write a unit; return its position.

        Raises:
            OSError: the disk is full or fails; nothing is written.
        """
        files = self._queue.files
        position = self.end
        if not files:
            position = 0
            self._queue.append_file(0, now_ms)
        file = files[-1]
        if position - file.base > self._last_start:
            # RocketMQ's readers expect a blank unit in a full file.
            base = file.base + self._file_bytes
            if position < base:
                left = base - position
                self._claim(file, self._file_bytes)
                BLANK.pack_into(file.open_for_writing(), position - file.base, left, 0, BLANK_MAGIC)
            file = self._queue.append_file(base, now_ms)
            position = base
        at = position - file.base
        if file.allocated < at + UNIT_BYTES:
            self._claim(file, at + UNIT_BYTES)
        UNIT.pack_into(file.map or file.open_for_writing(), at, UNIT_BYTES, *unit, 0)
        REFUSED_WRITES.check()
        self.end = position + UNIT_BYTES
        return position

    def _claim(self, file: MappedFile, end: int) -> None:
        start = max(file.allocated, self.end - file.base if self.end > file.base else 0)
        end = min(max(end, file.allocated + _ALLOCATION_BYTES), self._file_bytes)
        if end > start:
            self._disk.allocate(file.path, start, end - start)
        file.allocated = end
        file.open_for_writing()

    def sync(self, end: int) -> None:
        """Make the units before ``end`` durable; may run on a worker thread. Raise OSError on failure."""
        for file in list(self._queue.files):
            if file.base < end and file.base + file.size > self._synced:
                start, stop = max(self._synced - file.base, 0), min(end - file.base, file.size)
                file.sync(self._disk, start, stop)
        self._synced = max(self._synced, end)

    def drop_expired(self, min_position: int) -> None:
        """Delete the files all of whose messages have left the commit log, except the last file.

        Args:
            min_position: the commit log's first position.
        """
        files = self._queue.files
        with suppress(OSError):
            while len(files) > 1 and self._newest(files[0]) < min_position:
                self._queue.drop_first()

    def _newest(self, file: MappedFile) -> int:
        unit = self.read(file.base + self._last_start // UNIT_BYTES * UNIT_BYTES)
        return 0x7FFF_FFFF_FFFF_FFFF if unit is None else unit.position


def _unit(mapping: mmap.mmap, at: int) -> Unit | None:
    size, previous, magic, write_ms, left_ms, position, record_bytes, topic_hash, _ = UNIT.unpack_from(
        mapping, at
    )
    if size != UNIT_BYTES or magic | MAGIC_MASK != MAGIC_MASK or not magic:
        return None
    return Unit(previous, magic, write_ms, left_ms, position, record_bytes, topic_hash)
