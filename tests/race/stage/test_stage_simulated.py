"""The simulated stage: the same seed plays the same run, and no task is left."""

from __future__ import annotations

import gc

import pytest

from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.errors import RaceError
from rewindmq.race.history import History, Lab
from rewindmq.race.sim import World
from rewindmq.race.stage.settle import MAX_SECONDS, QUIET_SECONDS, settle
from rewindmq.race.stage.simulated import SimulatedStage
from rewindmq.race.stage.stage import TOPIC, ListenerPlan, Stage
from tests.race.stages import held_answer, simulate

FROM_FIRST = {"consume_from_where": "CONSUME_FROM_FIRST_OFFSET"}


async def lose_a_reset(stage: Stage) -> None:
    await stage.open(brokers=2)
    await stage.send(5)
    answer = stage.hold(held_answer(5), consumer="A")
    consumer = await stage.consumer("A", listener=ListenerPlan(again=4.0), options=FROM_FIRST)
    await stage.until(Point.COMMIT_RECEIVED, offset=5, topic=TOPIC)
    await stage.reset(0)
    await stage.until(Point.RESUMED)
    answer.release()
    await stage.sleep(6.0)
    await consumer.kill()
    await stage.kill_broker("broker-b")
    await stage.consumer("B", options=FROM_FIRST)
    await stage.sleep(30.0)


def test_the_same_seed_gives_the_same_bytes() -> None:
    first, second, other = (simulate(lose_a_reset, seed=seed).to_lines() for seed in (3, 3, 4))
    assert first == second
    assert first != other
    assert History.from_lines(first).to_lines() == first


def test_no_two_messages_of_a_queue_have_the_same_store_time() -> None:
    async def play(stage: Stage) -> None:
        await stage.open()
        await stage.send(20)

    times = [round(event.at * 1000) for event in simulate(play).of(Lab.MESSAGE_SENT)]
    assert len(set(times)) == 20


def test_a_listener_plan_slows_single_messages_and_those_seen_before() -> None:
    plan = ListenerPlan(seconds=1.0, slow={1: 7.0}, again=3.0)

    async def play(stage: Stage) -> None:
        await stage.open()
        await stage.send(2)
        await stage.consumer("A", listener=plan, options=FROM_FIRST)
        await stage.until(Point.COMMIT_RECEIVED, offset=2, topic=TOPIC)
        await stage.reset(0)
        await stage.until(Point.LISTENER_RETURNED, offset=1, count=2)

    history = simulate(play)
    called = [event.at for event in history.of(Point.LISTENER_CALLED)]
    returned = {event.details["offset"]: event.at for event in reversed(history.of(Point.LISTENER_RETURNED))}
    assert [round(returned[offset] - called[offset], 3) for offset in (0, 1)] == [1.0, 7.0]
    again = history.of(Point.LISTENER_RETURNED)[-1].at - called[2]
    assert round(again, 3) == 3.0


@pytest.mark.parametrize(("again", "end"), [(0.0, QUIET_SECONDS), (1000.0, QUIET_SECONDS)])
def test_a_run_settles_when_nothing_changes_any_more(again: float, end: float) -> None:
    moved = 0.0

    async def play(stage: Stage) -> None:
        nonlocal moved
        await stage.open()
        await stage.send(2)
        await stage.consumer("A", listener=ListenerPlan(slow={1: again}), options=FROM_FIRST)
        await stage.until(Point.COMMIT_RECEIVED, offset=1 if again else 2, topic=TOPIC)
        moved = stage.now
        await settle(stage)
        assert end <= stage.now - moved < end + 1.0

    simulate(play)


def test_a_run_that_never_settles_is_ended_after_a_while() -> None:
    async def play(stage: Stage) -> None:
        await stage.open()
        await stage.send(200)
        options = {**FROM_FIRST, "consume_thread_max": 1}
        await stage.consumer("A", listener=ListenerPlan(seconds=5.0), options=options)
        began = stage.now
        await settle(stage)
        assert MAX_SECONDS <= stage.now - began <= MAX_SECONDS + 5.0

    simulate(play)


def test_unknown_keys_of_a_broker_are_refused() -> None:
    async def play(stage: Stage) -> None:
        await stage.open(broker_config={"flushConsumerOffsetInterval": 3_000, "noSuchKey": 1})

    with pytest.raises(RaceError, match="broker_config: brokers know no noSuchKey"):
        simulate(play)


def test_a_reset_that_is_not_waited_for_is_on_its_way() -> None:
    async def play(stage: Stage) -> None:
        await stage.open()
        await stage.send(1)
        await stage.consumer("A", options=FROM_FIRST)
        await stage.until(Point.COMMIT_RECEIVED, offset=1, topic=TOPIC)
        await stage.reset(0, wait=False)
        assert stage.history[-1].kind is Point.RESET_SENT
        await stage.until(Lab.RESET_ACKNOWLEDGED)

    simulate(play)


def test_an_aborted_play_leaves_no_task_behind() -> None:
    async def play(stage: Stage) -> None:
        await stage.open()
        await stage.send(1)
        await stage.consumer("A", options=FROM_FIRST)
        await stage.until(Point.COMMIT_RECEIVED, offset=1, topic=TOPIC)
        await stage.reset(0, wait=False)
        raise RaceError("broken off")

    with pytest.raises(RaceError, match="broken off"):
        simulate(play)
    # Warnings about tasks that were destroyed while pending are errors here.
    gc.collect()


def test_events_after_the_play_are_not_in_the_history() -> None:
    world = World(1)

    async def main() -> tuple[History, int]:
        async with SimulatedStage(world, Profile.V49, ResetMode.CLASSIC) as stage:
            await lose_a_reset(stage)
            count = len(stage.history)
        return stage.history, count

    history, count = world.run(main())
    assert len(history) == count
