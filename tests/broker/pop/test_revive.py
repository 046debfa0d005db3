"""Revivals that are refused, checkpoints that come early, and timers that lag (docs/spec/pop.md 6)."""

from __future__ import annotations

import errno
from typing import Any, Final

import pytest

from rewindmq.broker.pop import revive
from rewindmq.broker.store.model import StoredMessage
from rewindmq.broker.tables import topic_config
from rewindmq.broker.timer.timers import TimerMessages
from rewindmq.protocol.pop.records import AckMsg, PopCheckPoint
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.text import java_hash
from rewindmq.race.sim.world import EPOCH_MS
from tests.broker.pop.asking import ack_all, pop
from tests.broker.pop.test_pop import filled
from tests.support.failing_disk import FailingDisk
from tests.support.fixtures import RunScenario, simulated
from tests.support.stage import SimStage

V53: Final = Profile.V53
REVIVE: Final = "rmq_sys_REVIVE_LOG_DefaultCluster"
ADDING: Final = ("create", "map", "allocate", "write", "replace", "rewrite", "sync")


def records(stage: SimStage) -> int:
    """Return how many records have come into the revive topic."""
    store = stage.broker.context.store
    return sum(store.max_offset(REVIVE, queue_id) for queue_id in range(8))


def open_check_points(stage: SimStage) -> int:
    parts = stage.broker.context.pop
    assert parts is not None
    return parts.revive.open_check_points


@simulated(profile=V53, revive_queue_num=1)
async def test_a_refused_revival_stops_no_other_and_comes_later(
    stage: SimStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no room for the retry topic of G; H has its own, and the same revive queue."""
    peer = await filled(stage, 4)
    await pop(peer, group="H", invisible=1_000)
    await stage.at(6.0)
    refused = await pop(peer, invisible=1_000)
    others = await pop(peer, group="H", invisible=1_000)
    assert len(refused.messages) == len(others.messages) == 4
    topics = stage.broker.context.tables.topics
    monkeypatch.setattr(topic_config, "MAX_TOPICS", len(topics))
    await stage.at(12.0)
    assert topics.find("%RETRY%G_T") is None
    assert sorted((await pop(peer, group="H")).bodies) == sorted(others.bodies)
    assert open_check_points(stage) == 0
    # They are tried again after 10 and 20 s.
    await stage.at(26.0)
    assert (await pop(peer)).messages == []
    monkeypatch.undo()
    await stage.at(48.0)
    again = await pop(peer)
    assert sorted(again.bodies) == sorted(refused.bodies)
    assert {lent.attempt for lent in again.messages} == {2}


def test_a_queue_that_waits_reads_no_more_than_a_part(
    simulate: RunScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing can be stored for a while; then everything comes again that has no ack."""
    monkeypatch.setattr(revive, "_MOST_WAITING", 64)

    async def scenario(stage: SimStage) -> None:
        disk = FailingDisk(stage.runtime.clock.now_ms)
        small = {"mapped_file_size_commit_log": 65_536, "mapped_file_size_consume_queue": 8_000}
        await stage.start_broker(disk=disk.disk, store=small, profile=V53, revive_queue_num=1)
        peer = await filled(stage, 150, 1)
        lent = [
            message for _ in range(150) for message in (await pop(peer, count=1, invisible=1_000)).messages
        ]
        acked, left = lent[::2], lent[1::2]
        await ack_all(peer, acked)
        # The records are in the revive topic, and not due.
        await stage.until(lambda: records(stage) == 225, 4.0)
        disk.fail(errno.ENOSPC, *ADDING)
        await stage.at(20.0)
        waiting = open_check_points(stage)
        assert disk.failures
        disk.mend()
        came: list[bytes] = []
        while stage.world.now < 60.0:
            came += (await pop(peer, invisible=100_000)).bodies
            await stage.at(stage.world.now + 1.0)
        assert sorted(came) == sorted(message.body for message in left)
        assert 0 < waiting < 128

    simulate(scenario)


@simulated(profile=V53)
async def test_timers_that_lag_put_no_checkpoint_back(
    stage: SimStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    lagging = vars(TimerMessages)["delivered_until"]
    monkeypatch.setattr(
        TimerMessages, "delivered_until", property(lambda timers: lagging.fget(timers) - 15_000)
    )
    peer = await filled(stage, 12)
    popped = await pop(peer)
    await ack_all(peer, popped.messages[:9])
    await stage.at(26.0)
    assert records(stage) == 4 + 9
    assert (await pop(peer)).messages == []
    await stage.at(31.0)
    assert sorted((await pop(peer)).bodies) == sorted(popped.bodies[9:])


@simulated(profile=V53)
async def test_an_early_checkpoint_that_has_an_ack_keeps_it(stage: SimStage) -> None:
    """Both records come half a minute before the messages are visible."""
    peer = await filled(stage, 2, 1)
    assert len((await pop(peer, invisible=100_000)).messages) == 2

    def put(body: bytes, tag: str) -> None:
        properties = f"TAGS\x01{tag}\x02".encode()
        message = StoredMessage(REVIVE, 0, body, properties, java_hash(tag))
        stage.broker.context.sends.appender.put_other(message)

    now = EPOCH_MS + 1_000
    names: dict[str, Any] = {
        "topic": "T",
        "consumer_group": "G",
        "broker_name": "broker-a",
        "start_offset": 0,
    }
    point = PopCheckPoint(**names, num=2, pop_time=now, invisible_time=30_000)
    put(point.encode(), "ck")
    put(AckMsg(**names, ack_offset=0, pop_time=now).encode(), "ack")
    await stage.at(5.0)
    assert (records(stage), open_check_points(stage)) == (2, 1)
    await stage.at(36.0)
    assert (await pop(peer)).bodies == [b"m1"]
    assert open_check_points(stage) == 0
