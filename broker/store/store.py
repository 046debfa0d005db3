"""The message store: one directory in RocketMQ's layout, behind one object."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final

from rewindmq.broker.store.cleaner import StoreCleaner
from rewindmq.broker.store.compaction.queue import CompactionQueue
from rewindmq.broker.store.compaction.store import CompactionStore
from rewindmq.broker.store.config import CQ_UNIT_BYTES, StoreConfig
from rewindmq.broker.store.consume_queue.queue import ConsumeQueue
from rewindmq.broker.store.consume_queue.store_times import StoreTimes
from rewindmq.broker.store.consume_queue.table import ConsumeQueueTable
from rewindmq.broker.store.consume_queue.tags_code import DelayLevels, TagsCoder
from rewindmq.broker.store.consume_queue.time_index import TimeIndex
from rewindmq.broker.store.errors import StoreError
from rewindmq.broker.store.files.disk import Disk, OsDisk
from rewindmq.broker.store.files.mapped_file import MmapCache
from rewindmq.broker.store.index.service import IndexService
from rewindmq.broker.store.layout.paths import StoreLayout
from rewindmq.broker.store.log.commit_log import CommitLog
from rewindmq.broker.store.messages.query import query_message
from rewindmq.broker.store.messages.reader import EMPTY_QUEUE, MessageReader, RecordScan
from rewindmq.broker.store.messages.replica import Arrival, ReplicaWriter
from rewindmq.broker.store.messages.writer import MessageWriter
from rewindmq.broker.store.model import (
    BatchEntries,
    Boundary,
    GetResult,
    PutResult,
    PutStatus,
    QueryResult,
    SearchMode,
    StoredMessage,
)
from rewindmq.broker.store.recovery.checkpoint import StoreCheckpoint
from rewindmq.broker.store.recovery.recovery import Recovery

_log = logging.getLogger(__name__)
_OS_DISK: Final = OsDisk()
# A clean stop posts no more messages to the key index than this: a fraction of a second.
_RECORDS_AT_CLOSE: Final = 20_000
_NO_ROOM: Final = PutResult(PutStatus.CREATE_MAPPED_FILE_FAILED)
_NOT_WRITABLE: Final = PutResult(PutStatus.SERVICE_NOT_AVAILABLE)


class MessageStore:
    """Commit log and consume queues under ``root``, called from one thread; only flushes may run on another.

    A queue that has no message is known by no state: its min and max offset are 0.

    Attributes:
        cleaner: deletes what is too old to be kept.
    """

    def __init__(
        self,
        root: Path,
        config: StoreConfig,
        now_ms: Callable[[], int],
        disk: Disk = _OS_DISK,
        *,
        delay_scale: float = 1.0,
    ) -> None:
        """
        Args:
            delay_scale: what the delay levels are multiplied by, see ``DelayLevels``.

        Raises:
            StoreError: a setting cannot be used.
        """
        self._layout = StoreLayout(root)
        self._disk = disk
        self._pool = MmapCache(disk)
        coder = TagsCoder(DelayLevels(config.message_delay_level, delay_scale))
        self._log = CommitLog(self._layout.commit_log, config, disk, self._pool)
        self._queues = ConsumeQueueTable(self._layout.consume_queue, config, disk, self._pool)
        self._checkpoint = StoreCheckpoint(self._layout.checkpoint, disk)
        self._index = IndexService(self._layout.index, config, self._log, disk, self._pool, now_ms)
        self._compaction = CompactionStore(
            self._layout.compaction, config, self._log, self._queues, disk, self._pool
        )
        self._now_ms = now_ms
        units_per_file = config.consume_queue_file_bytes // CQ_UNIT_BYTES
        self._time_index = TimeIndex(self._layout.time_index, units_per_file, disk, self._pool)
        self._times = StoreTimes(self._log, self._time_index)
        self._recovery = Recovery(
            self._log, self._queues, self._checkpoint, coder, config.check_crc_on_recover
        )
        self._writer = MessageWriter(self._log, self._queues, config, coder, now_ms)
        self._replica = ReplicaWriter(self._log, self._queues, coder, config)
        self.cleaner = StoreCleaner(self._log, self._queues, self._index, disk)
        memory = config.physical_memory_bytes
        self._reader = MessageReader(self._log, config, disk.physical_memory() if memory is None else memory)
        # Given by the disk when the store is opened.
        self._unlock: Callable[[], None]
        self._is_open = False
        # Whether messages are taken; never again once the disk refused to make any durable.
        self._is_writable = False
        self._is_replica = False
        self._is_disk_full = False
        self._sync_failure = ""

    def open(self) -> None:
        """Lock the directory, load and recover it. A store is opened once.

        Raises:
            StoreError: in one line: in use, not writable, a stray or short file, a layout not supported.
        """
        layout = self._layout
        try:
            self._disk.make_folder(layout.root)
        except OSError as error:
            raise StoreError(f"cannot make the store directory {layout.root}: {error.strerror}") from None
        self._unlock = self._disk.lock(layout.lock)
        try:
            layout.check(self._disk)
            self._disk.make_folder(layout.config)
            self._log.segments.load()
            self._queues.load()
            self._checkpoint.load()
            clean = not self._disk.exists(layout.abort)
            self._recovery.run(clean)
            self._compaction.load(clean=clean)
            self._index.load(clean=clean, checkpoint=self._checkpoint)
            self._time_index.load(self._log)
            if not clean:
                self._log.flush()
            self._disk.touch(layout.abort)
        except OSError as error:
            self._release()
            raise StoreError(
                f"cannot open the store: {error.filename or layout.root}: {error.strerror}"
            ) from None
        except StoreError:
            self._release()
            raise
        self._is_open = True
        self._decide_writable()

    def close(self) -> None:
        """Clean stop: everything durable, the abort marker gone. No error when it is not open.

        Raises:
            StoreError: the disk refused; the next open will recover as after a crash.
        """
        if not self._is_open:
            return
        self._is_open = False
        self._decide_writable()
        try:
            self._finish_index()
            self.flush_all()
            self._disk.remove(self._layout.abort)
        except OSError as error:
            raise StoreError(f"cannot remove {self._layout.abort}: {error.strerror}") from None
        finally:
            self._release()

    def _finish_index(self) -> None:
        """Post what the index lacks, if there is one and it is little."""
        if self._index.is_present:
            try:
                self._index.catch_up(self._log.max_offset, _RECORDS_AT_CLOSE)
            except OSError as error:
                _log.error("%s is not up to date: %s", self._layout.index, error.strerror)

    def _decide_writable(self) -> None:
        is_shut = self._is_replica or self._is_disk_full or bool(self._sync_failure)
        self._is_writable = self._is_open and not is_shut

    @property
    def is_disk_full(self) -> bool:
        """Whether messages are refused because too much of the disk is in use; whoever cleans up says so."""
        return self._is_disk_full

    @is_disk_full.setter
    def is_disk_full(self, value: bool) -> None:
        self._is_disk_full = value
        self._decide_writable()

    def _release(self) -> None:
        self._pool.release_all()
        self._unlock()

    # Hot path

    def put_message(self, message: StoredMessage) -> PutResult:
        """Append one message; it can be read when this returns. Never raises for what a client sent."""
        if not self._is_writable:
            return _NOT_WRITABLE
        if message.topic in self._compaction.topics:
            return self._put_compacted(message, lambda: self._writer.put(message))
        return self._writer.put(message)

    def put_batch(self, message: StoredMessage, entries: BatchEntries) -> PutResult:
        """Append the inner messages of a batch, all or none; ``message`` gives what they share."""
        if not self._is_writable:
            return _NOT_WRITABLE
        if message.topic in self._compaction.topics:
            return self._put_compacted(message, lambda: self._writer.put_batch(message, entries))
        return self._writer.put_batch(message, entries)

    def _put_compacted(self, message: StoredMessage, put: Callable[[], PutResult]) -> PutResult:
        """The message behind all that its queue ever had, and copied to the compaction log."""
        try:
            self._compaction.prepare_put(message.topic, message.queue_id, self._now_ms())
        except OSError:
            return _NO_ROOM
        result = put()
        self._compaction.find(message.topic, message.queue_id)
        return result

    def get_message(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        max_count: int,
        tag_codes: frozenset[int] | None,
        scan: RecordScan | None = None,
    ) -> GetResult:
        """Messages from ``offset`` on (docs/spec/broker.md B.5).

        Args:
            max_count: at most so many; fewer by the transfer limits. The first is returned whatever its size.
            tag_codes: only messages with one of these tagsCodes; None takes all.
            scan: asked about each record, which is left out unless it says yes; not in compaction topics,
                whose readers RocketMQ filters neither.
        """
        if topic in self._compaction.topics:
            compacted = self._compaction.find(topic, queue_id)
            return EMPTY_QUEUE if compacted is None else compacted.read(offset, max_count)
        queue = self._queues.get((topic, queue_id))
        if queue is None:
            return EMPTY_QUEUE
        return self._reader.read(queue, offset, max_count, tag_codes, scan)

    # Replication

    def become_replica(self) -> None:
        """Take no message any more but those of ``append_replica``."""
        self._is_replica = True
        self._decide_writable()

    @property
    def replica_position(self) -> int:
        """The log position that ``append_replica`` has to go on at."""
        return self._replica.position

    def restart_replica(self) -> None:
        """The rest of an unfinished record will not come: go on from ``max_commit_log_offset``."""
        self._replica.restart()

    def append_replica(self, position: int, data: bytes) -> list[Arrival]:
        """Put bytes of a master's log at the same position; they count from the last whole record on.

        Returns:
            The messages that can be read now.

        Raises:
            StoreError: what comes cannot follow here, or the disk refused; the records before are there.
        """
        if self._sync_failure:
            raise StoreError(self._sync_failure)
        try:
            arrivals = self._replica.append(position, data)
        except OSError as error:
            raise StoreError(f"cannot write the commit log or a consume queue: {error.strerror}") from None
        if self._compaction.topics:
            for arrival in arrivals:
                if arrival.topic in self._compaction.topics:
                    self._compaction.find(arrival.topic, arrival.queue_id)
        return arrivals

    def log_chunk(self, position: int, max_bytes: int) -> bytes:
        """What the log holds at a position, none beyond a segment; empty outside of the log."""
        return self._log.chunk(position, max_bytes)

    @property
    def last_segment_base(self) -> int:
        """Log position of the newest segment's first byte, 0 without one."""
        files = self._log.segments.files
        return files[-1].base if files else 0

    # Queries

    @property
    def store_host(self) -> bytes:
        """The address that records name as their broker: 4 bytes and a 4-byte port, or 16 and 4."""
        return self._writer.store_host

    @store_host.setter
    def store_host(self, value: bytes) -> None:
        self._writer.set_store_host(value)

    def set_compaction_topics(self, topics: Collection[str]) -> None:
        """Say which topics are read from the compaction store: those with ``cleanup.policy=COMPACTION``."""
        self._compaction.set_topics(topics)

    def _queue(self, topic: str, queue_id: int) -> ConsumeQueue | CompactionQueue | None:
        """Where a queue is read."""
        if topic in self._compaction.topics:
            return self._compaction.find(topic, queue_id)
        return self._queues.get((topic, queue_id))

    def min_offset(self, topic: str, queue_id: int) -> int:
        """Queue offset of the first message kept; 0 for an unknown queue."""
        queue = self._queue(topic, queue_id)
        return 0 if queue is None else queue.min_offset

    def max_offset(self, topic: str, queue_id: int) -> int:
        """Queue offset the next message gets; 0 for an unknown queue."""
        queue = self._queue(topic, queue_id)
        return 0 if queue is None else queue.max_offset

    def search_offset(
        self, topic: str, queue_id: int, timestamp: int, boundary: Boundary, mode: SearchMode
    ) -> int:
        """Queue offset of the message stored at ``timestamp`` (ms), by the rules of ``mode``; 0 if empty."""
        queue = self._queue(topic, queue_id)
        if queue is None:
            return 0
        if isinstance(queue, CompactionQueue):
            return queue.search(timestamp, boundary, mode)
        return self._times.search(queue, timestamp, boundary, mode)

    def store_time(self, topic: str, queue_id: int, offset: int) -> int:
        """Store timestamp of a message, ms; -1 when there is none at that offset."""
        queue = self._queue(topic, queue_id)
        if isinstance(queue, CompactionQueue):
            return queue.store_time(offset)
        unit = None if queue is None else queue.unit(offset)
        if queue is None or unit is None:
            return -1
        return self._times.store_time(queue, offset, unit[0])

    def unit(self, topic: str, queue_id: int, offset: int) -> tuple[int, int, int] | None:
        """Log position, size and tagsCode of the message at a queue offset; None when there is none."""
        queue = self._queues.get((topic, queue_id))
        return None if queue is None else queue.unit(offset)

    def is_cold(self, topic: str, queue_id: int, offset: int) -> bool:
        """Whether a message counts as being on disk; False when there is none at that offset.

        Never in a compaction topic.
        """
        queue = self._queue(topic, queue_id)
        if queue is None or isinstance(queue, CompactionQueue):
            return False
        unit = queue.unit(offset)
        return unit is not None and self._reader.is_cold(unit[0])

    def look_message(self, commit_log_offset: int) -> bytes | None:
        """The record that starts at a log position; None for every position where none does."""
        record = self._log.record_at(commit_log_offset)
        return None if record is None else self._log.read(commit_log_offset, record.size)

    def update_index(self, until: int, max_records: int) -> bool:
        """Post messages to the key index, at most ``max_records``; it is written behind, by whoever queries.

        Returns:
            Whether everything before the log position ``until`` is in it.

        Raises:
            StoreError: the disk refused; the index stays where it was, the store as it is.
        """
        try:
            return self._index.catch_up(until, max_records)
        except OSError as error:
            raise StoreError(f"cannot write {self._layout.index}: {error.strerror}") from None

    def query_message(self, topic: str, key: str, max_count: int, begin: int, end: int) -> QueryResult:
        """Messages of ``topic`` under ``key`` with a store time in [begin, end] ms, as far as the index goes.

        Call ``update_index`` before. Only a hash of the key is compared: other keys may come along. Times are
        compared in whole seconds from some message on, so one of the second of ``begin`` may be missed.

        Args:
            max_count: the newest so many are taken, never more than 64.
        """
        return query_message(self._index, self._log, topic, key, max_count, begin, end)

    @property
    def rebuilt_units(self) -> int:
        """How many consume queue entries were missing when the store was opened, and made from the log."""
        return self._recovery.rebuilt_units

    @property
    def min_commit_log_offset(self) -> int:
        """Log position of the first byte kept."""
        return self._log.min_offset

    @property
    def earliest_store_time(self) -> int:
        """Store timestamp of the first message kept, ms; -1 in an empty store."""
        return self._log.store_time(self._log.min_offset)

    def disk_used_ratio(self) -> float:
        """Part of the store's file system that is in use, 0 to 1. OSError when it cannot be asked."""
        return self._disk.used_ratio(self._layout.root)

    @property
    def max_commit_log_offset(self) -> int:
        """Log position of the next record."""
        return self._log.max_offset

    @property
    def flushed_offset(self) -> int:
        """Everything before this log position is durable."""
        return self._log.flushed_offset

    def flush(self) -> int:
        """Make the log durable (fdatasync); may run on a worker thread while messages are put.

        Returns:
            The log position made durable.

        Raises:
            StoreError: the disk refused. What it holds is then unknown, and asking again would not tell (the
                system reports a failed write once): the store takes no more messages, but serves reads.
        """
        self._sync(self._log.flush)
        return self._log.flushed_offset

    def flush_all(self) -> None:
        """Make log, queues, key index and checkpoint durable; may run on a worker thread.

        Raises:
            StoreError: the disk refused, see ``flush``; or only the checkpoint could not be written.
        """
        timestamp = self._log.last_store_timestamp
        self._sync(self._log.flush)
        for queue in self._queues:
            self._sync(queue.flush)
        self._sync(self._compaction.flush)
        self._sync(self._flush_index)
        self._checkpoint.physic_msg_timestamp = timestamp
        self._checkpoint.logics_msg_timestamp = timestamp
        try:
            self._log.save_mtimes(timestamp)
            self._checkpoint.save()
        except OSError as error:
            raise StoreError(f"cannot write {self._layout.checkpoint}: {error.strerror}") from None

    def _flush_index(self) -> None:
        timestamp = self._index.flush()
        if timestamp:
            self._checkpoint.index_msg_timestamp = timestamp

    def _sync(self, make_durable: Callable[[], object]) -> None:
        if not self._sync_failure:
            try:
                make_durable()
                return
            except OSError as error:
                self._sync_failure = f"cannot flush the store {self._layout.root}: {error.strerror}"
                self._decide_writable()
        raise StoreError(self._sync_failure)
