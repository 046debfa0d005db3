"""Reading messages by queue offset: the hot path of every pull.

Specification: docs/spec/store.md 4.5, docs/spec/broker.md B.5.
"""

from __future__ import annotations

import struct
from mmap import mmap
from typing import Final, NamedTuple, Protocol

from rewindmq.broker.store.config import CQ_ENTRY_BYTES, StoreConfig
from rewindmq.broker.store.consume_queue.queue import ENTRY, FILLER_SIZE, ConsumeQueue
from rewindmq.broker.store.log.commit_log import CommitLog
from rewindmq.broker.store.model import GetMessageStatus, GetResult
from rewindmq.protocol.limits import MAX_RESPONSE_BODY_BYTES

# The log position of an entry.
_POSITION: Final = struct.Struct(">q")
# One read scans at most this many bytes of entries, or 20 bytes for each requested message if more.
_SCAN_BYTES: Final = 16_000

_FOUND: Final = GetMessageStatus.FOUND
_NO_MATCHED_MESSAGE: Final = GetMessageStatus.NO_MATCHED_MESSAGE
_MESSAGE_WAS_REMOVING: Final = GetMessageStatus.MESSAGE_WAS_REMOVING


class RecordScan(Protocol):
    """Chooses the records of one read."""

    @property
    def is_exhausted(self) -> bool:
        """Return True to end the read; called before each record."""

    def accepts(self, record: bytes) -> bool:
        """Return True if the record is part of the result."""


class PlainRead(NamedTuple):
    """Where the messages of a pull lie.

    Attributes:
        offsets: the queue offset of the first entry; the queue's minimum and maximum.
        entries: a file of the queue, and where the entries to scan begin and end in it.
        segment: a file of the log, its log position, and the end of its records. Records in other segments
            are not found.
        limits: records before this log position count as being on disk; the most messages in memory, on disk,
            and the most bytes of them.
        queue: the queue.
    """

    offsets: tuple[int, int, int]
    entries: tuple[mmap, int, int]
    segment: tuple[mmap, int, int]
    limits: tuple[int, int, int, int, int]
    queue: ConsumeQueue


class MessageReader:
    """Reads messages by queue offset (DefaultMessageStore#getMessage of 4.9.4)."""

    def __init__(self, log: CommitLog, config: StoreConfig, physical_memory: int) -> None:
        self._log = log
        self._cold_distance = physical_memory * config.access_message_in_memory_max_ratio // 100
        # Its limits of a read can change while the store is open.
        self._config = config

    def is_cold(self, physical_offset: int) -> bool:
        """Return True if the position is too far behind the log's tail to be in memory."""
        return self._log.max_offset - physical_offset > self._cold_distance

    def read(
        self,
        queue: ConsumeQueue,
        offset: int,
        max_count: int,
        tag_codes: frozenset[int] | None,
        scan: RecordScan | None = None,
    ) -> GetResult:
        """Return at most ``max_count`` messages from ``offset`` on, with any of ``tag_codes`` (None: all).

        Args:
            scan: a further filter for each record; None accepts all.
        """
        min_offset = queue.min_offset
        max_offset = queue.max_offset
        if offset < min_offset or offset >= max_offset:
            return _out_of_range(offset, min_offset, max_offset)
        entries = queue.entries(offset, max(_SCAN_BYTES, max_count * CQ_ENTRY_BYTES))
        if not entries:
            file_entries = queue.files.file_bytes // CQ_ENTRY_BYTES
            return GetResult(
                GetMessageStatus.OFFSET_FOUND_NULL,
                offset - offset % file_entries + file_entries,
                min_offset,
                max_offset,
            )
        if scan is not None:
            return self._collect_accepted(entries, offset, max_count, scan, min_offset, max_offset)
        return self._collect(entries, offset, max_count, tag_codes, min_offset, max_offset)

    def find(self, queue: ConsumeQueue, offset: int, max_count: int) -> PlainRead | None:
        """Return where ``read`` would find messages; None unless there are some, in mapped files."""
        max_offset = queue.max_offset
        if not queue.min_offset <= offset < max_offset:
            return None
        position = offset * CQ_ENTRY_BYTES
        file = queue.files.find(position)
        if file is None or file.map is None:
            return None
        first = position - file.base
        last = min(
            first + max(_SCAN_BYTES, max_count * CQ_ENTRY_BYTES),
            file.size,
            max_offset * CQ_ENTRY_BYTES - file.base,
        )
        log = self._log
        segment = log.segments.find(_POSITION.unpack_from(file.map, first)[0])
        if segment is None or segment.map is None:
            return None
        return PlainRead(
            (offset, queue.min_offset, max_offset),
            (file.map, first, last),
            (segment.map, segment.base, min(segment.base + segment.size, log.max_offset)),
            self._limits(max_count),
            queue,
        )

    def _limits(self, max_count: int) -> tuple[int, int, int, int, int]:
        """Return the log position before which records are cold, and how many and much may be read.

        Returns:
            The position; the most messages of hot and of cold records; their most bytes.
        """
        config = self._config
        return (
            self._log.max_offset - self._cold_distance,
            min(config.max_transfer_count_on_message_in_memory, max_count),
            min(config.max_transfer_count_on_message_in_disk, max_count),
            min(config.max_transfer_bytes_on_message_in_memory, MAX_RESPONSE_BODY_BYTES),
            min(config.max_transfer_bytes_on_message_in_disk, MAX_RESPONSE_BODY_BYTES),
        )

    def _collect(  # noqa: C901, PLR0912 - the one loop of each pull; calls in it cost time
        self,
        entries: bytes,
        offset: int,
        max_count: int,
        tag_codes: frozenset[int] | None,
        min_offset: int,
        max_offset: int,
    ) -> GetResult:
        log = self._log
        cold_before, hot_count, cold_count, hot_bytes, cold_bytes = self._limits(max_count)
        status = _NO_MATCHED_MESSAGE
        chunks: list[bytes] = []
        # The segment of the last record. Adjacent records are copied in one piece.
        base = limit = 0
        mapping = log.buffer
        run_start = run_end = -1
        skip_before = -1
        total = count = scanned = 0
        for physical, size, tags_code in ENTRY.iter_unpack(entries):
            if physical < skip_before:
                scanned += 1
                continue
            if count:
                if physical < cold_before:
                    if count >= cold_count or total + size > cold_bytes:
                        break
                elif count >= hot_count or total + size > hot_bytes:
                    break
            scanned += 1
            if tag_codes is not None and tags_code not in tag_codes:
                continue
            end = physical + size
            if physical != run_end or end > limit:
                if run_start >= 0:
                    chunks.append(mapping[run_start - base : run_end - base])
                    run_start = run_end = -1
                if physical < base or end > limit or size <= 0:
                    segment = log.segments.find(physical)
                    base = 0 if segment is None else segment.base
                    limit = 0 if segment is None else min(base + segment.size, log.max_offset)
                    if segment is None or end > limit or size <= 0:
                        if not count:
                            status = _MESSAGE_WAS_REMOVING
                        if size != FILLER_SIZE:
                            skip_before = log.next_segment_base(physical)
                        continue
                    mapping = segment.map or segment.open_map()
                run_start = physical
            run_end = end
            total += size
            count += 1
        if count:
            status = _FOUND
        if run_start >= 0:
            chunks.append(mapping[run_start - base : run_end - base])
        return GetResult(
            status,
            offset + scanned,
            min_offset,
            max_offset,
            chunks[0] if len(chunks) == 1 else b"".join(chunks),
            count,
        )

    def _collect_accepted(
        self,
        entries: bytes,
        offset: int,
        max_count: int,
        scan: RecordScan,
        min_offset: int,
        max_offset: int,
    ) -> GetResult:
        """Collect the records one by one, because ``scan`` must examine each."""
        log = self._log
        cold_before = log.max_offset - self._cold_distance
        status = _NO_MATCHED_MESSAGE
        chunks: list[bytes] = []
        total = scanned = 0
        skip_before = -1
        for physical, size, _ in ENTRY.iter_unpack(entries):
            if chunks and self._is_full(len(chunks), total + size, max_count, is_cold=physical < cold_before):
                break
            if scan.is_exhausted:
                break
            scanned += 1
            if physical < skip_before:
                continue
            record = log.read(physical, size)
            if not record:
                if not chunks:
                    status = _MESSAGE_WAS_REMOVING
                if size != FILLER_SIZE:
                    skip_before = log.next_segment_base(physical)
            elif scan.accepts(record):
                chunks.append(record)
                total += size
            elif not chunks:
                status = _NO_MATCHED_MESSAGE
        if chunks:
            status = _FOUND
        return GetResult(status, offset + scanned, min_offset, max_offset, b"".join(chunks), len(chunks))

    def _is_full(self, count: int, total: int, max_count: int, *, is_cold: bool) -> bool:
        if count >= max_count or total > MAX_RESPONSE_BODY_BYTES:
            return True
        config = self._config
        if is_cold:
            return (
                count >= config.max_transfer_count_on_message_in_disk
                or total > config.max_transfer_bytes_on_message_in_disk
            )
        return (
            count >= config.max_transfer_count_on_message_in_memory
            or total > config.max_transfer_bytes_on_message_in_memory
        )


def _out_of_range(offset: int, min_offset: int, max_offset: int) -> GetResult:
    if max_offset == 0:
        return GetResult(GetMessageStatus.NO_MESSAGE_IN_QUEUE, 0, min_offset, max_offset)
    if offset < min_offset:
        return GetResult(GetMessageStatus.OFFSET_TOO_SMALL, min_offset, min_offset, max_offset)
    if offset == max_offset:
        return GetResult(GetMessageStatus.OFFSET_OVERFLOW_ONE, offset, min_offset, max_offset)
    return GetResult(GetMessageStatus.OFFSET_OVERFLOW_BADLY, max_offset, min_offset, max_offset)


EMPTY_QUEUE: Final = GetResult(GetMessageStatus.NO_MESSAGE_IN_QUEUE, 0, 0, 0)
