"""A fenced reset on real sockets, with a broker process, in each serialization type."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from rewindmq import (
    AdminClient,
    ConsumeConcurrentlyStatus,
    ConsumeFromWhere,
    LocalCluster,
    Message,
    MessageExt,
    Producer,
    PushConsumer,
)
from rewindmq.protocol.command import SerializeType
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from tests.support.stage import ServerStage

MESSAGES = 100
# Seconds; only turns a hang into a failure. The benchmark measures how fast a reset is.
TIMEOUT = 60.0


class Deliveries:
    """Counts messages, and lets a test wait for a number of them."""

    def __init__(self) -> None:
        self._count = 0
        self._changed = asyncio.Event()

    async def __call__(self, messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        self._count += len(messages)
        self._changed.set()
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    async def reach(self, count: int) -> None:
        async with asyncio.timeout(TIMEOUT):
            while self._count < count:
                self._changed.clear()
                await self._changed.wait()


async def test_every_serialization_type_carries_the_epochs_of_a_fenced_reset() -> None:
    async with (
        LocalCluster(brokers=1, broker_config={"resetMode": "fenced"}) as cluster,
        Producer("P", cluster.namesrv_address) as producer,
        AdminClient(cluster.namesrv_address) as admin,
    ):
        for number in range(MESSAGES):
            await producer.send(Message("TopicTest", b"%d" % number))
        for serialize_type in SerializeType:
            deliveries = Deliveries()
            consumer = PushConsumer(
                f"G{serialize_type.name}",
                cluster.namesrv_address,
                profile=Profile.EPOCH,
                serialize_type=serialize_type,
                consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
            )
            consumer.subscribe("TopicTest")
            consumer.register_message_listener(deliveries)
            async with consumer:
                await deliveries.reach(MESSAGES)
                for epoch in (1, 2):
                    await admin.resets.reset("TopicTest", consumer.group, 0)
                    await deliveries.reach((epoch + 1) * MESSAGES)
                    held = [pq for queue, pq in consumer.process_queues.items() if queue.topic == "TopicTest"]
                    assert {process_queue.epoch for process_queue in held} == {epoch}
                await consumer.persist_offsets()
            stats = await admin.groups.examine_consume_stats(consumer.group, "TopicTest")
            assert sum(entry.consumer_offset for entry in stats.offset_table.values()) == MESSAGES


async def test_a_reset_is_fenced_where_only_the_request_says_so(stage: ServerStage) -> None:
    await stage.start_namesrv()
    await stage.start_broker()
    deliveries = Deliveries()
    producer, admin = await stage.producer(), await stage.admin()
    await producer.send(Message("TopicTest", b"x"))
    consumer = await stage.consume(deliveries, topic="TopicTest", profile=Profile.EPOCH)
    await deliveries.reach(1)
    await admin.resets.reset("TopicTest", "G", 0, mode=ResetMode.FENCED)
    await deliveries.reach(2)
    assert not consumer.is_suspended
