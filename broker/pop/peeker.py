"""Serves PEEK_MESSAGE, NOTIFICATION and POLLING_INFO: what a group could pop, without popping it.

Source: RocketMQ 5.5.1 ``PeekMessageProcessor``, ``NotificationProcessor``, ``PollingInfoProcessor``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.pop.long_polling import PollingResult, PopLongPolling, SuspendedPop
from rewindmq.broker.pop.orderly.queue_level_consumer_manager import QueueLevelConsumerManager
from rewindmq.broker.pop.queues_in_turn import queues_in_turn
from rewindmq.broker.pop.validator import PopValidator, check_capacity
from rewindmq.broker.pull.long_polling import MessageFilter
from rewindmq.broker.stats.broker_stats import BrokerStats
from rewindmq.broker.store.model import GetMessageStatus
from rewindmq.broker.store.store import MessageStore
from rewindmq.broker.store.tables.consumer_offset import ConsumerOffsetTable
from rewindmq.broker.tables.topic_config import TopicConfigManager
from rewindmq.protocol.body.registration import TopicConfig
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.pop import (
    NotificationRequestHeader,
    NotificationResponseHeader,
    PeekMessageRequestHeader,
    PollingInfoRequestHeader,
    PollingInfoResponseHeader,
    PopMessageResponseHeader,
)
from rewindmq.protocol.limits import MAX_PULL_MESSAGES, MAX_RESPONSE_BODY_BYTES
from rewindmq.protocol.pop.topics import pop_retry_topic
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.remoting.dispatch import failure
from rewindmq.protocol.remoting.runtime import Runtime

_WORDS: Final = "peeking message"
# Entries whose tags a NOTIFICATION compares, in a queue with fewer messages than that
# (``maxMessageFilterNumForNotification``, and a constant in ``NotificationProcessor``).
_FILTERED_QUEUE: Final = 64
_COMPARED: Final = 32
_FULL_BYTES: Final = MAX_RESPONSE_BODY_BYTES // 2


class MessagePeeker:
    """Looks at the messages that a group would pop next."""

    def __init__(
        self,
        runtime: Runtime,
        config: BrokerConfig,
        store: MessageStore,
        validator: PopValidator,
        topics: TopicConfigManager,
        offsets: ConsumerOffsetTable,
        long_polling: PopLongPolling,
        stats: BrokerStats,
        orders: QueueLevelConsumerManager,
    ) -> None:
        self._random = runtime.random
        self._config = config
        self._store = store
        self._validator = validator
        self._topics = topics
        self._query = offsets.query
        self._long_polling = long_polling
        self._pulls = stats.items.pulls
        self._orders = orders

    # PEEK_MESSAGE

    def peek(self, connection: Connection, header: PeekMessageRequestHeader) -> RemotingCommand:
        """Return the next messages; PULL_NOT_FOUND (19) if there are none.

        Raises:
            RequestError: see ``PopValidator``; SYSTEM_ERROR (1), a negative number of messages.
        """
        self._validator.check_readable(_WORDS)
        topic = self._validator.admit(
            header.topic, header.consumer_group, header.queue_id, connection.remote_address
        )
        check_capacity(header.max_msg_nums)
        chance = self._random.randrange(100)
        rest = count = size = 0
        bodies: list[bytes] = []
        most = min(header.max_msg_nums, MAX_PULL_MESSAGES)
        for name, queue_id, needs_room in self._queues(header, topic, chance):
            if needs_room and count >= most:
                break
            offset = self._offset(name, header.consumer_group, queue_id)
            rest += self._store.max_offset(name, queue_id) - offset
            if count >= most or size >= _FULL_BYTES:
                continue
            result = self._store.get_message(name, queue_id, offset, most - count, None)
            if result.status in (GetMessageStatus.OFFSET_TOO_SMALL, GetMessageStatus.OFFSET_OVERFLOW_BADLY):
                result = self._store.get_message(name, queue_id, result.next_begin_offset, most - count, None)
            if result.message_count:
                bodies.append(result.body)
                count += result.message_count
                size += len(result.body)
        answer = PopMessageResponseHeader(0, 0, 0, rest)
        if not bodies:
            return RemotingCommand(
                ResponseCode.PULL_NOT_FOUND, answer, remark=GetMessageStatus.NO_MESSAGE_IN_QUEUE.name
            )
        self._pulls.count(header.topic, header.consumer_group, max(header.queue_id, 0), count, size)
        return RemotingCommand(
            ResponseCode.SUCCESS, answer, b"".join(bodies), remark=GetMessageStatus.FOUND.name
        )

    def _queues(
        self, header: PeekMessageRequestHeader, topic: TopicConfig, chance: int
    ) -> Iterator[tuple[str, int, bool]]:
        """Yield topic and queue id of each queue, and whether only if messages are still wanted."""
        retry = self._topics.find(self._retry(header.topic, header.consumer_group))
        retry_first = chance % 5 == 0
        if retry is not None and retry_first:
            for queue_id in self._in_turn(retry, chance):
                yield retry.topic_name, queue_id, False
        if header.queue_id < 0:
            for queue_id in self._in_turn(topic, chance):
                yield topic.topic_name, queue_id, False
        else:
            yield topic.topic_name, header.queue_id, False
        if retry is not None and not retry_first:
            for queue_id in self._in_turn(retry, chance):
                yield retry.topic_name, queue_id, True

    def _in_turn(self, topic: TopicConfig, chance: int) -> Iterable[int]:
        return queues_in_turn(topic.topic_name, topic.read_queue_nums, chance, self._store, self._random)

    # NOTIFICATION

    def notify(
        self, connection: Connection, request: RemotingCommand, header: NotificationRequestHeader
    ) -> RemotingCommand | None:
        """Return whether there is a message; None if the request is suspended until there is one.

        Args:
            header: ``born_time`` is set.

        Raises:
            RequestError: see ``PopValidator``.
        """
        self._validator.check_readable(_WORDS)
        topic = self._validator.admit(
            header.topic, header.consumer_group, header.queue_id, connection.remote_address
        )
        wanted = self._validator.filter_of(header.exp, header.exp_type) if header.exp_type else None
        if header.is_lite_consumer:
            return RemotingCommand(ResponseCode.SUCCESS, NotificationResponseHeader(False, False))
        has_message = self._has_message(header, topic, wanted)
        is_full = False
        if not has_message:
            result = self._long_polling.suspend(connection, request, header, wanted, self._notify_again)
            if result is PollingResult.POLLING_SUC:
                return None
            is_full = result is PollingResult.POLLING_FULL
        return RemotingCommand(ResponseCode.SUCCESS, NotificationResponseHeader(has_message, is_full))

    def _notify_again(self, pop: SuspendedPop) -> None:
        header = pop.header
        assert isinstance(header, NotificationRequestHeader)
        try:
            response = self.notify(pop.connection, pop.request, header)
        except Exception as error:
            response = failure(pop.request, error)
        if response is not None:
            pop.connection.reply(pop.request, response)

    def _has_message(
        self, header: NotificationRequestHeader, topic: TopicConfig, wanted: MessageFilter
    ) -> bool:
        queue_ids = self._in_turn(topic, 0) if header.queue_id < 0 else (header.queue_id,)
        if any(self._has_in_queue(header, topic.topic_name, queue_id, wanted) for queue_id in queue_ids):
            return True
        config = self._config
        versions = [config.enable_retry_topic_v2]
        if config.enable_retry_topic_v2 and config.retrieve_message_from_pop_retry_topic_v1:
            versions.append(False)
        for v2 in versions:
            retry = self._topics.find(pop_retry_topic(header.topic, header.consumer_group, v2=v2))
            if retry is not None and any(
                self._has_in_queue(header, retry.topic_name, queue_id, None)
                for queue_id in self._in_turn(retry, 0)
            ):
                return True
        return False

    def _has_in_queue(
        self, header: NotificationRequestHeader, topic: str, queue_id: int, wanted: MessageFilter
    ) -> bool:
        group = header.consumer_group
        if header.order and self._orders.is_blocked(header.attempt_id, header.topic, group, queue_id, 0):
            return False
        offset = self._offset(topic, group, queue_id)
        rest = self._store.max_offset(topic, queue_id) - offset
        if rest >= _FILTERED_QUEUE or not isinstance(wanted, frozenset):
            return rest > 0
        for place in range(offset, offset + min(rest, _COMPARED)):
            entry = self._store.entry(topic, queue_id, place)
            if entry is not None and entry[2] in wanted:
                return True
        return False

    # POLLING_INFO

    def polling_info(
        self, connection: Connection, header: PollingInfoRequestHeader
    ) -> PollingInfoResponseHeader:
        """Return how many POPs of the group wait for the queue.

        Raises:
            RequestError: see ``PopValidator``.
        """
        self._validator.check_readable(_WORDS)
        self._validator.admit(header.topic, header.consumer_group, header.queue_id, connection.remote_address)
        return PollingInfoResponseHeader(
            self._long_polling.polling_num(header.consumer_group, header.topic, header.queue_id)
        )

    def _retry(self, topic: str, group: str) -> str:
        return pop_retry_topic(topic, group, v2=self._config.enable_retry_topic_v2)

    def _offset(self, topic: str, group: str, queue_id: int) -> int:
        offset = self._query(group, topic, queue_id)
        return self._store.min_offset(topic, queue_id) if offset < 0 else offset
