"""Checks half messages that no producer has committed or rolled back (docs/spec/broker.md B.14).

Source: RocketMQ 4.9.4 ``TransactionalMessageServiceImpl#check``. Changed:

- The broker reads all op records before it asks a producer about a message, including the op records of a
  message that was stored again because of its immunity. RocketMQ may ask about such a message although it is
  done, and commit it a second time.
- Storing a message again because of its immunity does not count as a check. In RocketMQ a message whose
  immunity lasts 15 intervals ends in TRANS_CHECK_MAX_TIME_TOPIC without any check.
- If the disk fails, the run ends, and the next run continues at the same message; RocketMQ may lose it.
- Progress is saved only when the log is durable, so that not even a power failure loses a half message.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final

from rewindmq.broker.send.appender import MessageAppender
from rewindmq.broker.store.errors import StoreError
from rewindmq.broker.store.model import GetMessageStatus, PutResult, StoredMessage
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
# Half messages checked in one turn of the event loop.
_MESSAGES_PER_TURN: Final = 64

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CheckParts:
    """The services and settings of a check run.

    Attributes:
        timeout_ms: half messages younger than this are not checked, unless they set their own immunity.
        check_max: number of checks after which a message is discarded.
        reserved_ms: age after which a message is discarded.
        counts_puts: half messages that are stored again are in the topic's statistics.
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
    counts_puts: bool


class CheckRun:
    """One pass over the half topic, from the stored progress on."""

    def __init__(self, parts: CheckParts) -> None:
        self._parts = parts
        self._store = parts.store
        self._clock = parts.runtime.clock
        # 4.9.4 compares store times. While these stand still because the wall clock was set back, every
        # message would seem to be stored after the run began.
        self._log_end = self._store.max_commit_log_offset
        self._offset = self._progress(TRANS_HALF_TOPIC)
        self._ops_done = self._progress(TRANS_OP_HALF_TOPIC)
        self._ops = OpQueue(self._store, self._ops_done)

    async def run(self) -> None:
        """Check message after message until one is too young, for at most 60 s; save the progress."""
        clock, sleep = self._clock, self._parts.runtime.timers.sleep
        deadline = clock.monotonic() + RUN_SECONDS
        looked_at = 0
        try:
            while clock.monotonic() <= deadline:
                if not self._ops.is_read:
                    self._ops.read()
                    await sleep(0.0)
                # No other code may run between the last read of the op records and the decision that depends
                # on it.
                elif self._step():
                    looked_at += 1
                    if looked_at % _MESSAGES_PER_TURN == 0:
                        await sleep(0.0)
                else:
                    self._ops_done = self._ops.progress(self._offset)
                    return
        except RequestError as error:
            _log.error("half message %d not checked, will try again: %s", self._offset, error.remark)
        finally:
            await self._keep_progress()

    def _progress(self, topic: str) -> int:
        offset = self._parts.offsets.query(TRANS_GROUP, topic, HALF_QUEUE)
        return offset if offset >= 0 else self._store.min_offset(topic, HALF_QUEUE)

    async def _keep_progress(self) -> None:
        # ``_ops_done`` only advances if the run reached the end. A run that ends early has not reached the
        # copies at the end of the topic, and an op record of an original also ends its copy. So the next run
        # must read the same op records again.
        done, ops_done = self._offset, self._ops_done
        try:
            # A message stored again must be durable before the progress passes its original.
            await self._parts.runtime.workers.run(self._store.flush)
        except StoreError as error:
            _log.error("can not save the progress with half messages, will check them again: %s", error)
            return
        commit = self._parts.offsets.commit
        commit(TRANS_GROUP, TRANS_HALF_TOPIC, HALF_QUEUE, done)
        commit(TRANS_GROUP, TRANS_OP_HALF_TOPIC, HALF_QUEUE, ops_done)

    def _step(self) -> bool:
        """Check the next half message; return False when the run is over.

        Raises:
            RequestError: if the store refuses a message.
        """
        if self._ops.take(self._offset):
            self._offset += 1
            return True
        found = self._store.get_message(TRANS_HALF_TOPIC, HALF_QUEUE, self._offset, 1, None)
        if found.status is not GetMessageStatus.FOUND:
            # The topic ends here, or messages are missing and ``next_begin_offset`` is after the gap.
            is_elsewhere = found.next_begin_offset != self._offset
            self._offset = found.next_begin_offset
            return is_elsewhere
        try:
            half = decode_record(found.body)
        except RecordError as error:
            _log.error("half message %d does not decode: %s", self._offset, error)
            self._offset = found.next_begin_offset
            return True
        # The message found may have a later offset than requested, if messages are missing.
        self._offset = half.queue_offset
        if not self._ops.take(self._offset) and not self._settle(half):
            return False
        self._offset += 1
        return True

    def _settle(self, half: MessageExt) -> bool:
        """Handle a message without op record: ask, store again or discard; False if it is too young."""
        checks = _number(half.properties.get(TRANSACTION_CHECK_TIMES)) or 0
        wall_age = self._clock.now_ms() - half.born_timestamp
        age = wall_age / self._clock.scale
        if checks >= self._parts.check_max or wall_age > self._parts.reserved_ms:
            self._discard(half)
            return True
        if half.commit_log_offset >= self._log_end:
            return False
        first = _number(half.properties.get(TRAN_PREPARED_QUEUE_OFFSET))
        if first is not None and self._ops.take(first):
            return True
        timeout = self._parts.timeout_ms
        own = own_immunity_ms(half, timeout)
        if own is not None and age < own:
            origin = half.queue_offset if first is None else first
            self._put_again(_again(half, TRAN_PREPARED_QUEUE_OFFSET, origin))
        elif own is None and 0 <= age < timeout:
            return False
        else:
            copy = _again(half, TRANSACTION_CHECK_TIMES, checks + 1)
            self._parts.check_backs.ask(half, copy, self._put_again(copy))
        return True

    def _put_again(self, copy: StoredMessage) -> PutResult:
        return self._parts.appender.put_other(copy, is_counted=self._parts.counts_puts)

    def _discard(self, half: MessageExt) -> None:
        _log.error(
            "transaction %s is discarded: its half message goes to %s",
            half.msg_id,
            TRANS_CHECK_MAX_TIME_TOPIC,
        )
        self._parts.topics.ensure(TRANS_CHECK_MAX_TIME_TOPIC, 1)
        self._parts.appender.put_other(copied(half, TRANS_CHECK_MAX_TIME_TOPIC, 0), is_counted=False)


def _again(half: MessageExt, name: str, value: int) -> StoredMessage:
    text = with_property(half.packed_properties.decode("utf-8", "replace"), name, str(value))
    return copied(half, TRANS_HALF_TOPIC, HALF_QUEUE, properties=text.encode())


def _number(text: str | None) -> int | None:
    if text is None or not (text.isascii() and text.isdigit() and len(text) <= 19):
        return None
    return int(text)
