"""The time scale of a cluster applies to the delays of messages, too."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from rewindmq import (
    ConsumeConcurrentlyStatus,
    ConsumeFromWhere,
    LocalCluster,
    Message,
    MessageExt,
    Producer,
    PushConsumer,
)
from rewindmq.protocol.remoting.runtime import system_runtime

SCALE = 0.002


async def test_the_time_scale_shortens_the_delays_of_messages() -> None:
    """Delay level 9 is five minutes, and 0.6 s at this time scale."""
    runtime = system_runtime(time_scale=SCALE)
    came: asyncio.Future[MessageExt] = asyncio.get_running_loop().create_future()

    async def listener(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        if not came.done():
            came.set_result(messages[0])
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    async with LocalCluster(brokers=1, time_scale=SCALE) as cluster:
        first = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
        address = cluster.namesrv_address
        consumer = PushConsumer("G", address, runtime=runtime, consume_from_where=first)
        consumer.subscribe("Later")
        consumer.register_message_listener(listener)
        async with Producer("PG", address, runtime=runtime) as producer, consumer:
            sent_at = runtime.clock.now_ms()
            await producer.send(Message("Later", b"x", delay_level=9))
            message = await asyncio.wait_for(came, 60)
    assert sent_at + 600 <= message.store_timestamp < sent_at + 60_000
