"""Serves acks and changes of invisible times (RocketMQ 5.5.1 ``AckMessageProcessor``,
``ChangeInvisibleTimeProcessor``).

Both store a record in the revive topic; ``PopReviveService`` joins it with its checkpoint. As in RocketMQ,
nothing else is checked: an ack of another group, of another POP, or after the message's revival succeeds
without effect.

Changed: a change of the invisible time always opens a checkpoint with another name than the first one. In
RocketMQ, both have one name if they are opened in the same millisecond, and the message is lost unless it is
acknowledged. Nothing is done for a handle that cannot be of this broker: that of an unknown group, another
broker's name, or a revive queue that is not read. If only the ack of a change cannot be stored, the change
succeeds; the message may come from its old checkpoint, too.
"""

from __future__ import annotations

import logging

from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.limits import MAX_BATCH_ACK_BITS, MAX_BATCH_ACKS
from rewindmq.broker.offsets.committer import OffsetCommitter
from rewindmq.broker.offsets.reset_offset_table import ResetOffsetTable
from rewindmq.broker.pop.inflight import PopInflightMessageCounter
from rewindmq.broker.pop.long_polling import PopLongPolling
from rewindmq.broker.pop.orderly.queue_level_consumer_manager import QueueLevelConsumerManager
from rewindmq.broker.pop.orderly.queue_order import ILLEGAL_OFFSET
from rewindmq.broker.pop.revive_log import ReviveLog
from rewindmq.broker.pop.validator import PopValidator
from rewindmq.broker.stats.broker_stats import BrokerStats
from rewindmq.broker.store.store import MessageStore
from rewindmq.broker.store.tables.consumer_offset import ConsumerOffsetTable
from rewindmq.broker.tables.subscription_group import SubscriptionGroupManager
from rewindmq.protocol.body.batch_ack import BatchAck
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.pop import (
    AckMessageRequestHeader,
    ChangeInvisibleTimeRequestHeader,
    ChangeInvisibleTimeResponseHeader,
)
from rewindmq.protocol.pop.bit_set import decode_bits, positions
from rewindmq.protocol.pop.extra_info import ExtraInfo, parse_extra_info
from rewindmq.protocol.pop.records import AckMsg, BatchAckMsg, PopCheckPoint
from rewindmq.protocol.pop.topics import POP_ORDER_REVIVE_QUEUE, real_topic
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.remoting.runtime import Clock

_log = logging.getLogger(__name__)


class MessageAcknowledger:
    """Acknowledges popped messages, and changes their invisible times."""

    def __init__(
        self,
        clock: Clock,
        config: BrokerConfig,
        store: MessageStore,
        validator: PopValidator,
        groups: SubscriptionGroupManager,
        offsets: ConsumerOffsetTable,
        reset_offsets: ResetOffsetTable,
        committer: OffsetCommitter,
        revive_log: ReviveLog,
        long_polling: PopLongPolling,
        inflight: PopInflightMessageCounter,
        stats: BrokerStats,
        orders: QueueLevelConsumerManager,
    ) -> None:
        self._now_ms = clock.now_ms
        self._broker_name = config.broker_name
        self._longest_ms = config.store.timer_max_delay_sec * 1_000
        self._store = store
        self._validator = validator
        self._groups = groups
        self._query = offsets.query
        self._reset_offsets = reset_offsets
        self._commit = committer.commit_popped
        self._revive_log = revive_log
        self._long_polling = long_polling
        self._inflight = inflight
        self._stats = stats
        self._orders = orders

    def acknowledge(self, connection: Connection, header: AckMessageRequestHeader) -> None:
        """Acknowledge one message.

        Raises:
            RequestError: TOPIC_NOT_EXIST (17); MESSAGE_ILLEGAL (13), the queue id; NO_MESSAGE (208), the
                offset is not in the queue; SYSTEM_ERROR (1), the handle is malformed; a code of a put.
        """
        topic, queue_id, offset = header.topic, header.queue_id, header.offset
        self._validator.admit_handle(topic, queue_id, connection.remote_address)
        self._refuse_lite(header.lite_topic)
        first, end = self._store.min_offset(topic, queue_id), self._store.max_offset(topic, queue_id)
        if not first <= offset <= end:
            raise RequestError(
                ResponseCode.NO_MESSAGE,
                f"offset is illegal, key:{topic}@{queue_id}, commit:{offset}, store:{first}~{end}",
            )
        info = parse_extra_info(header.extra_info)
        if info.revive_queue_id == POP_ORDER_REVIVE_QUEUE:
            self._acknowledge_orderly(connection, header.consumer_group, topic, queue_id, offset, info)
        else:
            self._put_ack(header.consumer_group, topic, queue_id, offset, info)

    def _put_ack(self, group: str, topic: str, queue_id: int, offset: int, info: ExtraInfo) -> None:
        self._validator.check_master()
        self._stats.items.count_acks(topic, group, 1)
        if not self._is_own(group, info.broker_name):
            return
        ack = AckMsg(
            topic=topic,
            consumer_group=group,
            queue_id=queue_id,
            ack_offset=offset,
            start_offset=info.start_offset,
            pop_time=info.pop_time,
            broker_name=info.broker_name,
        )
        if self._revive_log.put_ack(ack, info.revive_queue_id, info.invisible_time):
            self._inflight.remove(topic, group, queue_id, info.pop_time)

    def acknowledge_batch(self, connection: Connection, broker_name: str | None, batch: BatchAck) -> None:
        """Acknowledge messages of one POP of one queue; offsets outside the queue are ignored.

        Args:
            broker_name: the request's.

        Raises:
            RequestError: SYSTEM_ERROR (1), a field is missing, or too many messages are named; a code of a
                put.
        """
        group = batch.consumer_group or ""
        topic = _real_topic(batch)
        queue_id, start = batch.queue_id, batch.start_offset
        offsets = self._acknowledged(batch, topic)
        if not offsets:
            return
        if batch.revive_queue_id == POP_ORDER_REVIVE_QUEUE:
            name = broker_name or ""
            info = ExtraInfo(start, batch.pop_time, batch.invisible_time, POP_ORDER_REVIVE_QUEUE, "", name)
            for offset in offsets:
                self._acknowledge_orderly(connection, group, topic, queue_id, offset, info)
            return
        self._validator.check_master()
        self._stats.items.count_acks(topic, group, len(offsets))
        if not self._is_own(group, broker_name):
            return
        acks = BatchAckMsg(
            topic=topic,
            consumer_group=group,
            queue_id=queue_id,
            ack_offset=-1,
            ack_offsets=offsets,
            start_offset=start,
            pop_time=batch.pop_time,
            broker_name=broker_name,
        )
        if self._revive_log.put_ack(acks, batch.revive_queue_id, batch.invisible_time):
            self._inflight.remove(topic, group, queue_id, batch.pop_time, len(offsets))

    def _acknowledged(self, batch: BatchAck, topic: str) -> list[int]:
        """Return the acknowledged offsets that are in the queue."""
        if not batch.bit_set:
            raise RequestError(
                ResponseCode.SYSTEM_ERROR, "java.lang.NullPointerException: the batch has no bit set"
            )
        queue_id, start = batch.queue_id, batch.start_offset
        first, end = self._store.min_offset(topic, queue_id), self._store.max_offset(topic, queue_id)
        # As for a single ack, the offset behind the last message is not refused.
        low, count = max(first - start, 0), end - start + 1
        if count <= low or not end:
            return []
        bits = decode_bits(batch.bit_set) >> low
        if bits.bit_length() > count - low:
            bits &= (1 << (count - low)) - 1
        if bits.bit_length() > MAX_BATCH_ACK_BITS:
            raise RequestError(
                ResponseCode.SYSTEM_ERROR,
                f"a batch names messages of one POP that are {bits.bit_length()} offsets apart: the limit is"
                f" {MAX_BATCH_ACK_BITS}",
            )
        if bits.bit_count() > MAX_BATCH_ACKS:
            raise RequestError(
                ResponseCode.SYSTEM_ERROR,
                f"a batch names {bits.bit_count()} messages of one POP: the limit is {MAX_BATCH_ACKS}",
            )
        return [start + low + position for position in positions(bits)]

    def _acknowledge_orderly(
        self, connection: Connection, group: str, topic: str, queue_id: int, offset: int, info: ExtraInfo
    ) -> None:
        self._validator.check_master()
        if not self._is_own(group, info.broker_name):
            return
        orders = self._orders
        stored = self._query(group, topic, queue_id)
        if offset < stored:
            return
        following = orders.commit_and_next(topic, group, queue_id, offset, info.pop_time)
        if following == ILLEGAL_OFFSET:
            raise RequestError(
                ResponseCode.MESSAGE_ILLEGAL,
                f"offset is illegal, key:{topic}@{group}@{queue_id}, old:{stored}, commit:{offset},"
                f" next:{following}, /{connection.remote_address}",
            )
        if following >= 0:
            if self._reset_offsets.find(group, topic, queue_id) is None:
                self._commit(connection, group, topic, queue_id, following)
            if not orders.is_blocked(None, topic, group, queue_id, info.invisible_time):
                self._long_polling.wake(topic, group, -1)
                self._long_polling.wake(topic, group, queue_id)
        self._inflight.remove(topic, group, queue_id, info.pop_time)

    def change_invisible_time(
        self, connection: Connection, header: ChangeInvisibleTimeRequestHeader
    ) -> ChangeInvisibleTimeResponseHeader:
        """Let a message be visible again ``invisible_time`` ms from now: a new checkpoint, an ack of the old
        one.

        Returns:
            The parts of the new handle; zeros for an orderly message that is already behind the group's
            offset.

        Raises:
            RequestError: as ``acknowledge``.
        """
        topic, queue_id, offset = header.topic, header.queue_id, header.offset
        self._validator.admit_handle(topic, queue_id, connection.remote_address)
        self._refuse_lite(header.lite_topic)
        first, end = self._store.min_offset(topic, queue_id), self._store.max_offset(topic, queue_id)
        if not first <= offset < end:
            raise RequestError(
                ResponseCode.NO_MESSAGE,
                f"offset is illegal, key:{topic}@{queue_id}, change:{offset}, store:{first}~{end}",
            )
        info = parse_extra_info(header.extra_info, is_change=True)
        if info.revive_queue_id == POP_ORDER_REVIVE_QUEUE:
            return self._change_orderly(header, info)
        return self._change(header, info)

    def _change(
        self, header: ChangeInvisibleTimeRequestHeader, info: ExtraInfo
    ) -> ChangeInvisibleTimeResponseHeader:
        self._validator.check_master()
        group, topic = header.consumer_group, header.topic
        now = self._now_ms()
        pop_time = max(now, info.pop_time + 1)
        if self._revive_log.visible_at(pop_time, header.invisible_time) - now > self._longest_ms:
            raise RequestError(
                ResponseCode.SYSTEM_ERROR,
                f"the invisible time {header.invisible_time} ms is too long: it must end within"
                f" {self._longest_ms} ms (timerMaxDelaySec)",
            )
        answer = ChangeInvisibleTimeResponseHeader(pop_time, header.invisible_time, info.revive_queue_id)
        self._stats.items.count_acks(topic, group, 1)
        if not self._is_own(group, info.broker_name) or not self._revive_log.has_queue(info.revive_queue_id):
            return answer
        point = PopCheckPoint(
            topic=topic,
            consumer_group=group,
            queue_id=header.queue_id,
            start_offset=header.offset,
            pop_time=pop_time,
            invisible_time=header.invisible_time,
            broker_name=info.broker_name,
            num=1,
            offset_diffs=[0],
            suspend=bool(header.suspend),
        )
        self._revive_log.put_check_point(point, info.revive_queue_id)
        self._stats.items.count_check_point(topic, group)
        ack = AckMsg(
            topic=topic,
            consumer_group=group,
            queue_id=header.queue_id,
            ack_offset=header.offset,
            start_offset=info.start_offset,
            pop_time=info.pop_time,
            broker_name=info.broker_name,
        )
        try:
            self._revive_log.put_ack(ack, info.revive_queue_id, info.invisible_time)
        except RequestError as error:
            # The new checkpoint is stored: only its handle can acknowledge it. The old one stays open.
            _log.warning("the old checkpoint of %s stays open: %s", ack.unique_id(), error.remark)
        return answer

    def _change_orderly(
        self, header: ChangeInvisibleTimeRequestHeader, info: ExtraInfo
    ) -> ChangeInvisibleTimeResponseHeader:
        self._validator.check_master()
        group, topic, queue_id = header.consumer_group, header.topic, header.queue_id
        if header.offset < self._query(group, topic, queue_id):
            # RocketMQ sends the fields of an unset header.
            return ChangeInvisibleTimeResponseHeader(0, 0, 0)
        visible_at = self._revive_log.visible_at(self._now_ms(), header.invisible_time)
        self._orders.update_next_visible_time(
            topic, group, queue_id, header.offset, info.pop_time, visible_at
        )
        return ChangeInvisibleTimeResponseHeader(
            info.pop_time, visible_at - info.pop_time, info.revive_queue_id
        )

    def _is_own(self, group: str, broker_name: str | None) -> bool:
        """Return False if this broker cannot have a checkpoint of that group and broker name."""
        return broker_name == self._broker_name and self._groups.get(group) is not None

    def _refuse_lite(self, lite_topic: str | None) -> None:
        if lite_topic is not None and lite_topic.strip():
            raise RequestError(ResponseCode.INVALID_PARAMETER, "group type or bind topic not match.")


def _real_topic(batch: BatchAck) -> str:
    try:
        return real_topic(batch.topic or "", batch.consumer_group or "", batch.retry or "")
    except ValueError as error:
        raise RequestError(
            ResponseCode.SYSTEM_ERROR, f"java.lang.IllegalArgumentException: {error}"
        ) from None
