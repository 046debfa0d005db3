"""Behaviour of listeners with real servers under virtual time (docs/spec/client.md C.10)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from rewindmq import (
    ConsumeConcurrentlyStatus,
    MessageExt,
)
from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import Profile
from tests.support.clients import OK
from tests.support.fixtures import RunScenario, played
from tests.support.stage import SimStage

ALL = list(Profile)


@played()
async def test_a_listener_that_lets_a_cancellation_out_has_failed(stage: SimStage) -> None:
    await stage.create_topic(queues=1)
    await stage.fill(1)
    calls: list[int] = []

    async def listen(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        calls.append(messages[0].reconsume_times)
        if len(calls) == 1:
            raise asyncio.CancelledError
        return OK

    await stage.consume(listen)
    await stage.world.sleep(40)
    assert calls == [0, 1]
    assert stage.stored() == {0: 1}


@pytest.mark.parametrize("is_async", [True, False])
@played()
async def test_a_raising_listener_gets_its_message_again(stage: SimStage, is_async: bool) -> None:
    await stage.create_topic(queues=1)
    await stage.fill(3)
    seen: list[tuple[bytes, int]] = []

    def listen(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus | None:
        message = messages[0]
        seen.append((message.body, message.reconsume_times))
        if message.body == b"1" and message.reconsume_times == 0:
            raise ValueError("not this one")
        return None if message.reconsume_times == 1 else OK

    async def listen_async(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus | None:
        return listen(messages)

    await stage.consume(listen_async if is_async else listen)
    await stage.world.sleep(60)
    assert [times for body, times in seen if body == b"1"] == [0, 1, 2]
    assert [body for body, times in seen if times == 0] == [b"0", b"1", b"2"]
    assert stage.stored() == {0: 3}
    assert stage.events.at(Point.PERSIST_TICK) != []


@played()
async def test_a_listener_cannot_change_what_counts_as_consumed(stage: SimStage) -> None:
    await stage.create_topic(queues=1)
    await stage.fill(3)
    given: list[Sequence[MessageExt]] = []

    async def listen(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        given.append(messages)
        return OK

    await stage.consume(listen, consume_message_batch_max_size=2)
    await stage.world.sleep(12)
    assert [len(messages) for messages in given] == [2, 1]
    assert all(isinstance(messages, tuple) for messages in given)


@played()
async def test_a_plain_listener_that_raises_stop_iteration_has_failed(stage: SimStage) -> None:
    await stage.create_topic(queues=1)
    await stage.fill(1)
    calls: list[int] = []

    def listen(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        calls.append(messages[0].reconsume_times)
        return OK if len(calls) > 1 else next(iter(()))

    await stage.consume(listen)
    await stage.world.sleep(40)
    assert calls == [0, 1]
    assert stage.stored() == {0: 1}


@pytest.mark.parametrize("profile", ALL)
@played()
async def test_a_listener_may_shut_its_consumer_down(stage: SimStage, profile: Profile) -> None:
    await stage.create_topic(queues=1)
    await stage.fill(5)
    calls: list[bytes] = []
    ended = asyncio.Event()

    async def listen(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        calls.append(messages[0].body)
        if len(calls) == 3:
            await consumer.shutdown()
            ended.set()
        return OK

    consumer = stage.push_consumer(listen, consume_thread_max=1)
    await consumer.start()
    await ended.wait()
    await stage.world.sleep(15)
    assert calls == [b"0", b"1", b"2"]
    # The listener's own message is not consumed.
    assert stage.stored() == {0: 2}
    assert consumer.instance.is_unused


@played()
async def test_a_slow_listener_delays_nothing_else(stage: SimStage) -> None:
    await stage.create_topic(queues=1)
    await stage.fill(3)

    async def slow(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        await stage.world.sleep(100)
        return OK

    await stage.consume(slow)
    await stage.world.sleep(125)
    assert len(stage.events.at(Point.LISTENER_RETURNED)) == 3
    ticks = [when for when in stage.events.at(Point.PERSIST_TICK) if when < 100]
    assert len(ticks) >= 18
    assert len(stage.events.at(Point.REBALANCED, topic="T")) >= 5


def test_the_listener_runs_on_no_more_than_consume_thread_max_batches(play: RunScenario) -> None:
    async def scene(stage: SimStage) -> None:
        await stage.create_topic()
        await stage.fill(20)
        running = most = done = 0

        async def listen(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
            nonlocal running, most, done
            running += 1
            most = max(most, running)
            await stage.world.sleep(1)
            running -= 1
            done += 1
            return OK

        await stage.consume(listen, consume_thread_max=7)
        await stage.until(lambda: done == 80)
        assert most == 7

    play(scene)
