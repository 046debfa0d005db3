"""The content that mqadmin commands work on: the same topics, messages and groups in every cluster.

It is created without mqadmin, so that only the command under test can fail.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Self

from rewindmq import (
    AdminClient,
    ConsumeConcurrentlyStatus,
    ConsumeFromWhere,
    Message,
    MessageExt,
    Producer,
    PushConsumer,
    SendResult,
)
from rewindmq.protocol.body.group import SubscriptionGroupConfig
from rewindmq.protocol.body.registration import TopicConfig
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand, SerializeType
from rewindmq.protocol.header.offset import UpdateConsumerOffsetRequestHeader
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.names import retry_topic
from tools.interop.raw import ask
from tools.interop.servers import BROKER, Server

QUEUES: Final = 4
MESSAGES: Final = 12
PRODUCERS: Final = "mq-producers"
# A topic for commands that only read, topics for commands that change something, and one without messages.
LOOK: Final = "mq-look"
RESET: Final = "mq-reset"
QUEUE: Final = "mq-reset-queue"
SKIP: Final = "mq-skip"
IDLE: Final = "mq-idle"
TRACED: Final = "mq-trace"
DOOMED: Final = "mq-doomed"
SENT: Final = "mq-sent"
SENT_TO: Final = "mq-sent-to"
_FILLED: Final = (LOOK, RESET, QUEUE, SKIP)
_TOPICS: Final = (*_FILLED, IDLE, TRACED, DOOMED, SENT, SENT_TO)
# A group with a live consumer, and groups that each lack something.
LIVE: Final = "mq-live"
OFFLINE: Final = "mq-offline"
HALF: Final = "mq-half"
NO_OFFSETS: Final = "mq-no-offsets"
NO_RETRY_TOPIC: Final = "mq-no-retry-topic"
# The same groups again, to be reset.
RESET_LIVE: Final = "mq-reset-live"
RESET_OFFLINE: Final = "mq-reset-offline"
RESET_HALF: Final = "mq-reset-half"
RESET_NO_OFFSETS: Final = "mq-reset-no-offsets"
# Reset only once: a client of 4.x spends 10 s on each reset notification, one after another.
RESET_ONCE: Final = "mq-reset-once"
CLONED: Final = "mq-cloned"
DOOMED_GROUP: Final = "mq-doomed-group"
# Files in the tool's working directory, for commands that read a list.
FILES: Final = {
    "topics.json": (
        '[{"topicName": "mq-listed", "readQueueNums": 2, "writeQueueNums": 3, "perm": 6,'
        ' "attributes": {"+message.type": "FIFO"}}]'
    ),
    "more-topics.json": '[{"topicName": "mq-listed-1"}, {"topicName": "mq-listed-2", "writeQueueNums": 1}]',
    "bad-topics.json": '[{"topicName": "mq-not-listed"}, {"topicName": "bad*name"}]',
    "bad-attribute.json": '[{"topicName": "mq-not-listed-2", "attributes": {"+colour": "red"}}]',
    "groups.json": '[{"groupName": "mq-listed", "retryMaxTimes": 3}, {"groupName": "mq-listed-2"}]',
}
_OFFSET: Final = 2
_CONSUMED: Final = MESSAGES // QUEUES
# A server reset reaches a client when its suspended pull ends; it takes effect 10 s and a rebalance later.
_WAIT_SECONDS: Final = 300.0
_ASK_SECONDS: Final = 0.1


@dataclass
class ClusterState:
    """One cluster with its content.

    Attributes:
        sent: the results of the messages in ``LOOK``, in the order sent.
        traced: the one message with a message trace.
        delivered: by group, the bodies that its live consumer received.
    """

    server: Server
    admin: AdminClient
    sent: Sequence[SendResult] = ()
    traced: SendResult | None = None
    consumers: dict[str, PushConsumer] = field(default_factory=dict)
    producers: list[Producer] = field(default_factory=list)
    delivered: dict[str, set[bytes]] = field(default_factory=dict)

    @classmethod
    async def prepare(cls, server: Server) -> Self:
        """Create the content in an empty cluster."""
        state = cls(server, AdminClient(server.namesrv_address, serialize_type=SerializeType.JSON))
        try:
            await state._make_topics(_TOPICS)
            await state._fill()
            await state._make_groups()
            live = ((LIVE, LOOK), (RESET_LIVE, RESET), (RESET_ONCE, RESET))
            await asyncio.gather(*(state.consume(group, topic) for group, topic in live))
        except BaseException:
            await state.close()
            raise
        return state

    async def close(self) -> None:
        """Shut down every client."""
        for client in (*self.consumers.values(), *self.producers):
            await client.shutdown()
        await self.admin.shutdown()

    def names(self) -> dict[str, str]:
        """Return the texts that differ between the clusters, for commands and for their output."""
        assert self.traced is not None
        return {
            "broker": self.server.broker_address,
            "namesrv": self.server.namesrv_address,
            "id": self.sent[0].msg_id,
            "offset_id": self.sent[0].offset_msg_id or "",
            "traced": self.traced.msg_id,
            "client": self.consumers[LIVE].client_id,
        }

    async def _make_topics(self, topics: Sequence[str]) -> None:
        address = self.server.broker_address
        for topic in topics:
            config = TopicConfig(topic_name=topic, read_queue_nums=QUEUES, write_queue_nums=QUEUES)
            await self.admin.topics.create_and_update_topic_config(address, config)
        for topic in topics:
            await self.wait_route(topic)

    async def wait_route(self, topic: str) -> None:
        """Poll until the name server knows a topic; it sends no event."""
        async with asyncio.timeout(_WAIT_SECONDS):
            while topic not in await self.admin.topics.fetch_all_topic_list():  # noqa: ASYNC110
                await asyncio.sleep(_ASK_SECONDS)

    async def _fill(self) -> None:
        namesrv = self.server.namesrv_address
        producer = Producer(PRODUCERS, namesrv, serialize_type=SerializeType.JSON)
        await producer.start()
        self.producers.append(producer)
        for topic in _FILLED:
            results = await self._send(producer, topic)
            if topic == LOOK:
                self.sent = results
        tracing = Producer("mq-tracing", namesrv, serialize_type=SerializeType.JSON, enable_msg_trace=True)
        await tracing.start()
        message = Message(TRACED, b"traced", tags="TagA", keys="traced-key")
        self.traced = await tracing.send(message, queue=MessageQueue(TRACED, BROKER, 0))
        await tracing.shutdown()

    async def _send(self, producer: Producer, topic: str) -> list[SendResult]:
        """Send ``MESSAGES`` messages to the queues in turn."""
        return [
            await producer.send(
                Message(
                    topic, f"body {number}".encode(), tags=f"Tag{'AB'[number % 2]}", keys=f"key-{number}"
                ),
                queue=MessageQueue(topic, BROKER, number % QUEUES),
            )
            for number in range(MESSAGES)
        ]

    async def _make_groups(self) -> None:
        whole = dict.fromkeys(range(QUEUES), _OFFSET)
        half = {0: _OFFSET, 1: _OFFSET - 1}
        offsets: dict[str, tuple[str, dict[int, int]]] = {
            OFFLINE: (LOOK, whole),
            HALF: (LOOK, half),
            NO_OFFSETS: (LOOK, {}),
            NO_RETRY_TOPIC: (LOOK, whole),
            RESET_OFFLINE: (RESET, whole),
            RESET_HALF: (RESET, half),
            RESET_NO_OFFSETS: (RESET, {}),
            f"{QUEUE}-group": (QUEUE, whole),
            f"{SKIP}-group": (SKIP, whole),
            CLONED: (LOOK, {}),
            DOOMED_GROUP: (LOOK, whole),
        }
        for group, (topic, queues) in offsets.items():
            await self._make_group(group)
            self._commit(group, topic, queues)
        await self._make_topics([retry_topic(group) for group in offsets if group != NO_RETRY_TOPIC])

    async def _make_group(self, group: str) -> None:
        """Create the subscription group config of a group, and nothing else."""
        await self.admin.groups.create_and_update_subscription_group_config(
            self.server.broker_address, SubscriptionGroupConfig(group)
        )

    def _commit(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        """Commit offsets as a consumer does; no consumer need exist."""
        for queue_id, offset in offsets.items():
            header = UpdateConsumerOffsetRequestHeader(group, topic, queue_id, offset)
            command = RemotingCommand(RequestCode.UPDATE_CONSUMER_OFFSET, header)
            answer = ask(self.server.broker_address, command)
            assert answer.code == ResponseCode.SUCCESS, answer.remark

    async def consume(self, group: str, topic: str) -> PushConsumer:
        """Start a push consumer, and wait until it has consumed every message of a topic."""
        consumer = PushConsumer(
            group,
            self.server.namesrv_address,
            serialize_type=SerializeType.JSON,
            consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        )
        bodies = self.delivered[group] = set[bytes]()

        async def listen(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
            bodies.update(message.body for message in messages)
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

        consumer.subscribe(topic)
        consumer.register_message_listener(listen)
        await consumer.start()
        self.consumers[group] = consumer
        await self.wait_delivered(group)
        await self.wait_route(retry_topic(group))
        async with asyncio.timeout(_WAIT_SECONDS):
            # The consumer commits periodically, without an event.
            while not await self._has_committed(consumer, topic):  # noqa: ASYNC110
                await asyncio.sleep(_ASK_SECONDS)
        return consumer

    async def wait_delivered(self, group: str) -> None:
        """Wait until a group has received every message since its ``delivered`` was cleared."""
        async with asyncio.timeout(_WAIT_SECONDS):
            # The listener runs in this loop; a delay of a tenth of a second does no harm.
            while len(self.delivered[group]) < MESSAGES:  # noqa: ASYNC110
                await asyncio.sleep(_ASK_SECONDS)

    async def _has_committed(self, consumer: PushConsumer, topic: str) -> bool:
        await consumer.persist_offsets()
        table = (await self.admin.groups.examine_consume_stats(consumer.group, topic)).offset_table
        offsets = [entry.consumer_offset for queue, entry in table.items() if queue.topic == topic]
        return offsets == [_CONSUMED] * QUEUES
