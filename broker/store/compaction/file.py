"""A file of a compaction log, and its index file of entries.

Specification: docs/spec/store.md 14.2, 4.8; 5.3.3 SparseConsumeQueue.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final, NamedTuple

from rewindmq.broker.store.files.disk import Disk
from rewindmq.broker.store.files.mapped_file import MappedFile, clear_file_beyond
from rewindmq.broker.store.files.refused_writes import REFUSED_WRITES
from rewindmq.broker.store.layout.compaction import (
    BATCH_SIZE,
    END_OF_FILE,
    ENTRY,
    ENTRY_BYTES,
    NO_COMPACTED_OFFSET,
)
from rewindmq.broker.store.log.record_check import check_record
from rewindmq.protocol.message.record import BLANK, BLANK_BYTES, MAGIC_BLANK, PHYSICAL_OFFSET_AT

_ALLOCATION_BYTES: Final = 1_048_576


class CompactionEntry(NamedTuple):
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


def first_store_timestamp(entries: MappedFile) -> int:
    """Return the store time, ms, of the first message of an entry file; 0 if it has none."""
    return int(ENTRY.unpack_from(entries.open_map())[3])


class CompactionFile:
    """A file of records and a file with an entry for each record. Full files end with an end mark.

    Attributes:
        log: the record file; ``log.base`` is the position of its first byte in the queue's compaction log.
        entries: the entry file, with the same name.
        count: number of entries.
    """

    def __init__(self, log: MappedFile, entries: MappedFile, disk: Disk) -> None:
        self.log = log
        self.entries = entries
        self._disk = disk
        self.count = 0

    # Reading

    def entry(self, number: int) -> CompactionEntry:
        """Return entry ``number``, from 0 to ``count`` - 1."""
        mapping = self.entries.map or self.entries.open_map()
        return CompactionEntry(*ENTRY.unpack_from(mapping, number * ENTRY_BYTES)[:5])

    def record(self, entry: CompactionEntry) -> bytes | None:
        """Return the record of an entry of this file; None if it is outside the file."""
        start = entry.position - self.log.base
        if start < 0 or start + entry.size > self.log.size:
            return None
        return (self.log.map or self.log.open_map())[start : start + entry.size]

    def first_at_or_after(self, queue_offset: int) -> int:
        """Return the number of the first entry at ``queue_offset`` or later, ``count`` if there is none."""
        return bisect_left(
            range(self.count), queue_offset, key=lambda number: self.entry(number).queue_offset
        )

    @property
    def last_queue_offset(self) -> int:
        """Queue offset of the newest message, -1 if there is none."""
        return self.entry(self.count - 1).queue_offset if self.count else -1

    @property
    def end(self) -> int:
        """Size of the records in bytes."""
        if not self.count:
            return 0
        last = self.entry(self.count - 1)
        return last.position - self.log.base + last.size

    # Opening

    def count_entries(self) -> None:
        """Count the entries; they are at the start of the file."""
        places = range(self.entries.size // ENTRY_BYTES)
        self.count = bisect_left(places, True, key=lambda number: not self._is_entry(number))

    def _is_entry(self, number: int) -> bool:
        position, size, _, _, offset, batch_size, _, _ = ENTRY.unpack_from(
            self.entries.open_map(), number * ENTRY_BYTES
        )
        return bool(position >= 0 and size > 0 and offset >= 0 and batch_size > 0)

    @property
    def is_sealed(self) -> bool:
        """True if the file is full or has its end mark, so no entry of it is lost."""
        at = self.count * ENTRY_BYTES
        if at + ENTRY_BYTES > self.entries.size:
            return True
        return int(ENTRY.unpack_from(self.entries.open_map(), at)[0]) == END_OF_FILE

    def cut_damage(self) -> bool:
        """Cut the file before its first damaged record; return True if there was one."""
        places = self.entries.size // ENTRY_BYTES
        mapping, log = self.log.open_map(), self.log
        previous, number = -1, 0
        while number < places and self._is_entry(number):
            entry = self.entry(number)
            record = check_record(
                mapping, entry.position - log.base, log.size, entry.position, check_crc=True
            )
            if record is None or record.size != entry.size or record.queue_offset != entry.queue_offset:
                break
            if entry.queue_offset <= previous:
                break
            previous = entry.queue_offset
            number += 1
        was_damaged = number < self.count
        self.count = number
        if was_damaged or not self.is_sealed:
            clear_file_beyond(self._disk, self.entries, number * ENTRY_BYTES)
            clear_file_beyond(self._disk, self.log, self.end)
        return was_damaged

    # Writing

    def has_room(self, record_bytes: int) -> bool:
        """Return True if there is room for a record and the end marks after it."""
        return (
            self.count * ENTRY_BYTES + ENTRY_BYTES < self.entries.size
            and self.end + record_bytes + BLANK_BYTES <= self.log.size
        )

    def append(self, record: bytes, tags_code: int, store_timestamp: int, queue_offset: int) -> None:
        """Append a copy of a record, with its position in this log. Raise OSError if the disk is full."""
        start, size = self.end, len(record)
        self._claim(self.log, start + size + BLANK_BYTES)
        self._claim(self.entries, (self.count + 2) * ENTRY_BYTES)
        position = self.log.base + start
        log = self.log.map or self.log.open_for_writing()
        entries = self.entries.map or self.entries.open_for_writing()
        log[start : start + size] = record
        log[start + PHYSICAL_OFFSET_AT : start + PHYSICAL_OFFSET_AT + 8] = position.to_bytes(8, "big")
        # The entry is written last: a record without an entry is never read.
        ENTRY.pack_into(
            entries,
            self.count * ENTRY_BYTES,
            position,
            size,
            tags_code,
            store_timestamp,
            queue_offset,
            BATCH_SIZE,
            NO_COMPACTED_OFFSET,
            0,
        )
        self._check_written(start, size)
        self.count += 1
        self.log.mtime_ms = self.entries.mtime_ms = store_timestamp

    def seal(self) -> None:
        """Write the end marks of both files; called when the next file exists."""
        end = self.end
        left = self.log.size - end
        self._claim(self.log, end + BLANK_BYTES)
        self._claim(self.entries, (self.count + 1) * ENTRY_BYTES)
        if left >= BLANK_BYTES:
            BLANK.pack_into(self.log.open_for_writing(), end, left, MAGIC_BLANK)
        if (self.count + 1) * ENTRY_BYTES <= self.entries.size:
            ENTRY.pack_into(
                self.entries.open_for_writing(),
                self.count * ENTRY_BYTES,
                END_OF_FILE,
                0,
                0,
                0,
                0,
                0,
                NO_COMPACTED_OFFSET,
                0,
            )
        self._check_written(end, min(left, BLANK_BYTES))

    def _check_written(self, start: int, size: int) -> None:
        """Clear a record and its entry if the disk refused a part of them. Raise the OSError."""
        if REFUSED_WRITES.error is None:
            return
        at = self.count * ENTRY_BYTES
        for file, first, end in ((self.log, start, start + size), (self.entries, at, at + ENTRY_BYTES)):
            mapping, end = file.open_map(), min(end, file.size)
            mapping[first:end] = bytes(end - first)
            file.refuse_writes()
        REFUSED_WRITES.check()

    def _claim(self, file: MappedFile, end: int) -> None:
        end = min(end, file.size)
        if file.allocated < end:
            claim_to = min(max(end, file.allocated + _ALLOCATION_BYTES), file.size)
            self._disk.allocate(file.path, file.allocated, claim_to - file.allocated)
            file.allocated = claim_to
            file.open_for_writing()

    def flush(self) -> None:
        """Make both files durable; may run on a worker thread. Raise OSError on a disk error."""
        for file, end in ((self.log, self.end), (self.entries, self.count * ENTRY_BYTES)):
            file.sync(self._disk, 0, end)
            file.save_mtime(self._disk)
