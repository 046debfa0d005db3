"""A real broker whose wall clock is set back by two hours keeps the delays of messages and retries."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import pytest

from rewindmq import (
    ConsumeConcurrentlyStatus,
    ConsumeFromWhere,
    LocalCluster,
    Message,
    MessageExt,
    Producer,
    PushConsumer,
)

SCALE = 0.02
TWO_HOURS_MS = 7_200_000


# Each case takes seconds, so the default group has the first.
@pytest.mark.parametrize("restarts", [False, pytest.param(True, marks=pytest.mark.slow)])
async def test_a_delay_and_a_retry_last_their_length_after_the_clock_is_set_back(*, restarts: bool) -> None:
    """Only lower bounds of real time are checked. The defaults of the delays: level 2 is 5 s, and the first
    retry of a listener that fails comes after 10 s."""
    came: asyncio.Queue[tuple[float, MessageExt]] = asyncio.Queue()

    async def listener(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        (message,) = messages
        came.put_nowait((time.monotonic(), message))
        if message.tags == "fails" and not message.reconsume_times:
            return ConsumeConcurrentlyStatus.RECONSUME_LATER
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    async def next_message() -> tuple[float, MessageExt]:
        return await asyncio.wait_for(came.get(), 60)

    async with LocalCluster(brokers=1, time_scale=SCALE) as cluster:
        address = cluster.namesrv_address
        consumer = PushConsumer(
            "G", address, time_scale=SCALE, consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
        )
        consumer.subscribe("Later")
        consumer.register_message_listener(listener)
        async with Producer("PG", address, time_scale=SCALE) as producer, consumer:
            await cluster.set_clocks_ahead(TWO_HOURS_MS)
            await producer.send(Message("Later", b"x", "fails"))
            # The consumer knows the topic and its retry topic now, and the log ends in two hours.
            await next_message()
            await next_message()
            await cluster.set_clocks_ahead(0)
            if restarts:
                await cluster.kill("broker-a")
                await cluster.restart("broker-a")
            await producer.send(Message("Later", b"x", "succeeds"))
            await next_message()
            sent_at = time.monotonic()
            await producer.send(Message("Later", b"x", "fails", delay_level=2))
            first_at, first = await next_message()
            retried_at, retried = await next_message()
    assert (first.reconsume_times, retried.reconsume_times) == (0, 1)
    assert first_at - sent_at >= 5 * SCALE
    assert retried_at - first_at >= 10 * SCALE
    # Store times do not decrease: searches by time need that.
    assert retried.store_timestamp >= first.store_timestamp > time.time() * 1_000 + TWO_HOURS_MS / 2
