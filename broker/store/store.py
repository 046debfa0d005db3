"""The message store: facade of one store directory in RocketMQ's layout."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Generator, Sequence
from pathlib import Path
from typing import Final

from rewindmq.broker.store.cleaner import StoreCleaner
from rewindmq.broker.store.compaction.queue import CompactionQueue
from rewindmq.broker.store.compaction.store import CompactionStore
from rewindmq.broker.store.config import CQ_ENTRY_BYTES, StoreConfig
from rewindmq.broker.store.consume_queue.put_counts import PutCounts
from rewindmq.broker.store.consume_queue.queue import ConsumeQueue
from rewindmq.broker.store.consume_queue.store_times import StoreTimes
from rewindmq.broker.store.consume_queue.table import ConsumeQueueTable
from rewindmq.broker.store.consume_queue.tags_code import SCHEDULE_TOPIC, DelayLevels, TagsCoder
from rewindmq.broker.store.consume_queue.time_index import TimeIndex
from rewindmq.broker.store.errors import StoreError, cause_of
from rewindmq.broker.store.files.disk import Disk, OsDisk
from rewindmq.broker.store.files.mapped_file import MmapCache
from rewindmq.broker.store.files.write_failure import WriteFailure
from rewindmq.broker.store.index.service import IndexService
from rewindmq.broker.store.layout.known_end import decode_known_end
from rewindmq.broker.store.layout.paths import StoreLayout
from rewindmq.broker.store.log.commit_log import CommitLog
from rewindmq.broker.store.messages.batch import BatchDraft
from rewindmq.broker.store.messages.query import query_message
from rewindmq.broker.store.messages.reader import EMPTY_QUEUE, MessageReader, PlainRead, RecordScan
from rewindmq.broker.store.messages.replica import Arrival, ReplicaWriter
from rewindmq.broker.store.messages.writer import MessageWriter, QueueRun
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
from rewindmq.broker.store.snapshot import OpenStore

_log = logging.getLogger(__name__)
_OS_DISK: Final = OsDisk()
# 127.0.0.1:10911, for a store without a broker.
_LOCAL_HOST: Final = b"\x7f\x00\x00\x01\x00\x00\x2a\x9f"
# A clean stop adds at most this many messages to the key index, to take less than a second.
_RECORDS_AT_CLOSE: Final = 20_000
_NO_ROOM: Final = PutResult(PutStatus.CREATE_MAPPED_FILE_FAILED)
_NOT_WRITABLE: Final = PutResult(PutStatus.SERVICE_NOT_AVAILABLE)


class MessageStore:
    """Commit log and consume queues under ``root``, for use by one thread; only flushes may run on another.

    A queue without messages has no state: its min and max offset are 0.

    Attributes:
        cleaner: deletes expired files.
        snapshot: describes the files to those who copy them.
    """

    def __init__(
        self,
        root: Path,
        config: StoreConfig,
        now_ms: Callable[[], int],
        disk: Disk = _OS_DISK,
        *,
        delay_scale: float = 1.0,
        writes_v2: bool = False,
        store_host: bytes = _LOCAL_HOST,
        put_counts: PutCounts | None = None,
        on_log_growth: Callable[[Path, int, int], object] | None = None,
    ) -> None:
        """
        Args:
            delay_scale: factor for the delay levels, see ``DelayLevels``.
            writes_v2: messages of topics longer than 127 bytes get V2 records; else they are refused.
            store_host: the broker address in new records: 4 bytes and a 4-byte port, or 16 and 4.
            put_counts: gets what is stored in each queue by requests, for statistics.
            on_log_growth: called with the file, start and end of a part of the log that is written soon.

        Raises:
            StoreError: a setting is invalid.
        """
        self._layout = StoreLayout(root)
        self._disk = disk
        self._pool = MmapCache(disk)
        coder = TagsCoder(DelayLevels(config.message_delay_level, delay_scale))
        self._log = CommitLog(self._layout.commit_log, config, disk, self._pool, on_log_growth)
        self._queues = ConsumeQueueTable(self._layout.consume_queue, config, disk, self._pool)
        self._checkpoint = StoreCheckpoint(self._layout.checkpoint, disk)
        self._index = IndexService(self._layout.index, config, self._log, disk, self._pool, now_ms)
        self._compaction = CompactionStore(
            self._layout.compaction, config, self._log, self._queues, disk, self._pool
        )
        self._now_ms = now_ms
        entries_per_file = config.consume_queue_file_bytes // CQ_ENTRY_BYTES
        self._time_index = TimeIndex(self._layout.time_index, entries_per_file, disk, self._pool)
        self._times = StoreTimes(self._log, self._time_index)
        self._recovery = Recovery(
            self._log, self._queues, self._checkpoint, coder, config.check_crc_on_recover
        )
        self._write_failure = WriteFailure(now_ms)
        self._writer = MessageWriter(
            self._log,
            self._queues,
            config,
            coder,
            now_ms,
            self._write_failure,
            PutCounts() if put_counts is None else put_counts,
            store_host,
            writes_v2=writes_v2,
        )
        self._replica = ReplicaWriter(self._log, self._queues, coder, config)
        self.cleaner = StoreCleaner(
            self._log,
            self._queues,
            self._index,
            self._compaction,
            self._time_index,
            disk,
            self._write_topic_end,
        )
        self.snapshot = OpenStore(self._layout, self._log, self._queues, self._index, disk)
        memory = config.physical_memory_bytes
        self._reader = MessageReader(self._log, config, disk.physical_memory() if memory is None else memory)
        # Set by ``Disk.lock`` when the store is opened.
        self._unlock: Callable[[], None]
        self._is_open = False
        # True if messages are accepted. Threads that flush change it, too.
        self._is_writable = False
        self._writable_lock = threading.Lock()
        self._is_replica = False
        self._is_disk_full = False
        # Set for tests: the whole disk counts as used.
        self.pretends_disk_full = False
        self._sync_failure = ""

    def open(self) -> None:
        """Lock, load and recover the directory. Open a store only once.

        Raises:
            StoreError: the directory is in use or not writable, has a stray or short file, or an unsupported
                layout.
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
            self._recovery.run(clean, decode_known_end(self._disk.read(layout.known_end)))
            self._compaction.load(durable_ms=None if clean else self._checkpoint.min_timestamp)
            self._index.load(clean=clean, checkpoint=self._checkpoint)
            self._time_index.load(self._log)
            if not clean:
                # A killed process may have created files whose names are not durable yet.
                self._sync_names(layout.root)
                self._log.flush()
            self._disk.touch(layout.abort)
            self._disk.remove(layout.known_end)
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

    def _sync_names(self, folder: Path) -> None:
        for entry in self._disk.list_folder(folder):
            if entry.is_folder:
                self._sync_names(entry.path)
        self._disk.sync_folder(folder)

    def close(self) -> None:
        """Stop cleanly: make everything durable and remove the abort marker. Do nothing if not open.

        Raises:
            StoreError: the disk failed; the next open recovers as after a crash.
        """
        if not self._is_open:
            return
        self._is_open = False
        self._decide_writable()
        try:
            for _ in self.cleaner.delete_former():
                pass
            self._finish_index()
            self.flush_all()
            self._disk.remove(self._layout.abort)
        except OSError as error:
            raise StoreError(f"cannot remove {self._layout.abort}: {error.strerror}") from None
        finally:
            self._release()

    def _finish_index(self) -> None:
        """Complete the key index if it exists and lacks few messages."""
        if self._index.is_present:
            try:
                self._index.drop_suspect()
                self._index.catch_up(self._log.max_offset, _RECORDS_AT_CLOSE)
            except OSError as error:
                _log.error("the key index is not up to date: %s", cause_of(error))

    def _decide_writable(self) -> None:
        with self._writable_lock:
            is_shut = self._is_replica or self._is_disk_full or bool(self._sync_failure)
            self._is_writable = self._is_open and not is_shut

    @property
    def is_disk_full(self) -> bool:
        """True if messages are refused because the disk is too full; set by the cleaning service."""
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
        """Append one message, readable on return. Client input never raises."""
        if not self._is_writable:
            return _NOT_WRITABLE
        if message.topic in self._compaction.topics:
            return self._put_compacted(message, lambda: self._writer.put(message))
        return self._writer.put(message)

    def draft(self, message: StoredMessage) -> BatchDraft:
        """Begin a batch, to which entries are added; ``message`` has the shared fields."""
        return self._writer.draft(message)

    def prepare_draft(self, draft: BatchDraft) -> Generator[None]:
        """Do what can be done before ``put_draft`` of a large batch; yields after about 1 ms of work."""
        if self._is_writable:
            yield from self._writer.prepare_batch(draft)

    def put_draft(self, draft: BatchDraft) -> PutResult:
        """Append the messages of a batch, all or none."""
        if not self._is_writable:
            return _NOT_WRITABLE
        message = draft.message
        if message.topic in self._compaction.topics:
            return self._put_compacted(message, lambda: self._writer.put_batch(draft))
        return self._writer.put_batch(draft)

    def put_batch(self, message: StoredMessage, entries: BatchEntries) -> PutResult:
        """Append the messages of a batch that needs no slices; see ``put_draft``."""
        draft = self.draft(message)
        draft.add(entries)
        return self.put_draft(draft)

    @property
    def run_start(self) -> tuple[int, int, int] | None:
        """Where and when a message would be stored now; None if messages are refused.

        Returns:
            The log position, the position up to which ``put_run`` may write, and the store time in ms.
        """
        return self._writer.run_start if self._is_writable else None

    def put_run(self, records: bytes, queues: Sequence[QueueRun], timestamp: int) -> bool:
        """Append encoded records of queues of ``plain_queue``, made for ``run_start`` just before.

        The records must end before the room's end, and the entries of a queue must fit into its active file.

        Returns:
            False if the disk refused some of the bytes; nothing is stored.
        """
        return self._writer.put_run(records, queues, timestamp)

    @property
    def removed_queues(self) -> int:
        """Number of queues that were deleted. While it stays, so do the queues of ``plain_queue``."""
        return self._queues.removals

    def plain_queue(self, topic: str, queue_id: int) -> ConsumeQueue | None:
        """Return a queue whose messages are stored as they are; None for others and unknown queues."""
        if topic == SCHEDULE_TOPIC or topic in self._compaction.topics:
            return None
        queue = self._queues.get((topic, queue_id))
        return queue if queue is not None and queue.topic_field else None

    def _write_topic_end(self, topic: str) -> None:
        """Append the record that ends a topic's life. A slave waits for its master's.

        Raises:
            StoreError: the disk failed; nothing was stored.
        """
        if self._is_replica:
            return
        if self._sync_failure:
            raise StoreError(self._sync_failure)
        try:
            self._writer.end_topic(topic)
        except OSError as error:
            raise StoreError(f"cannot write {cause_of(error)}") from None

    def _put_compacted(self, message: StoredMessage, put: Callable[[], PutResult]) -> PutResult:
        """Append a message behind the compacted queue's end, and copy it to the compaction log."""
        try:
            self._compaction.prepare_put(message.topic, message.queue_id, self._now_ms())
        except OSError as error:
            self._write_failure.begin(error)
            return _NO_ROOM
        self._write_failure.end()
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
        """Return messages from ``offset`` on (docs/spec/broker.md B.5).

        Args:
            max_count: upper limit; the transfer limits may give fewer. The first message is returned whatever
                its size.
            tag_codes: return only messages with one of these tagsCodes; None returns all.
            scan: further filter for each record. Compaction topics ignore it and ``tag_codes``, because
                RocketMQ does not filter them.
        """
        if topic in self._compaction.topics:
            compacted = self._compaction.find(topic, queue_id)
            return EMPTY_QUEUE if compacted is None else compacted.read(offset, max_count)
        queue = self._queues.get((topic, queue_id))
        if queue is None:
            return EMPTY_QUEUE
        return self._reader.read(queue, offset, max_count, tag_codes, scan)

    def find_messages(self, topic: str, queue_id: int, offset: int, max_count: int) -> PlainRead | None:
        """Return where ``get_message`` would find messages; None if it must look itself."""
        queue = self.plain_queue(topic, queue_id)
        return None if queue is None else self._reader.find(queue, offset, max_count)

    # Replication

    def become_replica(self) -> None:
        """Accept only messages of ``append_replica`` from now on."""
        self._is_replica = True
        self._decide_writable()

    @property
    def replica_position(self) -> int:
        """The log position from which ``append_replica`` must continue."""
        return self._replica.position

    @property
    def replica_end(self) -> int:
        """The log position up to which the master's log is stored here, without an unfinished record."""
        return self._replica.end

    def restart_replica(self) -> None:
        """Discard an unfinished record and continue from ``max_commit_log_offset``."""
        self._replica.restart()

    def append_replica(self, position: int, data: bytes) -> list[Arrival]:
        """Append bytes of a master's log at the same position; whole records take effect.

        Returns:
            The messages that have become readable.

        Raises:
            StoreError: the data does not follow the log's end, or the disk failed; earlier records are
                stored.
        """
        if self._sync_failure:
            raise StoreError(self._sync_failure)
        try:
            arrivals = self._replica.append(position, data)
        except OSError as error:
            raise StoreError(f"cannot write {cause_of(error)}") from None
        if self._compaction.topics:
            for arrival in arrivals:
                if arrival.topic in self._compaction.topics:
                    self._compaction.find(arrival.topic, arrival.queue_id)
        return arrivals

    def log_chunk(self, position: int, max_bytes: int) -> bytes:
        """Return log bytes at a position, all from one segment; empty outside the log."""
        return self._log.chunk(position, max_bytes)

    @property
    def last_segment_base(self) -> int:
        """Return the log position of the newest segment's first byte, 0 if there is none."""
        files = self._log.segments.files
        return files[-1].base if files else 0

    # Queries

    @property
    def store_host(self) -> bytes:
        """The broker address in new records: 4 bytes and a 4-byte port, or 16 and 4."""
        return self._writer.store_host

    def set_compaction_topics(self, topics: Collection[str]) -> None:
        """Set the topics that are read from the compaction store (``cleanup.policy=COMPACTION``)."""
        self._compaction.set_topics(topics)

    def _queue(self, topic: str, queue_id: int) -> ConsumeQueue | CompactionQueue | None:
        """Return the queue to read from: compacted or ordinary."""
        if topic in self._compaction.topics:
            return self._compaction.find(topic, queue_id)
        return self._queues.get((topic, queue_id))

    def stored_queue_ids(self, topic: str) -> list[int]:
        """Return the ids of the topic's queues that ever had a message."""
        return [queue.queue_id for queue in self._queues.of_topic(topic)]

    def min_offset(self, topic: str, queue_id: int) -> int:
        """Return the queue offset of the oldest message; 0 for an unknown queue."""
        queue = self._queue(topic, queue_id)
        return 0 if queue is None else queue.min_offset

    def max_offset(self, topic: str, queue_id: int) -> int:
        """Return the queue offset of the next message; 0 for an unknown queue."""
        queue = self._queue(topic, queue_id)
        return 0 if queue is None else queue.max_offset

    def search_offset(
        self, topic: str, queue_id: int, timestamp: int, boundary: Boundary, mode: SearchMode
    ) -> int:
        """Return the queue offset for ``timestamp`` (ms), by the rules of ``mode``; 0 if empty."""
        queue = self._queue(topic, queue_id)
        if queue is None:
            return 0
        if isinstance(queue, CompactionQueue):
            return queue.search(timestamp, boundary, mode)
        return self._times.search(queue, timestamp, boundary, mode)

    def store_time(self, topic: str, queue_id: int, offset: int) -> int:
        """Return the store timestamp of a message, ms; -1 if the offset has none."""
        queue = self._queue(topic, queue_id)
        if isinstance(queue, CompactionQueue):
            return queue.store_time(offset)
        entry = None if queue is None else queue.entry(offset)
        if queue is None or entry is None:
            return -1
        return self._times.store_time(queue, offset, entry[0])

    def entry(self, topic: str, queue_id: int, offset: int) -> tuple[int, int, int] | None:
        """Return log position, size and tagsCode of the message at a queue offset; None if there is none."""
        queue = self._queues.get((topic, queue_id))
        return None if queue is None else queue.entry(offset)

    def is_cold(self, topic: str, queue_id: int, offset: int) -> bool:
        """Return True if a message counts as being on disk; False if there is none at that offset.

        Always False in a compaction topic.
        """
        queue = self._queue(topic, queue_id)
        if queue is None or isinstance(queue, CompactionQueue):
            return False
        entry = queue.entry(offset)
        return entry is not None and self._reader.is_cold(entry[0])

    def look_message(self, commit_log_offset: int) -> bytes | None:
        """Return the record that starts at a log position; None at any other position."""
        record = self._log.record_at(commit_log_offset)
        return None if record is None else self._log.read(commit_log_offset, record.size)

    def look_properties(self, commit_log_offset: int) -> bytes | None:
        """Return the properties text of the record at a log position; None at any other position."""
        record = self._log.record_at(commit_log_offset)
        return None if record is None else self._log.properties_of(record)

    def update_index(self, until: int, max_records: int) -> bool:
        """Add at most ``max_records`` messages to the key index; call it before a query.

        Returns:
            True if every message before the log position ``until`` is in the index.

        Raises:
            StoreError: the disk failed; index and store are unchanged.
        """
        try:
            return self._index.catch_up(until, max_records)
        except OSError as error:
            raise StoreError(f"cannot write {cause_of(error)}") from None

    def query_message(
        self, topic: str, key: str, max_count: int, begin: int, end: int
    ) -> Generator[None, None, QueryResult]:
        """Return the indexed messages of ``topic`` under ``key`` with a store time in [begin, end] ms.

        Yields after some ms of work. Messages may be stored and deleted meanwhile.

        Call ``update_index`` before. The index compares only a hash of the key, so messages with other keys
        may be included. It compares times in whole seconds, so a message of the second of ``begin`` may be
        missing.

        Args:
            max_count: upper limit, capped at 64; the newest messages are returned.
        """
        return query_message(self._index, self._log, topic, key, max_count, begin, end)

    @property
    def rebuilt_entries(self) -> int:
        """Number of consume-queue entries that were rebuilt from the log at open."""
        return self._recovery.rebuilt_entries

    @property
    def min_commit_log_offset(self) -> int:
        """Log position of the first byte in the log."""
        return self._log.min_offset

    @property
    def earliest_store_time(self) -> int:
        """Return the store timestamp of the oldest message, ms; -1 in an empty store."""
        return self._log.store_time(self._log.min_offset)

    def disk_used_ratio(self) -> float:
        """Return the used part of the store's file system, 0 to 1. Raise OSError if it is unavailable."""
        return 1.0 if self.pretends_disk_full else self._disk.used_ratio(self._layout.root)

    def disk_capacity(self) -> tuple[int, int]:
        """Return the bytes of the store's file system, and the free ones. Raise OSError if unavailable."""
        return self._disk.capacity(self._layout.root)

    @property
    def commit_log_folder(self) -> Path:
        """The folder of the commit log's files."""
        return self._layout.commit_log

    @property
    def max_commit_log_offset(self) -> int:
        """Log position of the next record."""
        return self._log.max_offset

    @property
    def flushed_offset(self) -> int:
        """Log position before which everything is durable."""
        return self._log.flushed_offset

    @property
    def write_failure(self) -> str:
        """Why the newest message refused with CREATE_MAPPED_FILE_FAILED had no room: path and reason."""
        return self._write_failure.cause

    @property
    def flush_failure(self) -> str:
        """Why a flush failed, until ``flush_all`` succeeds: the store refuses messages; else ""."""
        return self._sync_failure

    def prepare_retry(self) -> None:
        """Do what must precede the next ``flush_all`` after a failure; on the thread that puts messages.

        Raises:
            StoreError: the disk still fails; call again.
        """
        try:
            self._index.drop_suspect()
        except OSError as error:
            raise StoreError(f"cannot delete {cause_of(error)}") from None

    def flush(self) -> int:
        """Make the log durable (fdatasync); may run on a worker thread while messages are put.

        Returns:
            The log position made durable.

        Raises:
            StoreError: the disk failed, and the durable state is unknown. The store serves reads, but accepts
                no more messages until a ``flush_all`` has succeeded, which writes the unflushed bytes again.
        """
        self._sync(self._log.flush)
        return self._log.flushed_offset

    def flush_all(self) -> None:
        """Make log, queues, key index and checkpoint durable; may run on a worker thread.

        Raises:
            StoreError: the disk failed, see ``flush``; or only the checkpoint could not be written.
        """
        timestamp = self._log.last_store_timestamp
        # Until the queues of a deleted topic are gone, recovery must begin before the record of its end.
        has_former = self._queues.has_former
        self._sync(self._queues.sync_deletions)
        self._sync(self._log.flush)
        for queue in self._queues:
            self._sync(queue.flush)
        self._sync(self._compaction.flush)
        self._sync(self._flush_index)
        if not has_former:
            self._checkpoint.physic_msg_timestamp = timestamp
            self._checkpoint.logics_msg_timestamp = timestamp
        try:
            self._log.save_mtimes(timestamp)
            self._checkpoint.save()
        except OSError as error:
            raise StoreError(f"cannot write {cause_of(error)}") from None
        self._sync_failure = ""
        self._decide_writable()

    def _flush_index(self) -> None:
        timestamp = self._index.flush()
        if timestamp:
            self._checkpoint.index_msg_timestamp = timestamp

    def _sync(self, make_durable: Callable[[], object]) -> None:
        try:
            make_durable()
        except OSError as error:
            self._sync_failure = f"cannot flush {cause_of(error)}"
            self._decide_writable()
            raise StoreError(self._sync_failure) from None
