"""Store times of messages: from the time index if it has them, else from the records."""

from __future__ import annotations

from rewindmq.broker.store.consume_queue.offset_search import search_by_time
from rewindmq.broker.store.consume_queue.queue import ConsumeQueue
from rewindmq.broker.store.consume_queue.time_index import TimeIndex
from rewindmq.broker.store.files.mapped_file import MappedFileQueue
from rewindmq.broker.store.log.commit_log import CommitLog
from rewindmq.broker.store.model import Boundary, SearchMode


class StoreTimes:
    """Looks up store times of messages, given their consume-queue entries."""

    def __init__(self, log: CommitLog, index: TimeIndex) -> None:
        self._log = log
        self._index = index

    @property
    def min_physical_offset(self) -> int:
        """Log position of the first byte in the log; older messages are deleted."""
        return self._log.min_offset

    def store_time(self, queue: ConsumeQueue, index: int, physical_offset: int) -> int:
        """Return the store timestamp, ms, of the message at ``index``; -1 if it cannot be read.

        Args:
            physical_offset: the entry's log position.
        """
        known = self._index.store_time(queue.topic, queue.queue_id, index, physical_offset)
        return known or self._log.store_time(physical_offset)

    def search(self, queue: ConsumeQueue, timestamp: int, boundary: Boundary, mode: SearchMode) -> int:
        """Return the queue offset of the message stored at ``timestamp`` (ms), by the rules of ``mode``."""
        if self._index.is_empty:
            return search_by_time(queue, self._log, timestamp, boundary, mode)
        timed = _TimedQueue(queue)
        return search_by_time(timed, _TimedLog(timed, self), timestamp, boundary, mode)


class _TimedQueue:
    """A ``SearchedQueue`` that remembers the index of the last entry read."""

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

    def entry(self, index: int) -> tuple[int, int, int] | None:
        """Return log position, size and tagsCode; None outside [min, max)."""
        self.index = index
        return self.queue.entry(index)


class _TimedLog:
    """A ``SearchedLog`` that returns the store time of the last entry read from its queue."""

    def __init__(self, queue: _TimedQueue, times: StoreTimes) -> None:
        self._queue = queue
        self._times = times

    @property
    def min_offset(self) -> int:
        return self._times.min_physical_offset

    def store_time(self, offset: int) -> int:
        """Return the store timestamp, ms, of the message at log position ``offset``; -1 if unreadable."""
        return self._times.store_time(self._queue.queue, self._queue.index, offset)
