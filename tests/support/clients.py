"""Clients: starts producers, consumers and administrators against the brokers of a test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rewindmq import (
    ConsumeConcurrentlyStatus,
    ConsumeFromWhere,
    Message,
    MessageExt,
    MessageQueue,
    MessageSelector,
    Producer,
    PullConsumer,
    PushConsumer,
)
from rewindmq.client.admin.admin_client import AdminClient
from rewindmq.client.push.listener import MessageListener, MessageListenerOrderly
from rewindmq.protocol.body.registration import TopicConfig
from rewindmq.protocol.command import SerializeType
from rewindmq.protocol.points import Failpoint, Probe
from rewindmq.protocol.profile import Profile
from tests.support.servers import Servers

OK = ConsumeConcurrentlyStatus.CONSUME_SUCCESS


class Clients(Servers):
    """Producers, consumers and administrators, each in a process on a host of its own; closed at the end.

    Attributes:
        consumed: queue and offset of every message that went to a consumer without a listener of its own.
    """

    consumed: list[tuple[MessageQueue, int]]

    async def producer(self, group: str = "P", *, host: str | None = None, **options: Any) -> Producer:
        """A started producer."""
        self._complete(options)
        return await self.enter(Producer(group, self.namesrv, runtime=self.new_runtime(host), **options))

    async def admin(
        self,
        *,
        host: str | None = None,
        profile: Profile | None = None,
        serialize_type: SerializeType | None = None,
        probe: Probe | None = None,
    ) -> AdminClient:
        runtime = self.new_runtime(host, probe=probe)
        return await self.enter(
            AdminClient(
                self.namesrv,
                runtime=runtime,
                profile=profile or self.profile,
                serialize_type=self.serialize_type if serialize_type is None else serialize_type,
            )
        )

    async def pull_consumer(
        self,
        group: str = "G",
        *,
        host: str | None = None,
        failpoint: Failpoint | None = None,
        **options: Any,
    ) -> PullConsumer:
        """A started pull consumer."""
        self._complete(options)
        runtime = self.new_runtime(host, failpoint=failpoint)
        return await self.enter(PullConsumer(group, self.namesrv, runtime=runtime, **options))

    def push_consumer(
        self,
        listener: MessageListener | None = None,
        *,
        orderly: MessageListenerOrderly | None = None,
        name: str = "c1",
        group: str = "G",
        topic: str = "T",
        expression: str | MessageSelector = "*",
        host: str | None = None,
        failpoint: Failpoint | None = None,
        **options: Any,
    ) -> PushConsumer:
        """A consumer that is not started; it begins with a queue's first message unless said otherwise.

        Args:
            listener: None notes each message in ``consumed``.
            orderly: makes it an orderly consumer with this listener.
            name: of the instance, the end of the client id; a host that is given is its beginning.
        """
        self._complete(options)
        options.setdefault("consume_from_where", ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)
        options.setdefault("instance_name", name)
        if host is not None:
            options.setdefault("client_ip", host)
        runtime = self.new_runtime(host, failpoint=failpoint)
        consumer = PushConsumer(group, self.namesrv, runtime=runtime, **options)
        consumer.subscribe(topic, expression)
        if orderly is not None:
            consumer.register_orderly_listener(orderly)
        else:
            consumer.register_message_listener(listener or self._note)
        return consumer

    async def consume(
        self,
        listener: MessageListener | None = None,
        *,
        orderly: MessageListenerOrderly | None = None,
        name: str = "c1",
        group: str = "G",
        topic: str = "T",
        expression: str | MessageSelector = "*",
        host: str | None = None,
        failpoint: Failpoint | None = None,
        **options: Any,
    ) -> PushConsumer:
        """A started ``push_consumer``."""
        consumer = self.push_consumer(
            listener,
            orderly=orderly,
            name=name,
            group=group,
            topic=topic,
            expression=expression,
            host=host,
            failpoint=failpoint,
            **options,
        )
        return await self.enter(consumer)

    async def create_topic(self, topic: str = "T", queues: int = 4, *, read: int | None = None) -> None:
        """On every broker.

        Args:
            queues: to write to, and to read from unless ``read`` says otherwise.
        """
        admin = await self.admin()
        reads = queues if read is None else read
        config = TopicConfig(topic_name=topic, read_queue_nums=reads, write_queue_nums=queues)
        for broker in self.brokers.values():
            await admin.topics.create_and_update_topic_config(broker.address, config)

    async def fill(self, per_queue: int, topic: str = "T", *, first: int = 0) -> None:
        """The same numbered messages into every queue of the topic, at once."""
        producer = await self.producer()
        numbers = range(first, first + per_queue)
        for queue in await producer.fetch_publish_message_queues(topic):
            for start in range(0, per_queue, 500):
                batch = [Message(topic, b"%d" % number) for number in numbers[start : start + 500]]
                await producer.send_batch(batch, queue=queue)

    async def send(self, rounds: int, topic: str = "T", *, gap: float = 1.0) -> None:
        """In each round one message to every queue, and ``gap`` seconds."""
        runtime = self.new_runtime()
        async with Producer("senders", self.namesrv, runtime=runtime, profile=self.profile) as producer:
            queues = await producer.fetch_publish_message_queues(topic)
            for number in range(rounds):
                for queue in queues:
                    await producer.send(Message(topic, b"Hello RocketMQ %d" % number, "TagA"), queue=queue)
                await runtime.timers.sleep(gap)

    def stored(self, topic: str = "T", group: str = "G", broker: str = "broker-a") -> dict[int, int]:
        """What the broker has stored, by queue id."""
        return dict(self.brokers[broker].context.offsets.table.offsets_of(group, topic))

    def stored_offset(self, queue: MessageQueue, group: str = "G") -> int:
        """What the queue's broker has stored, -1 when that is nothing."""
        offsets = self.brokers[queue.broker_name].context.offsets.table
        return offsets.query(group, queue.topic, queue.queue_id)

    def _complete(self, options: dict[str, Any]) -> None:
        options.setdefault("profile", self.profile)
        options.setdefault("serialize_type", self.serialize_type)

    async def _note(self, messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        self.consumed += [(message.message_queue, message.queue_offset) for message in messages]
        return OK
