"""A file of a compaction log, and its index file of entries.

Specification: docs/spec/store.md 14.2, 4.8; 5.3.3 SparseConsumeQueue.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final, NamedTuple

from rewindmq.broker.store.files.disk import Disk
from rewindmq.broker.store.files.mapped_file import MappedFile, clear_file_beyond
from rewindmq.broker.store.layout.compaction import (
    BATCH_SIZE,
    END_OF_FILE,
    NO_COMPACTED_OFFSET,
    UNIT,
    UNIT_BYTES,
)
from rewindmq.broker.store.log.record_check import check_record
from rewindmq.protocol.message.record import BLANK, BLANK_BYTES, MAGIC_BLANK, PHYSICAL_OFFSET_AT

_ALLOCATION_BYTES: Final = 1_048_576


class CompactionUnit(NamedTuple):
    """A compaction queue entry: position and times of one message.

    Attributes:
        position: position in the compaction log.
        store_timestamp: ms.
    """

    position: int
    size: int
    tags_code: int
    store_timestamp: int
    queue_offset: int


class CompactionFile:
    """A file of records and a file with an entry for each record. Full files end with an end mark.

    Attributes:
        log: the record file; ``log.base`` is the position of its first byte in the queue's compaction log.
        units: the entry file, with the same name.
        count: number of entries.
    """

    def __init__(self, log: MappedFile, units: MappedFile, disk: Disk) -> None:
        self.log = log
        self.units = units
        self._disk = disk
        self.count = 0

    # Reading

    def unit(self, number: int) -> CompactionUnit:
        """Return entry ``number``, from 0 to ``count`` - 1."""
        mapping = self.units.map or self.units.open_map()
        return CompactionUnit(*UNIT.unpack_from(mapping, number * UNIT_BYTES)[:5])

    def record(self, unit: CompactionUnit) -> bytes | None:
        """Return the record of an entry of this file; None if it is outside the file."""
        start = unit.position - self.log.base
        if start < 0 or start + unit.size > self.log.size:
            return None
        return (self.log.map or self.log.open_map())[start : start + unit.size]

    def first_at_or_after(self, queue_offset: int) -> int:
        """Return the number of the first entry at ``queue_offset`` or later, ``count`` if there is none."""
        return bisect_left(range(self.count), queue_offset, key=lambda number: self.unit(number).queue_offset)

    @property
    def last_queue_offset(self) -> int:
        """Queue offset of the newest message, -1 if there is none."""
        return self.unit(self.count - 1).queue_offset if self.count else -1

    @property
    def end(self) -> int:
        """Size of the records in bytes."""
        if not self.count:
            return 0
        last = self.unit(self.count - 1)
        return last.position - self.log.base + last.size

    # Opening

    def count_units(self) -> None:
        """Count the entries; they are at the start of the file."""
        places = range(self.units.size // UNIT_BYTES)
        self.count = bisect_left(places, True, key=lambda number: not self._is_unit(number))

    def _is_unit(self, number: int) -> bool:
        position, size, _, _, offset, batch_size, _, _ = UNIT.unpack_from(
            self.units.open_map(), number * UNIT_BYTES
        )
        return bool(position >= 0 and size > 0 and offset >= 0 and batch_size > 0)

    def cut_damage(self) -> bool:
        """Cut the file before its first damaged record; return True if there was one."""
        places = self.units.size // UNIT_BYTES
        mapping, log = self.log.open_map(), self.log
        previous, number = -1, 0
        while number < places and self._is_unit(number):
            unit = self.unit(number)
            record = check_record(mapping, unit.position - log.base, log.size, unit.position, check_crc=True)
            if record is None or record.size != unit.size or record.queue_offset != unit.queue_offset:
                break
            if unit.queue_offset <= previous:
                break
            previous = unit.queue_offset
            number += 1
        was_damaged = number < self.count
        self.count = number
        clear_file_beyond(self._disk, self.units, number * UNIT_BYTES)
        clear_file_beyond(self._disk, self.log, self.end)
        return was_damaged

    # Writing

    def has_room(self, record_bytes: int) -> bool:
        """Whether a record fits, with the end marks behind it."""
        return (
            self.count * UNIT_BYTES + UNIT_BYTES < self.units.size
            and self.end + record_bytes + BLANK_BYTES <= self.log.size
        )

    def append(self, record: bytes, tags_code: int, store_timestamp: int, queue_offset: int) -> None:
        """Copy a record, with its new position in it. Raise OSError if the disk is full."""
        start, size = self.end, len(record)
        self._claim(self.log, start + size + BLANK_BYTES)
        self._claim(self.units, (self.count + 2) * UNIT_BYTES)
        position = self.log.base + start
        log = self.log.map or self.log.open_map()
        units = self.units.map or self.units.open_map()
        log[start : start + size] = record
        log[start + PHYSICAL_OFFSET_AT : start + PHYSICAL_OFFSET_AT + 8] = position.to_bytes(8, "big")
        # The entry is written last: a record without an entry is never read.
        UNIT.pack_into(
            units,
            self.count * UNIT_BYTES,
            position,
            size,
            tags_code,
            store_timestamp,
            queue_offset,
            BATCH_SIZE,
            NO_COMPACTED_OFFSET,
            0,
        )
        self.count += 1
        self.log.mtime_ms = self.units.mtime_ms = store_timestamp

    def seal(self) -> None:
        """Write the end marks of both files; the next file exists."""
        end = self.end
        left = self.log.size - end
        self._claim(self.log, end + BLANK_BYTES)
        self._claim(self.units, (self.count + 1) * UNIT_BYTES)
        if left >= BLANK_BYTES:
            BLANK.pack_into(self.log.open_map(), end, left, MAGIC_BLANK)
        if (self.count + 1) * UNIT_BYTES <= self.units.size:
            UNIT.pack_into(
                self.units.open_map(),
                self.count * UNIT_BYTES,
                END_OF_FILE,
                0,
                0,
                0,
                0,
                0,
                NO_COMPACTED_OFFSET,
                0,
            )

    def _claim(self, file: MappedFile, end: int) -> None:
        end = min(end, file.size)
        if file.allocated < end:
            claim_to = min(max(end, file.allocated + _ALLOCATION_BYTES), file.size)
            self._disk.allocate(file.path, file.allocated, claim_to - file.allocated)
            file.allocated = claim_to

    def flush(self) -> None:
        """Make both files durable; may run on a worker thread. Raise OSError on a disk error."""
        for file in (self.log, self.units):
            self._disk.sync(file.path)
            file.save_mtime(self._disk)
