"""Checks half messages that no producer has committed or rolled back (docs/spec/broker.md B.14).

RocketMQ 4.9.4 ``TransactionalMessageServiceImpl#check``. Changed: all op records count before a producer is
asked, also those about a message whose immunity had it stored again (there it may be asked about, and
committed, a second time); to be stored again for its immunity counts no check (there a message ends in
TRANS_CHECK_MAX_TIME_TOPIC, unasked, when its immunity lasts 15 intervals); where the disk refuses, the run
ends and the next one goes on (there a message may be lost); progress is kept only when the log is durable, so
that not even a power failure loses a half message.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final

from rewindmq.broker.send.appender import MessageAppender
from rewindmq.broker.store.errors import StoreError
from rewindmq.broker.store.model import GetMessageStatus, StoredMessage
from rewindmq.broker.store.store import MessageStore
from rewindmq.broker.store.tables.consumer_offset import ConsumerOffsetTable
from rewindmq.broker.tables.topic_config import TopicConfigManager
from rewindmq.broker.transaction.check_back import CheckBacks
from rewindmq.broker.transaction.half import HALF_QUEUE
from rewindmq.broker.transaction.immunity import own_immunity_ms
from rewindmq.broker.transaction.op_queue import OpQueue
from rewindmq.broker.transaction.records import copied
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message.properties import (
    TRAN_PREPARED_QUEUE_OFFSET,
    TRANSACTION_CHECK_TIMES,
    with_property,
)
from rewindmq.protocol.message.record import RecordError, decode_record
from rewindmq.protocol.names import (
    TRANS_CHECK_MAX_TIME_TOPIC,
    TRANS_GROUP,
    TRANS_HALF_TOPIC,
    TRANS_OP_HALF_TOPIC,
)
from rewindmq.protocol.remoting.runtime import Runtime

# 4.9.4 MAX_PROCESS_TIME_LIMIT.
RUN_SECONDS: Final = 60.0
# Half messages looked at before others have a turn of the event loop.
_MESSAGES_PER_TURN: Final = 64

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CheckParts:
    """What a run works on.

    Attributes:
        timeout_ms: half messages younger than this are left alone, unless they say otherwise.
        check_max: checks after which a message is given up.
        reserved_ms: age beyond which it is given up.
    """

    runtime: Runtime
    store: MessageStore
    appender: MessageAppender
    topics: TopicConfigManager
    offsets: ConsumerOffsetTable
    check_backs: CheckBacks
    timeout_ms: int
    check_max: int
    reserved_ms: int


class CheckRun:
    """One pass over the half topic, from where the last one came to."""

    def __init__(self, parts: CheckParts) -> None:
        self._parts = parts
        self._store = parts.store
        self._clock = parts.runtime.clock
        self._started_ms = self._clock.now_ms()
        self._offset = self._progress(TRANS_HALF_TOPIC)
        self._ops_done = self._progress(TRANS_OP_HALF_TOPIC)
        self._ops = OpQueue(self._store, self._ops_done)

    async def run(self) -> None:
        """Settle message after message, until one is too young, or for 60 s; progress is kept in any case."""
        clock, sleep = self._clock, self._parts.runtime.timers.sleep
        deadline = clock.monotonic() + RUN_SECONDS
        looked_at = 0
        try:
            while clock.monotonic() <= deadline:
                if not self._ops.is_read:
                    self._ops.read()
                    await sleep(0.0)
                # Nothing may come between the last look at the op records and what is decided by them.
                elif self._step():
                    looked_at += 1
                    if looked_at % _MESSAGES_PER_TURN == 0:
                        await sleep(0.0)
                else:
                    self._ops_done = self._ops.progress(self._offset)
                    return
        except RequestError as error:
            _log.error("half message %d not settled, trying again: %s", self._offset, error.remark)
        finally:
            await self._keep_progress()

    def _progress(self, topic: str) -> int:
        offset = self._parts.offsets.query(TRANS_GROUP, topic, HALF_QUEUE)
        return offset if offset >= 0 else self._store.min_offset(topic, HALF_QUEUE)

    async def _keep_progress(self) -> None:
        # A run that breaks off has not come to the messages stored again, whose first ones may be done: the
        # op records it has read are read once more.
        done, ops_done = self._offset, self._ops_done
        try:
            # What was stored again has to be durable before anything says that the first one is settled.
            await self._parts.runtime.workers.run(self._store.flush)
        except StoreError as error:
            _log.error("progress with half messages not kept, they are gone through again: %s", error)
            return
        commit = self._parts.offsets.commit
        commit(TRANS_GROUP, TRANS_HALF_TOPIC, HALF_QUEUE, done)
        commit(TRANS_GROUP, TRANS_OP_HALF_TOPIC, HALF_QUEUE, ops_done)

    def _step(self) -> bool:
        """Settle the next half message; False when the run is over.

        Raises:
            RequestError: the store refuses.
        """
        if self._ops.take(self._offset):
            self._offset += 1
            return True
        found = self._store.get_message(TRANS_HALF_TOPIC, HALF_QUEUE, self._offset, 1, None)
        if found.status is not GetMessageStatus.FOUND:
            # At the end, or where messages are gone.
            is_elsewhere = found.next_begin_offset != self._offset
            self._offset = found.next_begin_offset
            return is_elsewhere
        try:
            half = decode_record(found.body)
        except RecordError as error:
            _log.error("half message %d cannot be read: %s", self._offset, error)
            self._offset = found.next_begin_offset
            return True
        # Later than asked for where the messages before it are gone.
        self._offset = half.queue_offset
        if not self._ops.take(self._offset) and not self._settle(half):
            return False
        self._offset += 1
        return True

    def _settle(self, half: MessageExt) -> bool:
        """What is to be done about a message without op record; False when it is too young."""
        checks = _number(half.properties.get(TRANSACTION_CHECK_TIMES)) or 0
        wall_age = self._clock.now_ms() - half.born_timestamp
        age = wall_age / self._clock.scale
        if checks >= self._parts.check_max or wall_age > self._parts.reserved_ms:
            self._discard(half)
            return True
        if half.store_timestamp >= self._started_ms:
            return False
        first = _number(half.properties.get(TRAN_PREPARED_QUEUE_OFFSET))
        if first is not None and self._ops.take(first):
            return True
        timeout = self._parts.timeout_ms
        own = own_immunity_ms(half, timeout)
        if own is not None and age < own:
            origin = half.queue_offset if first is None else first
            self._parts.appender.put(_again(half, TRAN_PREPARED_QUEUE_OFFSET, origin))
        elif own is None and 0 <= age < timeout:
            return False
        else:
            copy = _again(half, TRANSACTION_CHECK_TIMES, checks + 1)
            self._parts.check_backs.ask(half, copy, self._parts.appender.put(copy))
        return True

    def _discard(self, half: MessageExt) -> None:
        _log.error("transaction %s is given up: it goes to %s", half.msg_id, TRANS_CHECK_MAX_TIME_TOPIC)
        self._parts.topics.ensure(TRANS_CHECK_MAX_TIME_TOPIC, 1)
        self._parts.appender.put(copied(half, TRANS_CHECK_MAX_TIME_TOPIC, 0))


def _again(half: MessageExt, name: str, value: int) -> StoredMessage:
    text = with_property(half.packed_properties.decode("utf-8", "replace"), name, str(value))
    return copied(half, TRANS_HALF_TOPIC, HALF_QUEUE, properties=text.encode())


def _number(text: str | None) -> int | None:
    if text is None or not (text.isascii() and text.isdigit() and len(text) <= 19):
        return None
    return int(text)
