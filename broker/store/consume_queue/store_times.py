"""When a message was stored: from the time index where that knows, else from the record itself."""

from __future__ import annotations

from rewindmq.broker.store.consume_queue.offset_search import search_by_time
from rewindmq.broker.store.consume_queue.queue import ConsumeQueue
from rewindmq.broker.store.consume_queue.time_index import TimeIndex
from rewindmq.broker.store.files.mapped_file import MappedFileQueue
from rewindmq.broker.store.log.commit_log import CommitLog
from rewindmq.broker.store.model import Boundary, SearchMode


class StoreTimes:
    """Store times of messages, given their units."""

    def __init__(self, log: CommitLog, index: TimeIndex) -> None:
        self._log = log
        self._index = index

    @property
    def min_physical_offset(self) -> int:
        """Log position of the first byte kept; messages before it are gone."""
        return self._log.min_offset

    def store_time(self, queue: ConsumeQueue, index: int, physical_offset: int) -> int:
        """Store timestamp, ms, of the message whose unit is ``index``; -1 when it cannot be read.

        Args:
            physical_offset: the unit's log position.
        """
        known = self._index.store_time(queue.topic, queue.queue_id, index, physical_offset)
        return known or self._log.store_time(physical_offset)

    def search(self, queue: ConsumeQueue, timestamp: int, boundary: Boundary, mode: SearchMode) -> int:
        """Queue offset of the message stored at ``timestamp`` (ms), by the rules of ``mode``."""
        if self._index.is_empty:
            return search_by_time(queue, self._log, timestamp, boundary, mode)
        timed = _TimedQueue(queue)
        return search_by_time(timed, _TimedLog(timed, self), timestamp, boundary, mode)


class _TimedQueue:
    """A queue as a search by time sees it (a ``SearchedQueue``); it remembers the unit looked at last."""

    def __init__(self, queue: ConsumeQueue) -> None:
        self.queue = queue
        self.index = -1

    @property
    def min_offset(self) -> int:
        return self.queue.min_offset

    @property
    def max_offset(self) -> int:
        return self.queue.max_offset

    @property
    def files(self) -> MappedFileQueue:
        return self.queue.files

    def unit(self, index: int) -> tuple[int, int, int] | None:
        """Log position, size, tagsCode; None outside of [min, max)."""
        self.index = index
        return self.queue.unit(index)


class _TimedLog:
    """The log as the same search sees it (a ``SearchedLog``): it asks for the time of the last unit."""

    def __init__(self, queue: _TimedQueue, times: StoreTimes) -> None:
        self._queue = queue
        self._times = times

    @property
    def min_offset(self) -> int:
        return self._times.min_physical_offset

    def store_time(self, offset: int) -> int:
        """Store timestamp, ms, of the message at log position ``offset``; -1 when it cannot be read."""
        return self._times.store_time(self._queue.queue, self._queue.index, offset)
