"""A reset at real speed, on real sockets, with a broker process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import pytest

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
from rewindmq.protocol.points import Point
from rewindmq.protocol.remoting.runtime import system_runtime

MESSAGES = 100


@pytest.mark.slow(full_only="in virtual time the consumer waits 10 s, too")
async def test_a_consumer_waits_10_s_before_it_applies_a_reset() -> None:
    moments: dict[Point, float] = {}
    delivered: list[float] = []

    def note(point: Point, details: dict[str, object]) -> None:
        moments.setdefault(point, time.monotonic())

    runtime = system_runtime(probe=note)

    async def listener(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        delivered.extend(time.monotonic() for _ in messages)
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    async def until_delivered(count: int) -> None:
        async with asyncio.timeout(60):
            while len(delivered) < count:
                await runtime.timers.sleep(0.01)

    async with LocalCluster(brokers=1) as cluster:
        namesrv = cluster.namesrv_address
        consumer = PushConsumer(
            "G", namesrv, runtime=runtime, consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
        )
        consumer.subscribe("TopicTest")
        consumer.register_message_listener(listener)
        async with (
            Producer("P", namesrv, runtime=runtime) as producer,
            AdminClient(namesrv, runtime=runtime) as admin,
        ):
            for number in range(MESSAGES):
                await producer.send(Message("TopicTest", b"Hello RocketMQ %d" % number, "TagA"))
            async with consumer:
                await until_delivered(MESSAGES)
                # Store the offsets now; the 5 s timer would do it later.
                await consumer.persist_offsets()
                moments.clear()
                result = await admin.resets.reset("TopicTest", "G", 0)
                answered = time.monotonic()
                await until_delivered(2 * MESSAGES)

    assert set(result.offset_table.values()) == {0}
    assert answered < moments[Point.WAIT_OVER]
    waited = moments[Point.OFFSET_APPLIED] - moments[Point.SUSPENDED]
    assert 10.0 <= waited < 15.0
    assert delivered[MESSAGES] > moments[Point.RESUMED]
    assert len(delivered) == 2 * MESSAGES
