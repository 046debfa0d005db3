"""Finds the part of a segment that the checkpoint proves: recovery after a crash need not read it.

The checkpoint proves the records that were stored before its time, and their queue entries. The queues give
the log position at which these records end. If the sizes of the entries before this position add up to the
bytes of the log, no entry is missing.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left
from typing import Final, NamedTuple

from rewindmq.broker.store.config import CQ_ENTRY_BYTES
from rewindmq.broker.store.consume_queue.queue import FILLER_SIZE, ConsumeQueue
from rewindmq.broker.store.consume_queue.table import ConsumeQueueTable
from rewindmq.broker.store.log.commit_log import CommitLog
from rewindmq.broker.store.log.record_check import StoredRecord, check_record

_WORD_BYTES: Final = 4
_WORDS: Final = CQ_ENTRY_BYTES // _WORD_BYTES
_SIZE_WORD: Final = 2


class ProvenPart(NamedTuple):
    """What the checkpoint proves of a segment.

    Attributes:
        end: log position behind the last proven record.
        store_timestamp: its store timestamp, ms.
        queue_ends: queue offset behind the last proven entry of each queue that has one.
    """

    end: int
    store_timestamp: int
    queue_ends: dict[ConsumeQueue, int]


def find_proven_part(
    log: CommitLog, queues: ConsumeQueueTable, base: int, timestamp: int
) -> ProvenPart | None:
    """Return what the checkpoint proves of the segment at log position ``base``; None if an entry is missing.

    Args:
        timestamp: store time, ms, up to which records and entries are durable.

    Raises:
        OSError: a file cannot be mapped.
    """
    proof = _Proof(log, timestamp)
    ends: dict[ConsumeQueue, int] = {}
    covered = 0
    newest: StoredRecord | None = None
    for queue in queues:
        last = proof.last_record(queue)
        if last is None:
            continue
        ends[queue] = last.queue_offset + 1
        covered += _bytes_of_records(queue, base, last.queue_offset + 1)
        if newest is None or last.physical_offset > newest.physical_offset:
            newest = last
    if newest is None or newest.physical_offset + newest.size != base + covered:
        return None
    return ProvenPart(base + covered, newest.store_timestamp, ends)


def _bytes_of_records(queue: ConsumeQueue, base: int, end: int) -> int:
    """Return the record sizes of the entries from log position ``base`` to queue offset ``end``, added up."""
    first = queue.slots.start
    start = first + bisect_left(queue.slots, base, 0, end - first, key=lambda index: queue.slot(index)[0])
    total = 0
    for chunk in queue.chunks(start, end):
        words = array("I", chunk)
        if sys.byteorder == "little":
            words.byteswap()
        total += sum(words[_SIZE_WORD::_WORDS])
    return total


class _Proof:
    """Tells proven entries from others, of which the disk may have lost any part.

    Args:
        timestamp: store time, ms, up to which records and entries are durable.
    """

    def __init__(self, log: CommitLog, timestamp: int) -> None:
        self._log = log
        self._timestamp = timestamp

    def last_record(self, queue: ConsumeQueue) -> StoredRecord | None:
        """Return the record of the last proven entry; None if no proven entry has a record in the log."""
        slots = queue.slots
        place = bisect_left(
            slots,
            True,
            key=lambda index: not self._is_old(queue, index) and self._record(queue, index) is None,
        )
        return self._record(queue, slots[place - 1]) if place else None

    def _is_old(self, queue: ConsumeQueue, index: int) -> bool:
        """Return True if an entry's record is older than the log, or if it has none."""
        position, size, _ = queue.slot(index)
        return size > 0 and (size == FILLER_SIZE or 0 <= position < self._log.min_offset)

    def _record(self, queue: ConsumeQueue, index: int) -> StoredRecord | None:
        """Return the record of an entry that is durable with all before it: it knows its queue and place."""
        position, size, _ = queue.slot(index)
        segment = self._log.segments.find(position)
        if segment is None:
            return None
        start = position - segment.base
        record = check_record(segment.open_map(), start, segment.size, position, check_crc=False)
        if (
            record is None
            or record.size != size
            or (record.queue_id, record.queue_offset) != (queue.queue_id, index)
            or record.topic != queue.topic.encode()
            or not 0 < record.store_timestamp <= self._timestamp
        ):
            return None
        return record
