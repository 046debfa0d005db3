"""Delays last their length while somebody sets the broker's wall clock."""

from __future__ import annotations

import random

import pytest

from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message.record import decode_records
from tests.support.answers import body_of
from tests.support.fixtures import RunScenario, simulated
from tests.support.peer import Peer
from tests.support.stage import SimStage

HOUR_MS = 3_600_000
# Level to seconds.
DELAYS = {1: 1.0, 2: 5.0, 3: 10.0, 4: 30.0}


def depth(stage: SimStage, topic: str = "T") -> int:
    return int(stage.broker.context.store.max_offset(topic, 0))


async def delay(peer: Peer, level: int, body: bytes = b"x") -> None:
    (await peer.send(body=body, properties={"DELAY": str(level)})).require_success()


async def has_waited(stage: SimStage, sent_at: float, delay: float, topic: str = "T") -> None:
    """Check that the topic's only message comes ``delay`` seconds after ``sent_at``, or a tick later."""
    await stage.at(sent_at + delay - 0.01)
    assert depth(stage, topic) == 0
    await stage.at(sent_at + delay + 0.11)
    assert depth(stage, topic) == 1


@pytest.mark.parametrize("set_ms", [-2 * HOUR_MS, 2 * HOUR_MS, -40 * 24 * HOUR_MS])
@simulated()
async def test_a_message_sent_after_the_clock_is_set_waits_its_delay(stage: SimStage, set_ms: int) -> None:
    peer = stage.peer()
    await peer.create_topic()
    # The log's newest store time is that of this message.
    (await peer.send(topic="Other")).require_success()
    stage.world.wall_ahead_ms += set_ms
    await stage.at(3.0)
    await delay(peer, 2)
    await has_waited(stage, 3.0, 5.0)


@pytest.mark.parametrize("set_ms", [-2 * HOUR_MS, 2 * HOUR_MS])
@simulated()
async def test_a_message_that_waits_when_the_clock_is_set_waits_on(stage: SimStage, set_ms: int) -> None:
    """RocketMQ delivers it at once after both."""
    peer = stage.peer()
    await peer.create_topic()
    await stage.at(2.0)
    await delay(peer, 4)
    await stage.at(7.0)
    stage.world.wall_ahead_ms += set_ms
    await has_waited(stage, 2.0, 30.0)


@simulated()
async def test_messages_after_a_restart_with_an_earlier_clock_wait_their_delay(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic()
    (await peer.send(topic="Other")).require_success()
    await stage.broker.close()
    stage.world.wall_ahead_ms -= 2 * HOUR_MS
    await stage.start_broker()
    await stage.at(4.0)
    await delay(stage.peer("c2"), 2)
    await has_waited(stage, 4.0, 5.0)


@pytest.mark.parametrize("is_stopped", [False, True])
def test_a_restart_with_an_earlier_clock_makes_no_delay_shorter(
    simulate: RunScenario, *, is_stopped: bool
) -> None:
    """What still waits begins its delay again, because no clock says how long the broker was down."""

    async def scenario(stage: SimStage) -> None:
        peer = stage.peer()
        await peer.create_topic()
        await stage.at(2.0)
        await delay(peer, 3)
        await stage.at(8.0)
        if is_stopped:
            await stage.broker.close()
        stage.world.wall_ahead_ms -= 2 * HOUR_MS
        if not is_stopped:
            await stage.broker.close()
        await stage.start_broker()
        await has_waited(stage, 8.0, 10.0)

    simulate(scenario)


@simulated()
async def test_a_restart_with_a_right_clock_continues_the_delay(stage: SimStage) -> None:
    """Also of a message that was stored while the store time stood still, if the clock has caught up."""
    peer = stage.peer()
    await peer.create_topic()
    await stage.at(2.0)
    await delay(peer, 4)
    await stage.at(10.0)
    await stage.broker.close()
    await stage.at(20.0)
    await stage.start_broker()
    await has_waited(stage, 2.0, 30.0)


@pytest.mark.parametrize("seed", range(5))
def test_any_settings_of_the_clock(simulate: RunScenario, seed: int) -> None:
    """Every message waits its delay and at most a tick more, in order; store times never decrease."""
    chooser = random.Random(seed)

    async def scenario(stage: SimStage) -> None:
        peer = stage.peer()
        await peer.create_topic()
        sent: dict[bytes, tuple[float, int]] = {}
        seen: list[float] = []
        settings = 0

        async def let_pass(seconds: float) -> None:
            end = stage.world.now + seconds
            while stage.world.now < end:
                await stage.at(stage.world.now + 0.01)
                seen.extend([stage.world.now] * (depth(stage) - len(seen)))

        await stage.at(1.0)
        while stage.world.now < 60.0:
            if chooser.random() < 0.05:
                stage.world.wall_ahead_ms += chooser.choice((-1, 1)) * chooser.randrange(3 * HOUR_MS)
                settings += 1
            body, level = b"%d" % len(sent), chooser.choice(tuple(DELAYS))
            sent[body] = stage.world.now, level
            await delay(peer, level, body)
            await let_pass(chooser.uniform(0.0, 0.4))
        await let_pass(31.0)
        assert settings > 0
        assert len(seen) == len(sent)
        messages: list[MessageExt] = []
        while len(messages) < len(sent):
            messages += decode_records(body_of(await peer.pull(len(messages))))
        for message, moment in zip(messages, seen, strict=True):
            sent_at, level = sent[message.body]
            assert -1e-6 <= moment - sent_at - DELAYS[level] <= 0.12
        for level in DELAYS:
            mine = [int(message.body) for message in messages if sent[message.body][1] == level]
            assert mine == sorted(mine)
        store_times = [message.store_timestamp for message in messages]
        assert store_times == sorted(store_times)

    simulate(scenario)
