"""Which message of a queue was stored at a given time (``behaviour.md`` B.10): resets by time rest on it."""

from __future__ import annotations

from typing import Final

from rewindmq.broker.store.commit_log import CommitLog
from rewindmq.broker.store.config import CQ_UNIT_BYTES
from rewindmq.broker.store.consume_queue import ConsumeQueue
from rewindmq.broker.store.mapped_file import MappedFile
from rewindmq.broker.store.model import Boundary

_UNREADABLE: Final = -1


def search_nearest(queue: ConsumeQueue, log: CommitLog, timestamp: int) -> int:
    """The search of 4.2.0 to 5.1.0 (ConsumeQueue#getOffsetInQueueByTime of 4.9.4, ``store.md`` 12.1).

    Of several messages stored at ``timestamp`` the first one the bisection meets; in a gap the nearer
    neighbour, the earlier one on a tie; after everything the last message, not max. Not clamped.
    """
    file = _file_by_mtime(queue, timestamp)
    if file is None:
        return 0
    first = file.base // CQ_UNIT_BYTES
    low = max(queue.min_offset, first)
    high = min(queue.max_offset, first + file.size // CQ_UNIT_BYTES) - 1
    left = right = left_time = right_time = -1
    log_min = log.min_offset
    while low <= high:
        middle = (low + high) // 2
        unit = queue.unit(middle)
        physical_offset = unit[0] if unit is not None else -1
        if physical_offset < log_min:
            low = middle + 1
            left = middle
            continue
        stored = log.store_time(physical_offset)
        if stored < 0:
            return 0
        if stored == timestamp:
            return middle
        if stored > timestamp:
            high = middle - 1
            right, right_time = middle, stored
        else:
            low = middle + 1
            left, left_time = middle, stored
    if left_time == -1:
        # Java divides the byte position -1 of "no right neighbour" by the unit's size, rounding towards 0.
        return right if right >= 0 else max(0, first - 1)
    if right_time == -1:
        return left
    return right if timestamp - left_time > right_time - timestamp else left


def _file_by_mtime(queue: ConsumeQueue, timestamp: int) -> MappedFile | None:
    """The first file last written at or after ``timestamp``, else the last; None without any unit."""
    written = None
    for file in queue.files.files:
        if file.base >= queue.max_offset * CQ_UNIT_BYTES:
            break
        written = file
        if file.mtime_ms >= timestamp:
            break
    return written


def search_boundary(queue: ConsumeQueue, log: CommitLog, timestamp: int, boundary: Boundary) -> int:
    """The search of 5.1.1 and later (ConsumeQueue#binarySearchInQueueByTime of 5.3.3, ``store.md`` 12.2).

    LOWER: the first message stored at or after ``timestamp``, max when there is none. UPPER: the last one
    stored at or before it, 0 when there is none. An unreadable store time gives 0. Clamped into [min, max].
    """
    min_offset, max_offset = queue.min_offset, queue.max_offset
    # Both are one search: the first message stored later than this.
    after = timestamp - 1 if boundary is Boundary.LOWER else timestamp
    low, high = min_offset, max_offset
    log_min = log.min_offset
    while low < high:
        middle = (low + high) // 2
        unit = queue.unit(middle)
        physical_offset = unit[0] if unit is not None else -1
        if physical_offset < log_min:
            low = middle + 1
            continue
        stored = log.store_time(physical_offset)
        if stored == _UNREADABLE:
            return min_offset
        if stored > after:
            high = middle
        else:
            low = middle + 1
    if boundary is Boundary.UPPER:
        low -= 1
    return max(low, min_offset)
