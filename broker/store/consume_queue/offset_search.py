"""Search by time: finds the message of a queue that was stored at a given time, for example for a reset.

Specification: docs/spec/broker.md B.10.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from rewindmq.broker.store.config import CQ_ENTRY_BYTES
from rewindmq.broker.store.model import Boundary, SearchMode

_UNREADABLE: Final = -1


class SearchedFile(Protocol):
    """A file of a consume queue."""

    @property
    def base(self) -> int:
        """Position of the file's first byte."""

    @property
    def size(self) -> int:
        """Size in bytes."""

    @property
    def mtime_ms(self) -> int:
        """Time of the last write, ms."""


class SearchedFiles(Protocol):
    """The files of a consume queue."""

    @property
    def files(self) -> Sequence[SearchedFile]:
        """The files in order of position."""


class SearchedQueue(Protocol):
    """The consume queue that a search reads: a broker's, or a queue of an offline store in the pipeline."""

    @property
    def min_offset(self) -> int:
        """Index of the first message kept."""

    @property
    def max_offset(self) -> int:
        """Index of the next message."""

    @property
    def files(self) -> SearchedFiles:
        """The queue's files."""

    def entry(self, index: int) -> tuple[int, int, int] | None:
        """Return log position, size and tagsCode; None outside [min, max)."""


class SearchedLog(Protocol):
    """The commit log as a search reads it."""

    @property
    def min_offset(self) -> int:
        """Position of the first byte kept."""

    def store_time(self, offset: int) -> int:
        """Return the store timestamp of the record at ``offset``, -1 if it cannot be read."""


def search_by_time(
    queue: SearchedQueue, log: SearchedLog, timestamp: int, boundary: Boundary, mode: SearchMode
) -> int:
    """Return the queue offset of the message stored at ``timestamp`` (ms), by the rules of ``mode``."""
    if mode is SearchMode.NEAREST:
        return search_nearest(queue, log, timestamp)
    return search_boundary(queue, log, timestamp, boundary)


def search_nearest(queue: SearchedQueue, log: SearchedLog, timestamp: int) -> int:
    """Search as 4.2.0 to 5.1.0 do (ConsumeQueue#getOffsetInQueueByTime of 4.9.4, docs/spec/store.md 12.1).

    Of several messages stored at ``timestamp``, return the first that the bisection meets. In a gap, return
    the nearer neighbour, the earlier one on a tie. After the last message, return its offset, not max. The
    result is not clamped.
    """
    file = _file_by_mtime(queue, timestamp)
    if file is None:
        return 0
    first = file.base // CQ_ENTRY_BYTES
    low = max(queue.min_offset, first)
    high = min(queue.max_offset, first + file.size // CQ_ENTRY_BYTES) - 1
    left = right = left_time = right_time = -1
    log_min = log.min_offset
    while low <= high:
        middle = (low + high) // 2
        entry = queue.entry(middle)
        physical_offset = entry[0] if entry is not None else -1
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
        # Without a right neighbour its byte position is -1 in Java, which divided by the entry size rounds to
        # 0.
        return right if right >= 0 else max(0, first - 1)
    if right_time == -1:
        return left
    return right if timestamp - left_time > right_time - timestamp else left


def _file_by_mtime(queue: SearchedQueue, timestamp: int) -> SearchedFile | None:
    """Return the first file last written at or after ``timestamp``, else the last; None if empty."""
    written = None
    for file in queue.files.files:
        if file.base >= queue.max_offset * CQ_ENTRY_BYTES:
            break
        written = file
        if file.mtime_ms >= timestamp:
            break
    return written


def search_boundary(queue: SearchedQueue, log: SearchedLog, timestamp: int, boundary: Boundary) -> int:
    """Search as 5.1.1 and later do.

    Source: ``ConsumeQueue#binarySearchInQueueByTime`` of 5.3.3; docs/spec/store.md 12.2.

    LOWER returns the first message stored at or after ``timestamp``, max if there is none. UPPER returns the
    last message stored at or before it, 0 if there is none. An unreadable store time gives 0. The result is
    clamped into [min, max].
    """
    min_offset, max_offset = queue.min_offset, queue.max_offset
    # Both boundaries use one search for the first message stored later than this.
    after = timestamp - 1 if boundary is Boundary.LOWER else timestamp
    low, high = min_offset, max_offset
    log_min = log.min_offset
    while low < high:
        middle = (low + high) // 2
        entry = queue.entry(middle)
        physical_offset = entry[0] if entry is not None else -1
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
