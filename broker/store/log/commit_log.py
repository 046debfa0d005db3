"""The commit log: segments of fixed size that hold every message in the order of arrival.

Specification: docs/spec/store.md 3.
"""

from __future__ import annotations

import errno
import logging
import mmap
import struct
import threading
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Final

from rewindmq.broker.store.config import StoreConfig
from rewindmq.broker.store.files.disk import Disk
from rewindmq.broker.store.files.mapped_file import MappedFile, MappedFileQueue, MmapCache
from rewindmq.broker.store.files.refused_writes import REFUSED_WRITES
from rewindmq.broker.store.log.record_check import StoredRecord, check_record, is_blank
from rewindmq.protocol.message.record import (
    BLANK,
    BLANK_BYTES,
    MAGIC_BLANK,
    STORE_TIMESTAMP_AT_V4,
    STORE_TIMESTAMP_AT_V6,
    SYS_FLAG_AT,
)
from rewindmq.protocol.message.sysflag import MessageSysFlag

_log = logging.getLogger(__name__)
_INT64: Final = struct.Struct(">q")
_BORN_V6: Final = int(MessageSysFlag.BORNHOST_V6)
# Disk blocks are allocated ahead in steps of this many bytes.
_ALLOCATION_BYTES: Final = 4_194_304
_MAGIC_END: Final = 8
# Pages touched at once.
_TOUCHED_BYTES: Final = 1 << 18


class CommitLog:
    """Appends and reads by position. The writer fills ``buffer`` itself and then advances ``max_offset``.

    Attributes:
        buffer: mapping of the last segment.
        base: log position of the first byte of ``buffer``.
        max_offset: log position of the next record. A single attribute, so that a flushing
            thread reads it atomically.
        room_end: log position up to which records may be written without ``make_room``.
        last_store_timestamp: store timestamp of the newest record, ms; 0 in an empty log.
        flushed_offset: everything before this position is durable.
    """

    def __init__(
        self,
        folder: Path,
        config: StoreConfig,
        disk: Disk,
        pool: MmapCache,
        on_growth: Callable[[Path, int, int], object] | None = None,
    ) -> None:
        """
        Args:
            on_growth: called as ``on_growth(path, start, end)`` when a segment that grows gets disk blocks,
                with the part of its file behind these blocks.
        """
        self.segments = MappedFileQueue(folder, config.mapped_file_size_commit_log, disk, pool)
        self.segment_bytes = config.mapped_file_size_commit_log
        self._disk = disk
        self._flush_lock = threading.Lock()
        self.buffer: mmap.mmap = mmap.mmap(-1, 1)
        self.base = 0
        self.max_offset = 0
        self.room_end = 0
        self.last_store_timestamp = 0
        self.flushed_offset = 0
        self._on_growth = on_growth

    @property
    def min_offset(self) -> int:
        """Position of the first byte kept."""
        files = self.segments.files
        return files[0].base if files else 0

    def set_end(self, offset: int) -> None:
        """Set the end of the log to ``offset`` and delete later segments."""
        segments = self.segments
        while segments.files and segments.files[-1].base > offset:
            segments.drop_last()
        if segments.files:
            segments.clear_beyond(offset)
            last = segments.files[-1]
            if last.base == offset:
                # ``flush`` passes over a segment without records. After a clean stop, recovery would trust
                # a torn record that a power failure brings back.
                self._disk.sync(last.path)
            self._activate(last)
        self.max_offset = offset

    def _activate(self, segment: MappedFile) -> None:
        self.buffer = segment.open_map()
        self.base = segment.base
        self.room_end = 0

    def make_room(self, size: int) -> None:
        """Ensure that ``size`` bytes, at most a segment less its blank record, can be written.

        Raises:
            OSError: the disk is full; nothing has changed.
        """
        files = self.segments.files
        if not files or self.base + self.segment_bytes - self.max_offset < size + BLANK_BYTES:
            self._roll()
        segment = files[-1]
        self._claim(segment, self.max_offset - self.base + size + BLANK_BYTES)
        self.room_end = self.base + segment.allocated - BLANK_BYTES

    def _claim(self, segment: MappedFile, end: int) -> None:
        if segment.allocated >= end:
            return
        start = max(segment.allocated, self.max_offset - segment.base)
        end = min(max(end, segment.allocated + _ALLOCATION_BYTES), self.segment_bytes)
        self._disk.allocate(segment.path, start, end - start)
        # Not for the first blocks: a store of few messages needs no more pages than it writes.
        is_growing = segment.allocated > 0 and end < self.segment_bytes
        segment.allocated = end
        self.buffer = segment.open_for_writing()
        if is_growing and self._on_growth is not None:
            self._on_growth(segment.path, end, min(end + _ALLOCATION_BYTES, self.segment_bytes))

    def _roll(self) -> None:
        files = self.segments.files
        if not files:
            self._activate(self.segments.append_file(0, self.last_store_timestamp))
            return
        full = files[-1]
        left = full.base + self.segment_bytes - self.max_offset
        if left >= BLANK_BYTES:
            self._claim(full, self.max_offset - full.base + BLANK_BYTES)
        segment = self.segments.append_file(full.base + self.segment_bytes, self.last_store_timestamp)
        try:
            segment.open_map()
        except OSError:
            self.segments.discard_last()
            raise
        if left >= BLANK_BYTES:
            BLANK.pack_into(self.buffer, self.max_offset - full.base, left, MAGIC_BLANK)
            try:
                REFUSED_WRITES.check()
            except OSError:
                self.segments.discard_last()
                self.take_back(BLANK_BYTES)
                raise
        full.end_at(self.last_store_timestamp)
        self._activate(segment)
        self.max_offset = segment.base

    def touch_room(self, size: int) -> Generator[None]:
        """Make room for ``size`` bytes, and touch its pages: a long write would fault at each of them.

        Yields after less than 1 ms; records may be appended meanwhile.

        Raises:
            OSError: see ``make_room``.
        """
        if self.max_offset + size > self.room_end:
            self.make_room(size)
            yield
        base, done = self.base, self.max_offset
        while self.base == base and done < (end := min(self.max_offset + size, self.room_end)):
            # Never a byte of a record: the next page begins behind the log's end.
            first = max(done, self.max_offset) - base
            first += -first % mmap.PAGESIZE
            done = base + first + _TOUCHED_BYTES
            buffer = self.buffer
            for at in range(first, min(done, end) - base, mmap.PAGESIZE):
                buffer[at] = 0
            yield

    def begin_at(self, base: int) -> None:
        """Start an empty log at the segment with this base, for a slave whose master deleted older segments.

        Raises:
            OSError: the disk is full; the log is still empty.
        """
        self._activate(self.segments.append_file(base, self.last_store_timestamp))
        self.max_offset = self.flushed_offset = base

    def end_segment(self) -> None:
        """Write the blank record that marks the rest of the segment as unused, and create the next segment.

        Raises:
            OSError: the disk is full; nothing has changed.
        """
        self._roll()

    def write_record(self, record: bytes) -> None:
        """Write a record unchanged behind the end; it must fit into the segment.

        Then call ``advance``, or ``take_back`` if ``REFUSED_WRITES`` has an error.

        Raises:
            OSError: the disk is full; nothing has changed.
        """
        start = self.max_offset - self.base
        end = start + len(record)
        self._claim(self.segments.files[-1], end)
        buffer = self.buffer
        # Size and magic are written last, so that a torn record is never read as a record.
        buffer[start + _MAGIC_END : end] = memoryview(record)[_MAGIC_END:]
        buffer[start : start + _MAGIC_END] = record[:_MAGIC_END]

    def advance(self, size: int, timestamp: int) -> None:
        """Count the bytes behind the end as written."""
        self.last_store_timestamp = max(self.last_store_timestamp, timestamp)
        self.max_offset += size

    def take_back(self, size: int) -> None:
        """Clear bytes behind the end, after the file system has refused some of the bytes of a write.

        The next write claims disk blocks first, and so gets an error instead of a signal.
        """
        start = self.max_offset - self.base
        self.buffer[start : start + size] = bytes(size)
        REFUSED_WRITES.error = None
        self.room_end = 0
        self.segments.files[-1].refuse_writes()

    def chunk(self, offset: int, max_bytes: int) -> bytes:
        """Return at most ``max_bytes`` bytes at ``offset``, from one segment; empty outside the log."""
        segment = self.segments.find(offset)
        if segment is None or offset >= self.max_offset:
            return b""
        start = offset - segment.base
        end = min(start + max_bytes, segment.size, self.max_offset - segment.base)
        return (segment.map or segment.open_map())[start:end]

    def read(self, offset: int, size: int) -> bytes | None:
        """Return ``size`` bytes at ``offset``; None unless they lie within the log and in one segment."""
        segment = self.segments.find(offset)
        if segment is None or size < 0:
            return None
        start = offset - segment.base
        if start + size > self.segment_bytes or offset + size > self.max_offset:
            return None
        return (segment.map or segment.open_map())[start : start + size]

    def record_at(self, offset: int) -> StoredRecord | None:
        """Return the intact record that starts at ``offset``; None for any other position."""
        segment = self.segments.find(offset)
        if segment is None:
            return None
        end = min(self.segment_bytes, self.max_offset - segment.base)
        return check_record(segment.open_map(), offset - segment.base, end, offset, check_crc=False)

    def next_record(self, offset: int) -> StoredRecord | None:
        """Return the record at ``offset``, the position of a record or of a segment's final blank record.

        After a damaged record, skip the rest of its segment. Return None at the end of the log.
        """
        while (segment := self.segments.find(offset)) is not None and offset < self.max_offset:
            record = self.record_at(offset)
            if record is not None:
                return record
            if not is_blank(segment.open_map(), offset - segment.base, segment.size):
                _log.error("no intact record at log position %d, the rest of its segment is skipped", offset)
            offset = self.next_segment_base(offset)
        return None

    def properties_of(self, record: StoredRecord) -> bytes:
        """Return the properties text of a record of this log."""
        segment = self.segments.find(record.physical_offset)
        assert segment is not None
        return record.properties(segment.open_map(), segment.base)

    def store_time(self, offset: int) -> int:
        """Return the store timestamp of the record at ``offset``, -1 if the position is not in the log."""
        segment = self.segments.find(offset)
        if segment is None or offset + STORE_TIMESTAMP_AT_V6 + 8 > self.max_offset:
            return -1
        start = offset - segment.base
        if start + STORE_TIMESTAMP_AT_V6 + 8 > self.segment_bytes:
            return -1
        mapping = segment.map or segment.open_map()
        at = STORE_TIMESTAMP_AT_V6 if mapping[start + SYS_FLAG_AT + 3] & _BORN_V6 else STORE_TIMESTAMP_AT_V4
        return int(_INT64.unpack_from(mapping, start + at)[0])

    def next_segment_base(self, offset: int) -> int:
        """Return the base of the segment after the one that holds ``offset``."""
        return offset - offset % self.segment_bytes + self.segment_bytes

    def flush(self) -> int:
        """Make everything written so far durable; may run on a worker thread while records are appended.

        Returns:
            The position up to which the log is durable.

        Raises:
            OSError: the disk fails; ``flushed_offset`` is unchanged, and how much is durable is unknown.
        """
        with self._flush_lock:
            end = self.max_offset
            if end > self.flushed_offset:
                for segment in list(self.segments.files):
                    if segment.base < end and segment.base + segment.size > self.flushed_offset:
                        self._sync(segment, end)
                self.flushed_offset = end
            return self.flushed_offset

    def _sync(self, segment: MappedFile, end: int) -> None:
        start = max(self.flushed_offset - segment.base, 0)
        end = min(end - segment.base, segment.size)
        if segment.is_suspect:
            self._check_records(segment, start, end)
        segment.sync(self._disk, start, end)

    def _check_records(self, segment: MappedFile, start: int, end: int) -> None:
        """Check that the system still has the records that a failed flush did not bring to disk."""
        # Not ``open_map``: the cache of mappings belongs to another thread.
        mapping = self._disk.map(segment.path, segment.size)
        while start < end:
            record = check_record(mapping, start, end, segment.base + start, check_crc=True)
            if record is None:
                if is_blank(mapping, start, end):
                    return
                text = f"the record at log position {segment.base + start} was lost; restart the broker"
                raise OSError(errno.EIO, text, str(segment.path))
            start += record.size

    def save_mtimes(self, timestamp: int) -> None:
        """Set the segments' modification times; the last segment gets ``timestamp``."""
        files = list(self.segments.files)
        if files:
            files[-1].mtime_ms = timestamp
        for file in files:
            file.save_mtime(self._disk)
