"""Retention: deletes whole files whose messages have expired (docs/spec/store.md 11.2, 11.3).

4.9.4 ``MappedFileQueue#deleteExpiredFileByTime``, ``CleanConsumeQueueService``, and
``cleanExpiredConsumerQueue`` and ``cleanUnusedTopic`` of the message store. Changed: a file that is not yet
durable stays until the next run. Files in use are deleted at once, because reads copy.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Generator
from typing import Final

from rewindmq.broker.store.compaction.store import CompactionStore
from rewindmq.broker.store.consume_queue.queue import ConsumeQueue
from rewindmq.broker.store.consume_queue.table import ConsumeQueueTable
from rewindmq.broker.store.consume_queue.time_index import TimeIndex
from rewindmq.broker.store.errors import StoreError, cause_of
from rewindmq.broker.store.files.disk import Disk
from rewindmq.broker.store.files.mapped_file import DroppedFile
from rewindmq.broker.store.index.service import IndexService
from rewindmq.broker.store.log.commit_log import CommitLog
from rewindmq.protocol.names import (
    SCHEDULE_TOPIC,
    SYSTEM_TOPIC_PREFIX,
    TRANS_HALF_TOPIC,
    TRANS_OP_HALF_TOPIC,
)

_log: Final = logging.getLogger(__name__)
_KEPT: Final = (SCHEDULE_TOPIC, TRANS_OP_HALF_TOPIC)
# The broker stores its progress in these queues. If they started over at offset 0, it would skip new
# messages.
_NEVER_OVER: Final = (SCHEDULE_TOPIC, TRANS_HALF_TOPIC, TRANS_OP_HALF_TOPIC)
# Queues or topics looked at, and queues removed, at once: about 1 ms.
_QUEUES_PER_SLICE: Final = 200
_REMOVED_PER_SLICE: Final = 10
# Queues whose files are unmapped at once: about 1 ms.
_CLOSED_PER_SLICE: Final = 30


class StoreCleaner:
    """Deletes expired files. Called on the event loop's thread only, between messages, except ``delete``.

    Some methods return a generator that yields after about 1 ms of work. The store is consistent whenever it
    yields.
    """

    def __init__(
        self,
        log: CommitLog,
        queues: ConsumeQueueTable,
        index: IndexService,
        compaction: CompactionStore,
        time_index: TimeIndex,
        disk: Disk,
        write_topic_end: Callable[[str], None],
    ) -> None:
        """
        Args:
            write_topic_end: stores the record that ends a topic's life; raises StoreError if it cannot.
        """
        self._write_topic_end = write_topic_end
        self._log = log
        self._queues = queues
        self._index = index
        self._compaction = compaction
        self._time_index = time_index
        self._disk = disk
        # Start of the log when ``expire_queues`` last ran: it has nothing to do until the log starts later.
        self._expired_to = -1
        # The segment that is no part of the log any more, but may still be on the disk.
        self._taken: DroppedFile | None = None
        self._index_files: list[DroppedFile] = []

    def take_segment(self, modified_before: int | None) -> DroppedFile | None:
        """Take the log's first segment from the log if it is expired and durable; never take the last one.

        The caller deletes it with ``delete``, and takes no other segment until it is deleted: if an older
        file outlived a newer one, the next start would find a hole in the log.

        Args:
            modified_before: ms; a segment is expired if it was last written at this time or earlier. None
                means that a segment of any age is expired.

        Returns:
            The segment, which is no part of the log from now on; None if none is expired.

        Raises:
            StoreError: the disk failed.
        """
        files = self._log.segments.files
        if len(files) < 2 or files[0].base + files[0].size > self._log.flushed_offset:
            return None
        try:
            if modified_before is not None and self._modified_at() > modified_before:
                return None
        except OSError as error:
            raise StoreError(f"cannot delete {files[0].path}: {error.strerror}") from None
        self._taken = self._log.segments.take_first()
        return self._taken

    def delete(self, segment: DroppedFile) -> None:
        """Delete a segment that ``take_segment`` has returned; may run on a worker thread.

        Raises:
            StoreError: the disk failed; ``put_back`` makes the segment a part of the log again.
        """
        path = segment.file.path
        try:
            segment.remove()
        except OSError as error:
            raise StoreError(f"cannot delete {path}: {error.strerror}") from None
        self._taken = None
        _log.info("commit log file %s deleted", path.name)

    def put_back(self, segment: DroppedFile) -> None:
        """Put a segment that could not be deleted back into the log."""
        self._log.segments.put_back(segment)
        self._taken = None

    def _modified_at(self) -> int:
        first = self._log.segments.files[0]
        first.save_mtime(self._disk)
        return self._disk.mtime_ms(first.path)

    def expire_queues(self, *, ends_idle: bool) -> Generator[None, None, None]:
        """Delete queue files that refer only to deleted messages, if the log was shortened.

        Also take the files of the key index that do so, for ``delete_index_files``. Yields after each slice.

        Args:
            ends_idle: see ``ConsumeQueue.expire``.

        Raises:
            StoreError: the disk failed.
        """
        log_min = self._log.min_offset
        if log_min <= max(self._expired_to, 0):
            return
        try:
            for number, queue in enumerate(self._queues):
                if queue.expire(log_min, ends_idle=ends_idle) or number % _QUEUES_PER_SLICE == 0:
                    yield
        except OSError as error:
            raise StoreError(f"cannot delete {cause_of(error)}") from None
        self._index_files += self._index.take_expired()
        self._expired_to = log_min

    @property
    def has_index_files(self) -> bool:
        """Return True if ``delete_index_files`` has something to do."""
        return bool(self._index_files)

    def delete_index_files(self) -> None:
        """Delete the files that ``expire_queues`` took from the key index; may run on a worker thread.

        Raises:
            StoreError: the disk failed; the next call tries again.
        """
        while self._index_files:
            dropped = self._index_files[0]
            try:
                dropped.remove()
            except OSError as error:
                raise StoreError(f"cannot delete {dropped.file.path}: {error.strerror}") from None
            self._index_files.pop(0)

    def remove_expired_queues(self) -> Generator[None, None, int]:
        """Remove queues without messages; the next message of such a queue starts over at offset 0.

        Yields after each slice.

        Returns:
            The number of queues removed.

        Raises:
            StoreError: the disk failed.
        """
        # A queue whose messages are in a segment that is being deleted goes next time: after a crash the
        # segment may be there again.
        taken = self._taken
        log_min = self._log.min_offset if taken is None else taken.file.base
        self._sync_deletions()
        return self._remove_expired(log_min)

    def _sync_deletions(self) -> None:
        """Make deletions of log files durable: a restart must not find messages of a queue's former life."""
        segments = self._log.segments
        if segments.files:
            try:
                self._disk.sync_folder(segments.folder)
            except OSError as error:
                raise StoreError(f"cannot sync {cause_of(error)}") from None

    def _remove_expired(self, log_min: int) -> Generator[None, None, int]:
        count = 0
        for number, queue in enumerate(self._queues):
            if (
                not _is_system_topic(queue.topic, _NEVER_OVER)
                and 0 <= queue.max_physical_offset <= log_min
                and self._queues.get((queue.topic, queue.queue_id)) is queue
            ):
                try:
                    self._queues.remove(queue.topic, queue.queue_id)
                    # Else a crash could bring the old entries back, and the queue would go on behind them.
                    if self._disk.is_folder(queue.files.folder):
                        self._disk.sync_folder(queue.files.folder)
                except OSError as error:
                    raise _cannot_delete(error) from None
                self._close_copies(queue)
                count += 1
                if count % _REMOVED_PER_SLICE == 0:
                    yield
            elif number % _QUEUES_PER_SLICE == _QUEUES_PER_SLICE - 1:
                yield
        return count

    def end_topic(self, topic: str) -> None:
        """End a topic's life: its queues are empty from now on, and its messages belong to no queue.

        ``delete_former`` deletes the files of the queues. The messages stay in the log until they expire. The
        end is durable when the log is.

        Raises:
            StoreError: the disk failed; the topic is as it was.
        """
        if any(queue.files.files for queue in self._queues.of_topic(topic)):
            self._write_topic_end(topic)
        for queue in self._queues.of_topic(topic):
            self._close_copies(queue)
        self._queues.start_over(topic)

    def end_unused_topics(self, topics: Collection[str]) -> Generator[None, None, None]:
        """End all topics except ``topics`` and system topics; messages stay in the log.

        Yields after each slice. ``topics`` may change meanwhile.

        Raises:
            StoreError: the disk failed.
        """
        for number, topic in enumerate(self._queues.topics):
            if topic not in topics and not _is_system_topic(topic, _KEPT):
                self.end_topic(topic)
            if number % _QUEUES_PER_SLICE == _QUEUES_PER_SLICE - 1:
                yield

    def close_unused_queues(self, topics: Collection[str]) -> Generator[None, None, None]:
        """Unmap the files of all queues except those of ``topics`` and system topics; keep the files.

        For a slave, where the queues of deleted topics stay until they expire. Yields after each slice.
        ``topics`` may change meanwhile.
        """
        count = 0
        for number, queue in enumerate(self._queues):
            if queue.topic not in topics and not _is_system_topic(queue.topic, _KEPT):
                count += queue.close_files()
                self._close_copies(queue)
            if count == _CLOSED_PER_SLICE or number % _QUEUES_PER_SLICE == _QUEUES_PER_SLICE - 1:
                count = 0
                yield

    def _close_copies(self, queue: ConsumeQueue) -> None:
        self._compaction.close_files(queue.topic, queue.queue_id)
        self._time_index.close_files(queue.topic, queue.queue_id)

    @property
    def has_former(self) -> bool:
        """Return True if ``delete_former`` has something to do."""
        return self._queues.has_former

    def delete_former_files(self) -> None:
        """Do the part of ``delete_former`` that waits for the disk; may run on a worker thread.

        Raises:
            StoreError: the disk failed; call again.
        """
        try:
            self._queues.delete_former_files()
        except OSError as error:
            raise _cannot_delete(error) from None

    def delete_former(self) -> Generator[None, None, int]:
        """Delete the files of queues that have started over. Yields after each slice.

        Returns:
            The number of these queues.

        Raises:
            StoreError: the disk failed; call again.
        """
        try:
            return (yield from self._queues.delete_former())
        except OSError as error:
            raise _cannot_delete(error) from None


def _cannot_delete(error: OSError) -> StoreError:
    text = f"cannot delete {cause_of(error)}"
    _log.error(text)
    return StoreError(text)


def _is_system_topic(topic: str, older: tuple[str, ...]) -> bool:
    """Return True for a topic of ``older``, or for one of 5.x's: timer messages and records of POP.

    These have no configuration, or progress that is stored elsewhere.
    """
    return topic in older or topic.startswith(SYSTEM_TOPIC_PREFIX)
