"""Which message of a queue was stored at a given time: resets by time rest on it.

Specification: docs/spec/broker.md B.10.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from rewindmq.broker.store.config import CQ_UNIT_BYTES
from rewindmq.broker.store.model import Boundary, SearchMode

_UNREADABLE: Final = -1


class SearchedFile(Protocol):
    """A file of a consume queue."""

    @property
    def base(self) -> int:
        """Position of its first byte."""

    @property
    def size(self) -> int:
        """Bytes."""

    @property
    def mtime_ms(self) -> int:
        """When it was last written."""


class SearchedFiles(Protocol):
    """The files of a consume queue."""

    @property
    def files(self) -> Sequence[SearchedFile]:
        """In order."""


class SearchedQueue(Protocol):
    """What a search reads of a consume queue: the broker's own, or a store's on any file system."""

    @property
    def min_offset(self) -> int:
        """Index of the first message kept."""

    @property
    def max_offset(self) -> int:
        """Index the next message gets."""

    @property
    def files(self) -> SearchedFiles:
        """Its files."""

    def unit(self, index: int) -> tuple[int, int, int] | None:
        """Log position, size, tagsCode; None outside of [min, max)."""


class SearchedLog(Protocol):
    """What a search reads of the commit log."""

    @property
    def min_offset(self) -> int:
        """Position of the first byte kept."""

    def store_time(self, offset: int) -> int:
        """Store timestamp of the record at ``offset``, -1 when it cannot be read."""


def search_by_time(
    queue: SearchedQueue, log: SearchedLog, timestamp: int, boundary: Boundary, mode: SearchMode
) -> int:
    """Queue offset of the message stored at ``timestamp`` (ms), by the rules of ``mode``."""
    if mode is SearchMode.NEAREST:
        return search_nearest(queue, log, timestamp)
    return search_boundary(queue, log, timestamp, boundary)


def search_nearest(queue: SearchedQueue, log: SearchedLog, timestamp: int) -> int:
    """The search of 4.2.0 to 5.1.0 (ConsumeQueue#getOffsetInQueueByTime of 4.9.4, docs/spec/store.md 12.1).

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


def _file_by_mtime(queue: SearchedQueue, timestamp: int) -> SearchedFile | None:
    """The first file last written at or after ``timestamp``, else the last; None without any unit."""
    written = None
    for file in queue.files.files:
        if file.base >= queue.max_offset * CQ_UNIT_BYTES:
            break
        written = file
        if file.mtime_ms >= timestamp:
            break
    return written


def search_boundary(queue: SearchedQueue, log: SearchedLog, timestamp: int, boundary: Boundary) -> int:
    """The search of 5.1.1 and later.

    Source: ``ConsumeQueue#binarySearchInQueueByTime`` of 5.3.3; docs/spec/store.md 12.2.

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
