"""Retention: deletes whole files whose messages have expired (docs/spec/store.md 11.2, 11.3).

4.9.4 ``MappedFileQueue#deleteExpiredFileByTime``, ``CleanConsumeQueueService``, and
``cleanExpiredConsumerQueue`` and ``cleanUnusedTopic`` of the message store. Changed: a file that is not yet
durable stays until the next run. Files in use are deleted at once, because reads copy.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from typing import Final

from rewindmq.broker.store.consume_queue.table import ConsumeQueueTable
from rewindmq.broker.store.errors import StoreError, cause_of
from rewindmq.broker.store.files.disk import Disk
from rewindmq.broker.store.index.service import IndexService
from rewindmq.broker.store.log.commit_log import CommitLog
from rewindmq.protocol.names import SCHEDULE_TOPIC, TRANS_HALF_TOPIC, TRANS_OP_HALF_TOPIC

_log: Final = logging.getLogger(__name__)
_KEPT: Final = (SCHEDULE_TOPIC, TRANS_OP_HALF_TOPIC)
# The broker stores its progress in these queues. If they started over at offset 0, it would skip new
# messages.
_NEVER_OVER: Final = (SCHEDULE_TOPIC, TRANS_HALF_TOPIC, TRANS_OP_HALF_TOPIC)


class StoreCleaner:
    """Deletes expired files. Called on the event loop's thread only, between messages."""

    def __init__(self, log: CommitLog, queues: ConsumeQueueTable, index: IndexService, disk: Disk) -> None:
        self._log = log
        self._queues = queues
        self._index = index
        self._disk = disk
        # Start of the log when ``expire_queues`` last ran: it has nothing to do until the log starts later.
        self._expired_to = -1

    def drop_segment(self, modified_before: int | None) -> bool:
        """Delete the log's first segment if it is expired and durable; never delete the last segment.

        Args:
            modified_before: ms; a segment is expired if it was last written at this time or earlier. None
                means that a segment of any age is expired.

        Returns:
            True if the segment was deleted.

        Raises:
            StoreError: the disk failed.
        """
        files = self._log.segments.files
        if len(files) < 2 or files[0].base + files[0].size > self._log.flushed_offset:
            return False
        first = files[0]
        try:
            if modified_before is not None and self._modified_at() > modified_before:
                return False
            self._log.segments.drop_first()
        except OSError as error:
            raise StoreError(f"cannot delete {first.path}: {error.strerror}") from None
        _log.info("commit log file %s deleted", first.path.name)
        return True

    def _modified_at(self) -> int:
        first = self._log.segments.files[0]
        first.save_mtime(self._disk)
        return self._disk.mtime_ms(first.path)

    def expire_queues(self, *, ends_idle: bool) -> None:
        """Delete files of queues and key index that refer only to deleted messages, if the log was shortened.

        Args:
            ends_idle: see ``ConsumeQueue.expire``.

        Raises:
            StoreError: the disk failed.
        """
        log_min = self._log.min_offset
        if log_min <= max(self._expired_to, 0):
            return
        try:
            for queue in self._queues:
                queue.expire(log_min, ends_idle=ends_idle)
            self._index.drop_expired()
        except OSError as error:
            raise StoreError(f"cannot delete {cause_of(error)}") from None
        self._expired_to = log_min

    def remove_expired_queues(self) -> int:
        """Remove queues without messages; the next message of such a queue starts over at offset 0.

        Returns:
            The number of queues removed.

        Raises:
            StoreError: the disk failed.
        """
        log_min = self._log.min_offset
        self._sync_deletions()
        return self._remove(
            (queue.topic, queue.queue_id)
            for queue in self._queues
            if queue.topic not in _NEVER_OVER and 0 <= queue.max_physical_offset <= log_min
        )

    def _sync_deletions(self) -> None:
        """Make deletions of log files durable: a restart must not find messages of a queue's former life."""
        segments = self._log.segments
        if segments.files:
            try:
                self._disk.sync_folder(segments.folder)
            except OSError as error:
                raise StoreError(f"cannot sync {segments.folder}: {error.strerror}") from None

    def remove_unused_topics(self, topics: Collection[str]) -> int:
        """Remove the queues of all topics except ``topics`` and two system topics; messages stay in the log.

        Returns:
            The number of queues removed.

        Raises:
            StoreError: the disk failed.
        """
        return self._remove(
            (queue.topic, queue.queue_id)
            for queue in self._queues
            if queue.topic not in topics and queue.topic not in _KEPT
        )

    def _remove(self, keys: Iterable[tuple[str, int]]) -> int:
        count = 0
        for key in list(keys):
            try:
                queue = self._queues.get(key)
                self._queues.remove(*key)
                # Else a crash could bring the old entries back, and the queue would go on behind them.
                if queue is not None and self._disk.is_folder(queue.files.folder):
                    self._disk.sync_folder(queue.files.folder)
            except OSError as error:
                text = f"cannot delete {cause_of(error)}"
                _log.error(text)
                raise StoreError(text) from None
            count += 1
        return count
