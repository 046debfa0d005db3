"""Timer messages while the broker's wall clock is set (docs/spec/timers.md): their times are wall times."""

from __future__ import annotations

from rewindmq.broker.broker import Broker
from rewindmq.protocol.profile import Profile
from tests.broker.timer.box import stored
from tests.support.fixtures import simulated
from tests.support.peer import Peer
from tests.support.stage import SimStage

V53 = Profile.V53
HOUR_MS = 3_600_000


async def timed(peer: Peer, key: str, seconds: int) -> None:
    response = await peer.send(properties={"UNIQ_KEY": key, "TIMER_DELAY_SEC": str(seconds)})
    response.require_success()


def keys(broker: Broker) -> list[str]:
    return [message.properties["UNIQ_KEY"] for message in stored(broker)]


@simulated(profile=V53)
async def test_a_message_waits_for_its_time_if_the_clock_is_set_back(stage: SimStage) -> None:
    """RocketMQ delivers those at once that are due before the clock's highest time: messages come early."""
    peer = stage.peer()
    await stage.at(1.5)
    await timed(peer, "before", 10)
    await stage.at(5.0)
    stage.world.wall_ahead_ms -= HOUR_MS
    await stage.at(6.5)
    await timed(peer, "after", 10)
    await stage.at(16.4)
    assert keys(stage.broker) == []
    await stage.at(18.0)
    assert keys(stage.broker) == ["after"]
    await stage.at(HOUR_MS / 1_000 + 11.4)
    assert keys(stage.broker) == ["after"]
    await stage.at(HOUR_MS / 1_000 + 13.0)
    assert keys(stage.broker) == ["after", "before"]


@simulated(profile=V53)
async def test_messages_are_due_if_the_clock_passes_their_times(stage: SimStage) -> None:
    peer = stage.peer()
    await stage.at(1.5)
    await timed(peer, "first", 60)
    await timed(peer, "second", 7_200)
    await stage.at(5.0)
    stage.world.wall_ahead_ms += HOUR_MS
    await stage.at(7.0)
    assert keys(stage.broker) == ["first"]


@simulated(profile=V53)
async def test_a_restart_with_an_earlier_clock_delivers_each_message_once(stage: SimStage) -> None:
    peer = stage.peer()
    await stage.at(1.5)
    await timed(peer, "delivered", 2)
    await timed(peer, "open", 20)
    await stage.at(6.0)
    assert keys(stage.broker) == ["delivered"]
    await stage.broker.close()
    stage.world.wall_ahead_ms -= HOUR_MS
    await stage.start_broker()
    await stage.at(HOUR_MS / 1_000 + 21.4)
    assert keys(stage.broker) == ["delivered"]
    await stage.at(HOUR_MS / 1_000 + 24.0)
    assert keys(stage.broker) == ["delivered", "open"]
