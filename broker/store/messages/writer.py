"""Appending messages: the hot path of every send (docs/spec/store.md 3, 4.4, 10.1)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from itertools import chain
from typing import Final
from zlib import crc32

from rewindmq.broker.store.config import CQ_ENTRY_BYTES, StoreConfig
from rewindmq.broker.store.consume_queue.put_counts import PutCounts
from rewindmq.broker.store.consume_queue.queue import ConsumeQueue, long_topic_field_of, topic_field_of
from rewindmq.broker.store.consume_queue.table import ConsumeQueueTable
from rewindmq.broker.store.consume_queue.tags_code import SCHEDULE_TOPIC, TagsCoder
from rewindmq.broker.store.files.refused_writes import REFUSED_WRITES
from rewindmq.broker.store.files.write_failure import WriteFailure
from rewindmq.broker.store.layout.topic_end import TOPIC_END_PROPERTIES, TOPIC_END_SYS_FLAG
from rewindmq.broker.store.log.commit_log import CommitLog
from rewindmq.broker.store.log.record_check import RECORD_HEADS
from rewindmq.broker.store.messages.batch import CRC_MASK, OTHER_FLAGS, BatchDraft, Head
from rewindmq.broker.store.model import PutResult, PutStatus, StoredMessage
from rewindmq.protocol.limits import MAX_PROPERTIES_BYTES, MAX_TOPIC_LENGTH
from rewindmq.protocol.message.record import BLANK_BYTES, MAGIC_V1, MAGIC_V2, encode_record
from rewindmq.protocol.message.sysflag import TRANSACTION_MASK, MessageSysFlag
from rewindmq.protocol.names import MAX_NAME_BYTES

_INT16: Final = struct.Struct(">H")
# Prepared and rollback records are not messages of a queue: they have no entry, and queue offset 0.
_HALF: Final = frozenset((int(MessageSysFlag.TRANSACTION_PREPARED), int(MessageSysFlag.TRANSACTION_ROLLBACK)))
# Size and magic are written last, so that a torn record is never read as a record.
_MAGIC_END: Final = 8

_PUT_OK: Final = PutStatus.PUT_OK
_ILLEGAL: Final = PutResult(PutStatus.MESSAGE_ILLEGAL)
_NO_ROOM: Final = PutResult(PutStatus.CREATE_MAPPED_FILE_FAILED)


# A queue's part of a run: the queue, its encoded entries, the number of requests, their messages beyond one
# for each request, the bytes of the records, and the log position behind the last record.
QueueRun = tuple[ConsumeQueue, bytes, int, int, int, int]


class MessageWriter:
    """Appends a record, then its consume-queue entry, at the queue's next offset.

    Args:
        writes_v2: topics of 128 to 255 bytes get a V2 record; otherwise their messages are refused.
        counts: what was stored, by queue.
        store_host: the broker address in new records: 8 or 20 bytes.
    """

    def __init__(
        self,
        log: CommitLog,
        queues: ConsumeQueueTable,
        config: StoreConfig,
        coder: TagsCoder,
        now_ms: Callable[[], int],
        failure: WriteFailure,
        counts: PutCounts,
        store_host: bytes,
        *,
        writes_v2: bool = False,
    ) -> None:
        self._log = log
        self._writes_v2 = writes_v2
        self._failure = failure
        self._queues = queues
        self._coder = coder
        self._now_ms = now_ms
        self._max_message_bytes = config.max_message_size
        self._max_record_bytes = config.mapped_file_size_commit_log - BLANK_BYTES
        self._heads: dict[int, Head] = {}
        self.counts = counts
        self.store_host = store_host
        store_flag = MessageSysFlag.STOREHOST_V6 if len(store_host) == 20 else 0
        for born_bytes, born_flag in ((8, 0), (20, MessageSysFlag.BORNHOST_V6)):
            flags = int(store_flag | born_flag)
            head = RECORD_HEADS[flags]
            self._heads[born_bytes] = Head(head.layout, head.body_at, flags)

    def put(self, message: StoredMessage) -> PutResult:
        """Append one message; a refused message changes nothing."""
        queue_id = message.queue_id
        queue = self._queues.get((message.topic, queue_id)) or self._queues.create(message.topic, queue_id)
        born_host = message.born_host
        head = self._heads.get(len(born_host))
        body, properties = message.body, message.properties
        body_bytes = len(body)
        topic_field, magic = b"" if queue is None else queue.topic_field, MAGIC_V1
        if not topic_field and self._writes_v2:
            topic_field, magic = long_topic_field_of(message.topic), MAGIC_V2
        if (
            queue is None
            or head is None
            or not topic_field
            or body_bytes > self._max_message_bytes
            or len(properties) > MAX_PROPERTIES_BYTES
            # Recovery takes zero bytes for a sector that the disk has lost (``record_check.is_torn``).
            or 0 in properties
        ):
            return _ILLEGAL
        layout, body_at, host_flags = head
        tail = topic_field + _INT16.pack(len(properties)) + properties
        size = body_at + body_bytes + len(tail)
        log, timestamp = self._log, self._now_ms()
        if timestamp < log.last_store_timestamp:
            timestamp = log.last_store_timestamp
        sys_flag = message.sys_flag & OTHER_FLAGS | host_flags
        has_queue_entry = sys_flag & TRANSACTION_MASK not in _HALF
        if log.max_offset + size > log.room_end or queue.max_offset >= queue.room_end:
            if size > self._max_record_bytes:
                return _ILLEGAL
            if not self._make_room(queue, size, 1 if has_queue_entry else 0, timestamp):
                return _NO_ROOM
        physical_offset = log.max_offset
        queue_offset = queue.max_offset if has_queue_entry else 0
        try:
            fields = layout.pack(
                size,
                magic,
                crc32(body) & CRC_MASK,
                queue_id,
                message.flag,
                queue_offset,
                physical_offset,
                sys_flag,
                message.born_timestamp,
                born_host,
                timestamp,
                self.store_host,
                message.reconsume_times,
                message.prepared_transaction_offset,
                body_bytes,
            )
        except struct.error:
            # A number is out of range of its field.
            return _ILLEGAL
        buffer, start = log.buffer, physical_offset - log.base
        body_start = start + body_at
        body_end = body_start + body_bytes
        buffer[body_start:body_end] = body
        buffer[body_end : start + size] = tail
        buffer[start:body_start] = fields
        try:
            if has_queue_entry:
                tags_code = message.tags_code
                if message.topic == SCHEDULE_TOPIC:
                    tags_code = self._coder.tags_code(SCHEDULE_TOPIC, properties, timestamp)
                queue.append(physical_offset, size, tags_code, timestamp)
            else:
                REFUSED_WRITES.check()
        except OSError as error:
            return self._take_back(size, error)
        log.max_offset = physical_offset + size
        log.last_store_timestamp = timestamp
        # As ``PutCounts.add``, without a call.
        counts = self.counts
        if not queue.put_bytes:
            counts.begin(queue)
        queue.put_requests += 1
        queue.put_bytes += size
        counts.last = queue
        return PutResult(_PUT_OK, physical_offset, queue_offset, size, timestamp, 1)

    def draft(self, message: StoredMessage) -> BatchDraft:
        """Begin a batch: its records are encoded as its entries are added."""
        illegal = message.topic == SCHEDULE_TOPIC or message.sys_flag & TRANSACTION_MASK in _HALF
        head = None if illegal else self._heads.get(len(message.born_host))
        topic_field = topic_field_of(message.topic)
        return BatchDraft(message, head, topic_field, self._max_message_bytes, self._max_record_bytes)

    def prepare_batch(self, draft: BatchDraft) -> Generator[None]:
        """Do what can be done before ``put_batch`` of a large batch; yields after about 1 ms of work.

        If the disk fails, ``put_batch`` says so.
        """
        draft.complete()
        if draft.is_legal:
            with suppress(OSError):
                yield from self._log.touch_room(draft.size)

    def put_batch(self, draft: BatchDraft) -> PutResult:
        """Append the messages of a batch in sequence with one store timestamp: all of them, or none."""
        message, total, count = draft.message, draft.size, len(draft)
        draft.complete()
        if not draft.is_legal or not count:
            return _ILLEGAL
        queue = self._queues.get((message.topic, message.queue_id)) or self._queues.create(
            message.topic, message.queue_id
        )
        if queue is None:
            return _ILLEGAL
        log = self._log
        timestamp = max(self._now_ms(), log.last_store_timestamp)
        if (log.max_offset + total > log.room_end or queue.max_offset + count > queue.room_end) and (
            not self._make_room(queue, total, count, timestamp)
        ):
            return _NO_ROOM
        queue_offset, physical_offset = queue.max_offset, log.max_offset
        try:
            pieces = draft.records(physical_offset, queue_offset, timestamp, self.store_host)
        except struct.error:
            return _ILLEGAL
        buffer = log.buffer
        start = at = physical_offset - log.base
        # The first record's magic is written last, so that a torn batch is never read.
        first = next(pieces)
        for piece in chain((bytes(_MAGIC_END) + first[_MAGIC_END:],), pieces):
            buffer[at : at + len(piece)] = piece
            at += len(piece)
        buffer[start : start + _MAGIC_END] = first[:_MAGIC_END]
        end = physical_offset + total
        try:
            queue.append_encoded(draft.entries(physical_offset), count, end, timestamp)
        except OSError as error:
            return self._take_back(total, error)
        log.max_offset = end
        log.last_store_timestamp = timestamp
        self.counts.add(queue, 1, count - 1, total)
        return PutResult(_PUT_OK, physical_offset, queue_offset, total, timestamp, count)

    def end_topic(self, topic: str) -> None:
        """Append the record that ends a topic's life, unless its name is too long for a record.

        Raises:
            OSError: the disk is full; nothing is written.
        """
        if len(topic.encode()) > (MAX_NAME_BYTES if self._writes_v2 else MAX_TOPIC_LENGTH):
            return
        log = self._log
        timestamp = max(self._now_ms(), log.last_store_timestamp)
        record = self._topic_end(topic, timestamp)
        if log.max_offset + len(record) > log.room_end:
            log.make_room(len(record))
            # The record may be in the next segment now.
            record = self._topic_end(topic, timestamp)
        log.write_record(record)
        try:
            REFUSED_WRITES.check()
        except OSError:
            log.take_back(len(record))
            raise
        log.advance(len(record), timestamp)

    def _topic_end(self, topic: str, timestamp: int) -> bytes:
        return encode_record(
            topic=topic,
            stored_body=b"",
            properties=TOPIC_END_PROPERTIES,
            queue_id=0,
            queue_offset=0,
            physical_offset=self._log.max_offset,
            born_timestamp=timestamp,
            born_host=self.store_host,
            store_timestamp=timestamp,
            store_host=self.store_host,
            sys_flag=TOPIC_END_SYS_FLAG,
        )

    @property
    def run_start(self) -> tuple[int, int, int]:
        """Where and when a record would be stored now: log position, position behind the room, and ms."""
        log = self._log
        return log.max_offset, log.room_end, max(self._now_ms(), log.last_store_timestamp)

    def _take_back(self, size: int, error: OSError) -> PutResult:
        """Clear what a refused write has left of ``size`` bytes behind the log's end."""
        self._log.take_back(size)
        self._failure.begin(error)
        return _NO_ROOM

    def put_run(self, records: bytes, queues: Sequence[QueueRun], timestamp: int) -> bool:
        """Append encoded records of several queues, which were made for ``run_start``.

        Returns:
            False if the disk refused some of the bytes; nothing has changed, and there is no room any more.
        """
        log = self._log
        start = log.max_offset - log.base
        # The first record's magic is written last, so that a torn run is never read.
        log.buffer[start + _MAGIC_END : start + len(records)] = memoryview(records)[_MAGIC_END:]
        log.buffer[start : start + _MAGIC_END] = records[:_MAGIC_END]
        try:
            for run in queues:
                run[0].write_encoded(run[1])
            REFUSED_WRITES.check()
        except OSError as error:
            for run in queues:
                run[0].take_back(len(run[1]) // CQ_ENTRY_BYTES)
            self._take_back(len(records), error)
            return False
        log.max_offset += len(records)
        log.last_store_timestamp = timestamp
        counts = self.counts
        for queue, entries, requests, extra, size, end in queues:
            queue.advance(len(entries) // CQ_ENTRY_BYTES, end, timestamp)
            # As ``PutCounts.add``, without a call.
            if not queue.put_bytes:
                counts.begin(queue)
            queue.put_requests += requests
            queue.put_bytes += size
            if extra:
                queue.put_extra += extra
        counts.last = queue
        return True

    def _make_room(self, queue: ConsumeQueue, size: int, entries: int, timestamp: int) -> bool:
        log = self._log
        try:
            # Map the queue's file last: a new segment may evict its mapping from the cache.
            if log.max_offset + size > log.room_end:
                log.make_room(size)
            if queue.max_offset + entries > queue.room_end:
                queue.make_room(entries, timestamp)
        except OSError as error:
            self._failure.begin(error)
            return False
        self._failure.end()
        return True
