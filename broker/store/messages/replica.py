"""A slave's log: copies the master's log, byte for byte, at the same positions.

4.9.4 ``CommitLog#appendData`` and ``ReputMessageService``. Changed:

- The slave appends whole records only, and keeps the start of an unfinished record in memory. The log on disk
  is therefore always valid, and a slave acknowledges whole messages.
- If a queue starts over at offset 0 on the master (because its topic was deleted, or all its messages had
  expired), it also starts over here: at the record that ends the topic's life, or at its next message. In a
  4.9.4 slave, the queue's new messages are missing until their offsets exceed the old maximum.
- Bytes that are not a valid record are refused. 4.9.4 stores them, and adds no later message to any queue.
- Records that no broker writes are refused: a body that does not match its CRC, a topic or queue id that
  cannot be a folder or printed, a queue offset or store timestamp out of range. Nothing of such a record is
  stored.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from rewindmq.broker.store.config import CQ_ENTRY_BYTES, StoreConfig
from rewindmq.broker.store.consume_queue.queue import ConsumeQueue
from rewindmq.broker.store.consume_queue.table import ConsumeQueueTable
from rewindmq.broker.store.consume_queue.tags_code import TagsCoder
from rewindmq.broker.store.errors import StoreError
from rewindmq.broker.store.files.refused_writes import REFUSED_WRITES
from rewindmq.broker.store.layout.queue_path import names_a_queue
from rewindmq.broker.store.layout.topic_end import is_topic_end
from rewindmq.broker.store.log.commit_log import CommitLog
from rewindmq.broker.store.log.record_check import StoredRecord, check_record
from rewindmq.protocol.message.record import MAGIC_BLANK, MAGIC_V1, MAGIC_V2
from rewindmq.protocol.message.sysflag import TRANSACTION_MASK, MessageSysFlag

_SIZE_AND_MAGIC: Final = struct.Struct(">iI")
_MAGICS: Final = frozenset((MAGIC_V1, MAGIC_V2))
_HALF: Final = frozenset((int(MessageSysFlag.TRANSACTION_PREPARED), int(MessageSysFlag.TRANSACTION_ROLLBACK)))
# Most bytes of a record besides its body: fixed fields, topic, properties.
_MAX_OVERHEAD_BYTES: Final = 131_072
# The largest queue id of a topic with as many queues as a broker permits.
MAX_QUEUE_ID: Final = 65_534
# 9999-12-31, the latest modification time that every file system can store.
_LAST_MS: Final = 253_402_300_799_999
_MAX_POSITION: Final = 2**63 - 1
# The longest gap in a queue's offsets that is filled; a master's compaction topics have such gaps.
_MAX_GAP: Final = 1_000_000


class Arrival(NamedTuple):
    """A message that has become readable.

    Attributes:
        max_offset: the message's queue offset plus 1.
    """

    topic: str
    queue_id: int
    max_offset: int
    tags_code: int
    properties: bytes


class ReplicaWriter:
    """Appends the master's log, received in pieces of any size, at the master's positions."""

    def __init__(
        self, log: CommitLog, queues: ConsumeQueueTable, coder: TagsCoder, config: StoreConfig
    ) -> None:
        self._log = log
        self._queues = queues
        self._coder = coder
        self._max_record_bytes = config.max_message_size + _MAX_OVERHEAD_BYTES
        self._max_queue_offset = (_MAX_POSITION - config.consume_queue_file_bytes) // CQ_ENTRY_BYTES
        # The start of an unfinished record, not yet in the log.
        self._front = bytearray()
        # The log may already be in the next segment: bytes of the previous segment's unused rest that have
        # not been received yet.
        self._unused = 0

    @property
    def position(self) -> int:
        """The log position that must be received next."""
        return self.end + len(self._front)

    @property
    def end(self) -> int:
        """The log position up to which everything received is stored."""
        return self._log.max_offset - self._unused

    def restart(self) -> None:
        """Discard the unfinished record; continue from the end of the log."""
        self._front.clear()
        self._unused = 0

    def append(self, position: int, data: bytes) -> list[Arrival]:
        """Append the records that are now complete to log and queues.

        Args:
            position: log position of the first byte; an empty log starts at the start of a segment.

        Raises:
            StoreError: the data starts at another position or is not a record; earlier records are in the
                log.
            OSError: the disk fails; earlier records are in the log.
        """
        log = self._log
        if not log.segments.files:
            self._begin(position)
        if position != self.position:
            raise StoreError(f"log position {self.position} must come next, not {position}")
        if self._unused:
            passed = min(self._unused, len(data))
            self._unused -= passed
            data = data[passed:]
        self._front += data
        if not self._has_record(self._front):
            return []
        block = bytes(self._front)
        arrivals: list[Arrival] = []
        at = 0
        try:
            while at < len(block) and (size := self._next(block, at, arrivals)):
                at += size
        finally:
            del self._front[:at]
        return arrivals

    def _begin(self, position: int) -> None:
        if position < 0 or position % self._log.segment_bytes:
            raise StoreError(
                f"log position {position} is not the start of a segment: the master needs the same"
                f" mappedFileSizeCommitLog, {self._log.segment_bytes}"
            )
        self._log.begin_at(position)

    def _has_record(self, front: bytearray) -> bool:
        """True if the buffer starts with a complete or an invalid record."""
        if len(front) < _SIZE_AND_MAGIC.size:
            return False
        size: int
        size, magic = _SIZE_AND_MAGIC.unpack_from(front)
        return magic not in _MAGICS or len(front) >= size or size > self._max_record_bytes

    def _next(self, block: bytes, at: int, arrivals: list[Arrival]) -> int:
        """Append the record at ``at`` and return its size; 0 if it is unfinished."""
        if len(block) - at < _SIZE_AND_MAGIC.size:
            return 0
        log = self._log
        size: int
        size, magic = _SIZE_AND_MAGIC.unpack_from(block, at)
        left = log.base + log.segment_bytes - log.max_offset
        if magic == MAGIC_BLANK and size == left:
            log.end_segment()
            passed = min(size, len(block) - at)
            self._unused = size - passed
            return passed
        if magic not in _MAGICS or not 0 < size <= min(left, self._max_record_bytes):
            raise self._no_record()
        if len(block) - at < size:
            return 0
        record = check_record(block, at, at + size, log.max_offset, check_crc=True)
        if record is None:
            raise self._no_record()
        self._check_fields(record)
        self._apply(record, block[at : at + size], arrivals)
        return size

    def _no_record(self) -> StoreError:
        return StoreError(
            f"the master's bytes at log position {self._log.max_offset} are not a record that can follow this"
            " log: the logs, the mappedFileSizeCommitLog or the maxMessageSize of the two brokers differ, or"
            " the body does not match its CRC"
        )

    def _check_fields(self, record: StoredRecord) -> None:
        """Check what the record adds to the store besides its bytes.

        Raises:
            StoreError: no broker writes such a record; nothing of it is stored.
        """
        fault = None
        topic = _topic_of(record)
        if not names_a_queue(topic, record.queue_id) or not topic.isprintable():
            fault = "no valid topic and queue id"
        elif record.queue_id > MAX_QUEUE_ID:
            fault = f"queue id {record.queue_id}, the limit is {MAX_QUEUE_ID}"
        elif not 0 <= record.queue_offset <= self._max_queue_offset:
            fault = f"queue offset {record.queue_offset}"
        elif not 0 <= record.store_timestamp <= _LAST_MS:
            fault = f"store timestamp {record.store_timestamp}"
        if fault is not None:
            raise StoreError(
                f"the master's record at log position {record.physical_offset} is refused, and with it the"
                f" rest of the log: it has {fault}"
            )

    def _apply(self, record: StoredRecord, data: bytes, arrivals: list[Arrival]) -> None:
        log = self._log
        queue = None
        if record.sys_flag & TRANSACTION_MASK not in _HALF:
            queue = self._queue_with_room(record)
        properties = record.properties(data, record.physical_offset)
        log.write_record(data)
        try:
            if queue is None:
                REFUSED_WRITES.check()
            else:
                tags_code = self._coder.tags_code(queue.topic, properties, record.store_timestamp)
                queue.append(record.physical_offset, record.size, tags_code, record.store_timestamp)
        except OSError:
            log.take_back(record.size)
            raise
        log.advance(record.size, record.store_timestamp)
        if queue is None:
            if is_topic_end(record.sys_flag, properties):
                self._queues.start_over(_topic_of(record))
        else:
            arrivals.append(Arrival(queue.topic, queue.queue_id, queue.max_offset, tags_code, properties))

    def _queue_with_room(self, record: StoredRecord) -> ConsumeQueue:
        topic = _topic_of(record)
        queue = self._queues.get((topic, record.queue_id))
        if queue is not None and record.queue_offset < queue.max_offset:
            # A record is received only once. A lower offset thus means that the master has removed the queue
            # and it starts over.
            self._queues.remove(topic, record.queue_id)
            queue = None
        queue = queue or self._queues.create(topic, record.queue_id)
        assert queue is not None, "the record's fields are checked"
        gap = record.queue_offset - queue.max_offset
        if gap > 0:
            if gap > _MAX_GAP and queue.files.files:
                raise StoreError(
                    f"the master has message {record.queue_offset} of queue {queue.queue_id} of {topic}, but"
                    f" {queue.max_offset} must come next"
                )
            queue.skip_to(record.queue_offset, record.store_timestamp)
        if queue.max_offset >= queue.room_end:
            queue.make_room(1, record.store_timestamp)
        return queue


def _topic_of(record: StoredRecord) -> str:
    """Return the record's topic; empty if it is not UTF-8."""
    try:
        return record.topic.decode()
    except UnicodeDecodeError:
        return ""
