"""Time from a fenced reset to the first message that is redelivered to each consumer of the group."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack

from rewindmq import (
    AdminClient,
    ConsumeConcurrentlyStatus,
    ConsumeFromWhere,
    Message,
    MessageExt,
    Producer,
    PushConsumer,
)
from rewindmq.protocol.body.registration import TopicConfig
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode

# Otherwise every consumer would rebalance whenever another one joins.
BROKER_CONFIG = {"notifyConsumerIdsChangedEnable": "false"}
_MESSAGES_PER_QUEUE = 10
_SETTLE_SECONDS = 1.0


class _Arrivals:
    """Records which consumers have received a message since ``begin``."""

    def __init__(self, consumers: int) -> None:
        self._consumers = consumers
        self._missing: set[int] = set()
        self.complete_at = 0.0
        self.all_arrived = asyncio.Event()
        self.begin()

    def begin(self) -> None:
        self._missing = set(range(self._consumers))
        self.all_arrived.clear()

    def note(self, consumer: int) -> None:
        if not self._missing:
            return
        self._missing.discard(consumer)
        if not self._missing:
            self.complete_at = time.perf_counter()
            self.all_arrived.set()


async def redelivered(namesrv: str, broker: str, count: int, rounds: int) -> list[float]:
    """Return the milliseconds of each round, until the last of ``count`` consumers has a message.

    Each consumer is a separate client with one queue; all run in this process.
    """
    topic, group = f"FencedTopic{count}", f"FencedGroup{count}"
    arrivals = _Arrivals(count)
    samples = []
    async with AsyncExitStack() as exits:
        admin = await exits.enter_async_context(AdminClient(namesrv))
        await _fill(admin, namesrv, broker, topic, count)
        consumers = [_consumer(namesrv, topic, group, number, arrivals) for number in range(count)]
        await _start(consumers, exits)
        await arrivals.all_arrived.wait()
        for _ in range(rounds):
            # Wait until every queue is consumed to its end and its next pull is suspended.
            await asyncio.sleep(_SETTLE_SECONDS)
            arrivals.begin()
            started = time.perf_counter()
            resetting = admin.resets.reset(topic, group, 0, mode=ResetMode.FENCED)
            await asyncio.gather(resetting, arrivals.all_arrived.wait())
            samples.append((arrivals.complete_at - started) * 1000)
    return samples


async def _fill(admin: AdminClient, namesrv: str, broker: str, topic: str, queues: int) -> None:
    """Create a topic with a few messages in each queue."""
    config = TopicConfig(topic_name=topic, read_queue_nums=queues, write_queue_nums=queues)
    await admin.topics.create_and_update_topic_config(broker, config)
    async with Producer("BenchmarkProducer", namesrv) as producer:
        for queue in await producer.fetch_publish_message_queues(topic):
            await producer.send_batch([Message(topic, b"x")] * _MESSAGES_PER_QUEUE, queue=queue)


def _consumer(namesrv: str, topic: str, group: str, number: int, arrivals: _Arrivals) -> PushConsumer:
    async def listener(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        arrivals.note(number)
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    consumer = PushConsumer(
        group,
        namesrv,
        profile=Profile.EPOCH,
        instance_name=f"consumer-{number:04}",
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
    )
    consumer.subscribe(topic)
    consumer.register_message_listener(listener)
    return consumer


async def _start(consumers: Sequence[PushConsumer], exits: AsyncExitStack) -> None:
    """Start all consumers before one takes a queue over, so that no rebalance moves a queue later."""
    for consumer in consumers:
        consumer.suspend()
        await exits.enter_async_context(consumer)
    for consumer in consumers:
        await consumer.resume()
