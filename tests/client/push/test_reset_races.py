"""How a classic reset is lost, and what a single remedy prevents, under virtual time.

Specification: docs/spec/races.md E.1 to E.18; docs/spec/scenarios.md, E01 to E30.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from rewindmq.client.core.profile import CLIENT_PROFILES, ClientProfile
from rewindmq.protocol.body.offset_table import ResetOffsetBody
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.offset import QueryConsumerOffsetRequestHeader
from rewindmq.protocol.header.reset import ResetOffsetRequestHeader
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.race.sim import World
from tests.client.race_props import SlowListener, Stall, before_the_answer, next_idle_pull, reset, since
from tests.client.scripted_broker import ScriptedBroker
from tests.client.scripted_stage import consumer_of, play_scripted
from tests.support.fixtures import RunScenario, played
from tests.support.stage import SimStage
from tests.support.virtual import until

V49 = CLIENT_PROFILES[Profile.V49]
UNGUARDED = CLIENT_PROFILES[Profile.UNGUARDED]
UNCHECKED = replace(V49, checks_dropped=False)
F1_ONLY = replace(V49, checks_dropped_on_empty_pull=True)
F2_ONLY = replace(V49, drops_on_apply=True)
F3_ONLY = replace(V49, cancels_pulls=True)
F8_ONLY = replace(V49, offset_cell_per_queue_object=True)


# The listener that is slower than the wait: E01 to E04.


async def _late_result(stage: SimStage, profile: ClientProfile, *, found_at: float | None = None) -> int:
    """Return the offset stored 5.5 s after a listener on 150 returns, 14 s after a reset to 0.

    The replay is slow. The pull in flight is answered 6 s after the reset, so that it does no harm (E.4).
    """
    await stage.create_topic(queues=1)
    await stage.fill(150)
    listener = SlowListener(stage.world)
    await stage.consume(listener, profile=profile, consume_thread_max=3)
    await stage.until(lambda: stage.stored() == {0: 150})
    tick = await next_idle_pull(stage)
    done = listener.hold(150)
    listener.seconds = 1.0
    await since(stage, tick, 0.1)
    await stage.fill(1, first=150)
    await since(stage, tick, 14)
    start = await reset(stage)
    if found_at is not None:
        await since(stage, start, found_at)
        await stage.fill(1, first=151)
    await since(stage, start, 14)
    assert stage.stored()[0] < 50
    done.set()
    await since(stage, start, 19.5)
    assert len(listener.offsets) < 151 + 50
    return stage.stored()[0]


@pytest.mark.scenario("E04", "v49")
@pytest.mark.scenario("E03", "v49")
@pytest.mark.scenario("E02", "v49")
@pytest.mark.scenario("E01", "v49")
@pytest.mark.parametrize(
    ("profile", "found_at", "is_lost"),
    [
        pytest.param(V49, None, False, id="E01"),
        pytest.param(UNGUARDED, None, True, id="E02"),
        pytest.param(UNCHECKED, None, False, id="E03"),
        pytest.param(UNCHECKED, 1.0, True, id="E04"),
        pytest.param(V49, 1.0, False, id="E04-v49"),
        pytest.param(replace(UNGUARDED, offset_cell_per_queue_object=True), None, False, id="E02-F8"),
    ],
)
def test_E01_to_E04_a_late_result_is_committed_only_without_the_guards(
    play: RunScenario, profile: ClientProfile, found_at: float | None, is_lost: bool
) -> None:
    async def scene(stage: SimStage) -> None:
        stored = await _late_result(stage, profile, found_at=found_at)
        assert (stored >= 151) == is_lost
        assert is_lost or 0 < stored < 50
        is_accepted = is_lost or profile.offset_cell_per_queue_object
        point = Point.RESULT_ACCEPTED if is_accepted else Point.RESULT_DISCARDED
        assert stage.events.at(point, offsets=[150])

    play(scene)


# The pull in flight: E05, E07, E30.


async def _idle_reset(stage: SimStage, left: float, profile: ClientProfile, threads: int = 4) -> float:
    """Reset an idle consumer from 100 to 0, ``left`` seconds before its suspended pull is answered."""
    await stage.create_topic(queues=1)
    await stage.fill(100)
    listener = SlowListener(stage.world)
    await stage.consume(
        listener, profile=profile, consume_thread_max=8, client_callback_executor_threads=threads
    )
    await stage.until(lambda: stage.stored() == {0: 100})
    await before_the_answer(stage, left)
    listener.seconds = 2.0
    return await reset(stage)


@pytest.mark.scenario("E05", "v49")
@pytest.mark.parametrize(
    ("profile", "is_lost"),
    [(V49, True), (F1_ONLY, False), (F2_ONLY, True), (F3_ONLY, False), (F8_ONLY, False)],
)
def test_E05_E30_a_pull_answered_after_the_wait_stores_the_old_offset_again(
    play: RunScenario, profile: ClientProfile, is_lost: bool
) -> None:
    async def scene(stage: SimStage) -> None:
        start = await _idle_reset(stage, 13, profile)
        await since(stage, start, 12.9)
        assert stage.stored()[0] < 20
        await since(stage, start, 18.1)
        assert (stage.stored()[0] == 100) == is_lost
        assert is_lost or stage.stored()[0] < 40

    play(scene)


def _empty_answers(stage: SimStage) -> list[float]:
    return stage.events.at(Point.PULL_CALLBACK, topic="T", status="NO_NEW_MSG")


@pytest.mark.parametrize("profile", [F1_ONLY, F3_ONLY], ids=["F1", "F3"])
def test_E07_an_answer_to_a_dropped_queue_does_no_harm_where_threads_are_short(
    play: RunScenario, profile: ClientProfile
) -> None:
    async def scene(stage: SimStage) -> None:
        start = await _idle_reset(stage, 5, profile, threads=1)
        await since(stage, start, 15.1)
        assert stage.stored()[0] < 40

    play(scene)


@pytest.mark.parametrize(("profile", "callbacks"), [(V49, 1), (F3_ONLY, 0)])
def test_a_response_that_waits_for_a_thread_is_dropped_with_its_queue(
    play: RunScenario, profile: ClientProfile, callbacks: int
) -> None:
    async def scene(stage: SimStage) -> None:
        await stage.create_topic(queues=1)
        await stage.fill(100)
        consumer = await stage.consume(
            SlowListener(stage.world), profile=profile, client_callback_executor_threads=1
        )
        await stage.until(lambda: stage.stored() == {0: 100})
        await before_the_answer(stage, 1)
        before = len(_empty_answers(stage))
        async with consumer.instance.callbacks.slot():
            await stage.world.sleep(2)
            for queue, process_queue in list(consumer.process_queues.items()):
                consumer.drop_queue(queue, process_queue)
            assert len(_empty_answers(stage)) == before
        assert len(_empty_answers(stage)) == before + callbacks

    play(scene)


@pytest.mark.parametrize(("threads", "is_lost"), [(1, True), (2, False)])
@played()
async def test_E07_a_callback_that_found_no_thread_runs_right_after_the_reset(
    stage: SimStage, threads: int, is_lost: bool
) -> None:
    start = await _idle_reset(stage, 5, V49, threads)
    await since(stage, start, 9.9)
    ran = [when - start for when in _empty_answers(stage) if when > start]
    assert ran == ([] if is_lost else pytest.approx([5.0], abs=0.11))
    await since(stage, start, 10.2)
    ran = [when - start for when in _empty_answers(stage) if when > start]
    assert ran == pytest.approx([10.0 if is_lost else 5.0], abs=0.11)
    await since(stage, start, 15.1)
    assert (stage.stored()[0] == 100) == is_lost


# Two threads of the client: the residual of E.3, and E.12.


@pytest.mark.parametrize(("profile", "is_lost"), [(V49, True), (F8_ONLY, False)])
def test_a_result_overtaken_between_test_and_update_is_committed_late(
    play: RunScenario, profile: ClientProfile, is_lost: bool
) -> None:
    async def scene(stage: SimStage) -> None:
        await stage.create_topic(queues=1)
        await stage.fill(100)
        listener, stall = SlowListener(stage.world), Stall()
        await stage.consume(listener, profile=profile, failpoint=stall, consume_thread_max=3)
        await stage.until(lambda: stage.stored() == {0: 100})
        tick = await next_idle_pull(stage)
        await since(stage, tick, 0.1)
        stall.arm(Point.RESULT_ACCEPTED, offsets=[100])
        await stage.fill(1, first=100)
        await stage.until(lambda: stall.is_caught)
        listener.seconds = 1.0
        await since(stage, tick, 14)
        start = await reset(stage)
        await since(stage, start, 12)
        assert stage.stored()[0] < 10
        stall.release()
        await since(stage, start, 17.1)
        assert (stage.stored()[0] == 101) == is_lost
        assert is_lost or stage.stored()[0] < 30

    play(scene)


@played()
async def test_R9_a_commit_read_before_the_apply_pass_and_sent_after_it_stores_the_old_offset(
    stage: SimStage,
) -> None:
    await stage.create_topic(queues=1)
    await stage.fill(100)
    listener, stall = SlowListener(stage.world), Stall()
    await stage.consume(listener, failpoint=stall, consume_thread_max=8)
    await stage.until(lambda: stage.stored() == {0: 100})
    await before_the_answer(stage, 6)
    listener.seconds = 2.0
    start = await reset(stage)
    # The timer's tick in the second half of the wait; the next tick follows 5 s later.
    await since(stage, start, 5.2)
    stall.arm(Point.COMMIT_READ, topic="T", offset=100)
    await since(stage, start, 10.1)
    assert stall.is_caught
    assert stage.stored() == {0: 0}
    stall.release()
    await since(stage, start, 10.12)
    assert stage.stored() == {0: 100}
    # The queue read its offset before, so the replay continues, and later commits repair the stored
    # offset.
    await since(stage, start, 18)
    assert stage.stored()[0] < 40


# Responses that RocketMQ's broker rarely gives: E11, E27.


def _reset_notification(targets: dict[int, int]) -> RemotingCommand:
    """Return the reset notification (220) for topic T."""
    table = {MessageQueue("T", "broker-a", queue_id): offset for queue_id, offset in targets.items()}
    header = ResetOffsetRequestHeader(topic="T", group="G", timestamp=0, is_force=True)
    return RemotingCommand(RequestCode.RESET_CONSUMER_CLIENT_OFFSET, header, ResetOffsetBody(table))


@pytest.mark.parametrize(("profile", "start"), [(Profile.V49, 100), (Profile.V53, 0)])
def test_E27_a_broker_too_busy_for_an_offset_query_sends_v49_to_the_end(profile: Profile, start: int) -> None:
    """4.x takes any error of an offset query (14) for "no offset"; 5.x skips the queue and asks again."""

    async def scene(world: World, broker: ScriptedBroker, runtime: Runtime) -> None:
        broker.stored, broker.max_offset = {0: 100}, 100
        broker.queue_messages = {0: [b"x"] * 100}
        ask = broker.handlers[RequestCode.QUERY_CONSUMER_OFFSET]

        def busy_once(connection: Connection, request: RemotingCommand) -> RemotingCommand:
            if request.decode_header(QueryConsumerOffsetRequestHeader).topic == "T":
                broker.handlers[RequestCode.QUERY_CONSUMER_OFFSET] = ask
                return RemotingCommand(ResponseCode.SYSTEM_BUSY)
            answer: RemotingCommand = ask(connection, request)
            return answer

        async with consumer_of(broker, runtime, profile):
            # This broker answers suspended pulls after 15 s: 5 s into the wait.
            await until(world, lambda: RequestCode.PULL_MESSAGE in [code for _, code, _ in broker.seen])
            await world.sleep(10)
            broker.handlers[RequestCode.QUERY_CONSUMER_OFFSET] = busy_once
            broker.connections["127.0.0.1@c1"].send_oneway(_reset_notification({0: 0}))
            began = world.now
            await world.sleep(10.5)
            assert broker.stored == {0: 0}
            await world.sleep(3)
            first = next(
                header.queue_offset
                for at, code, header in broker.seen
                if code == RequestCode.PULL_MESSAGE and at > began + 5.5 and header.topic == "T"
            )
            assert first == start
            await world.sleep(25)
            # v49 replayed nothing and stored the end; v53 has replayed everything.
            assert broker.stored == {0: 100}

    play_scripted(scene)


@pytest.mark.scenario("E30", "fenced")
@pytest.mark.scenario("E11", "v49")
@pytest.mark.parametrize(("profile", "chains"), [(V49, 2), (F2_ONLY, 1)])
def test_E11_E30_a_queue_inserted_during_the_wait_lives_on_as_a_zombie(
    profile: ClientProfile, chains: int
) -> None:
    async def scene(world: World, broker: ScriptedBroker, runtime: Runtime) -> None:
        broker.stored = {0: 100, 1: 60}
        broker.queue_messages = {0: [b"x"] * 100, 1: [b"x"] * 100}
        sent: list[tuple[float, int]] = []

        def probe(point: Point, details: dict[str, object]) -> None:
            if point is Point.PULL_SENT and details["topic"] == "T" and details["queue_id"] == 1:
                sent.append((world.now, int(str(details["chain"]))))

        runtime = replace(runtime, probe=probe)
        async with consumer_of(broker, runtime, profile=profile) as consumer:
            connection = broker.connections["127.0.0.1@c1"]
            broker.connections["127.0.0.1@other"] = connection
            await until(
                world,
                lambda: [queue.queue_id for queue in consumer.process_queues if queue.topic == "T"] == [0],
            )
            del broker.connections["127.0.0.1@other"]
            ask = broker.handlers[RequestCode.QUERY_CONSUMER_OFFSET]

            def late(asked: Connection, request: RemotingCommand) -> None:
                runtime.timers.call_later(3, asked.reply, request, ask(asked, request))

            broker.handlers[RequestCode.QUERY_CONSUMER_OFFSET] = late
            connection.send_oneway(RemotingCommand(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED))
            await world.sleep(1)
            connection.send_oneway(_reset_notification({0: 0, 1: 0}))
            start = world.now
            await world.sleep(35)
            assert len({chain for at, chain in sent if at > start + 15}) == chains

    play_scripted(scene, topics={"T": 2})
