"""Resets of orderly groups under virtual time: E19, guard G7, fenced."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from rewindmq import PushConsumer
from rewindmq.client.consume.orderly_queue import OrderlyProcessQueue
from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from tests.client.push.orderly_props import SUSPEND, InOrder, consume
from tests.client.race_props import check_stored_follows_deliveries, live_chains, next_idle_pull, reset, since
from tests.support.fixtures import played
from tests.support.stage import SimStage


def owned(consumer: PushConsumer) -> OrderlyProcessQueue:
    (held,) = [held for queue, held in consumer.process_queues.items() if queue.topic == "T"]
    assert isinstance(held, OrderlyProcessQueue)
    return held


async def reset_under_a_listener(
    stage: SimStage, listener: InOrder, **options: Any
) -> tuple[PushConsumer, asyncio.Event, float]:
    """Reset the group to 0 while its listener runs on 150, with everything before it consumed.

    The pull in flight is answered 6 s after the reset, so that it does no harm (docs/spec/races.md E.4).
    """
    await stage.create_topic(queues=1)
    await stage.fill(150)
    consumer = await consume(stage, listener, **options)
    await stage.until(lambda: stage.stored() == {0: 150})
    tick = await next_idle_pull(stage)
    done = listener.hold(150)
    listener.seconds = 1.0
    await since(stage, tick, 0.1)
    await stage.fill(1, first=150)
    await since(stage, tick, 14)
    return consumer, done, await reset(stage)


@pytest.mark.scenario("E19", "v49")
@pytest.mark.parametrize("is_suspending", [False, True])
@played()
async def test_E19_a_late_result_changes_nothing_and_the_replay_waits_for_it(
    stage: SimStage, is_suspending: bool
) -> None:
    """The listener runs until 15 s after the reset. 0 is committed at 10.0, and the offset read at 11.0. The
    replay starts after the old listener has ended and a refresh has locked the new queue."""
    listener = InOrder(stage)
    if is_suspending:
        listener.verdicts = {150: SUSPEND}
    consumer, done, start = await reset_under_a_listener(stage, listener)
    asyncio.get_running_loop().call_later(start + 15 - stage.world.now, done.set)
    await since(stage, start, 11.3)
    assert not owned(consumer).locked
    await stage.until(lambda: owned(consumer).locked, 20)
    refreshed, chain = stage.world.now, owned(consumer).chain
    await since(stage, start, 60)
    assert min(stage.events.at(Point.PULL_SENT, chain=chain)) >= round(refreshed, 1)
    commits = [
        (round(at - start, 1), details["offset"])
        for at, point, details in stage.events.heard
        if point is Point.COMMIT_RECEIVED and at > start + 9.9
    ]
    assert commits[0] == (10.0, 0)
    queried = next(at - start for at in stage.events.at(Point.OFFSET_QUERIED, topic="T") if at > start)
    assert queried == pytest.approx(11.0, abs=0.11)
    replay = listener.calls[151:]
    assert replay[0][0] - start >= 15
    assert [offset for _, _, offset in replay] == list(range(len(replay)))
    assert len(replay) > 20
    assert all(offset <= len(replay) for _, offset in commits)
    if not is_suspending:
        assert stage.events.at(Point.RESULT_DISCARDED, offsets=[150])
    assert len(live_chains(stage, start + 16, topic="T")) == 1


@pytest.mark.parametrize(
    ("profile", "has_message", "replayed"),
    [
        (Profile.V42, False, 0),
        (Profile.V49, False, 0),
        (Profile.V49, True, 9),
        (Profile.V53, False, 8),
        (Profile.EPOCH, False, 8),
    ],
)
@played()
async def test_R1_takes_the_whole_replay_from_a_consumer_that_waits_for_the_lock(
    stage: SimStage, profile: Profile, has_message: bool, replayed: int
) -> None:
    """The pull in flight is answered after the wait, and the timer commits its offset.

    Only then does a refresh lock the new queue, and the first pull reads the offset. A message during the
    wait prevents this.
    """
    await stage.create_topic(queues=1)
    await stage.fill(8)
    listener = InOrder(stage)
    await consume(stage, listener)
    await stage.until(lambda: stage.stored() == {0: 8})
    await next_idle_pull(stage)
    start = await reset(stage)
    if has_message:
        await since(stage, start, 3)
        await stage.fill(1, first=8)
    await since(stage, start, 90)
    assert listener.offsets()[8:] == list(range(replayed))
    assert stage.stored() == {0: 9 if has_message else 8}


@played()
async def test_without_the_guards_a_late_result_is_committed(stage: SimStage) -> None:
    listener = InOrder(stage)
    _, done, start = await reset_under_a_listener(stage, listener, profile=Profile.UNGUARDED)
    await since(stage, start, 14)
    done.set()
    await since(stage, start, 20)
    assert stage.stored() == {0: 151}


@played(profile=Profile.V53)
async def test_v53_unlocks_a_queue_whose_listener_hangs_20_seconds_after_the_last_refresh(
    stage: SimStage,
) -> None:
    await stage.create_topic(queues=1)
    await stage.fill(1)
    listener = InOrder(stage)
    done = listener.hold(0)
    first = await consume(stage, listener, name="c2")
    await stage.until(lambda: len(listener.calls) == 1)
    held = owned(first)
    other = InOrder(stage)
    await consume(stage, other, name="c1")
    await stage.until(lambda: held.dropped, 5)
    dropped, refreshed = stage.world.now, held.last_lock
    await stage.until(lambda: len(other.calls) == 1, 40)
    assert stage.world.now - dropped > 15
    assert stage.world.now - refreshed < 25
    done.set()
    await stage.world.sleep(30)
    assert other.offsets() == [0]


@played(profile=Profile.EPOCH, default_topic_queue_nums=1, reset_mode=ResetMode.FENCED)
async def test_a_fenced_reset_keeps_the_order_and_nothing_old_is_committed(stage: SimStage) -> None:
    await stage.create_topic(queues=1)
    await stage.fill(100)
    listener = InOrder(stage)
    consumer = await consume(stage, listener)
    await stage.until(lambda: stage.stored() == {0: 100})
    done = listener.hold(100)
    await stage.fill(5, first=100)
    await stage.until(lambda: listener.offsets()[-1] == 100)
    start = await reset(stage)
    await since(stage, start, 5)
    # The new ProcessQueue is pulled at once; its first batch waits for the listener that still runs.
    assert owned(consumer).epoch == 1
    assert owned(consumer).locked
    assert owned(consumer).cached_count > 0
    assert len(listener.calls) == 101
    listener.seconds = 0.1
    done.set()
    await since(stage, start, 60)
    assert listener.offsets()[101:] == list(range(105))
    assert stage.stored() == {0: 105}
    assert stage.events.at(Point.RESULT_DISCARDED, offsets=[100], epoch=0)
    check_stored_follows_deliveries(stage, start)


@played(profile=Profile.EPOCH, default_topic_queue_nums=4, reset_mode=ResetMode.FENCED)
async def test_a_fenced_reset_of_a_group_of_two_stays_in_order_while_a_consumer_leaves(
    stage: SimStage,
) -> None:
    await stage.create_topic(queues=4)
    await stage.fill(50)
    listener = InOrder(stage, seconds=0.05)
    await consume(stage, listener, name="c1")
    second = await consume(stage, listener, name="c2")
    await stage.until(lambda: stage.stored() == dict.fromkeys(range(4), 50))
    before = len(listener.calls)
    start = await reset(stage)
    await since(stage, start, 1)
    await second.shutdown()
    await since(stage, start, 60)
    assert stage.stored() == dict.fromkeys(range(4), 50)
    for queue_id in range(4):
        replay = [offset for _, queue, offset in listener.calls[before:] if queue == queue_id]
        # At most the uncommitted messages of the leaving consumer are repeated, in order.
        assert sorted(set(replay)) == list(range(50))
        falls = [after for before_, after in pairwise(replay) if after <= before_]
        assert len(falls) <= 1
    check_stored_follows_deliveries(stage, start)
