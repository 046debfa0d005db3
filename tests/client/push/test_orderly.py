"""Orderly consumption under virtual time: C07, C18, locks, results."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from rewindmq import (
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    MessageExt,
    MessageQueue,
)
from rewindmq.protocol.body.heartbeat import MessageModel
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.pull import PullMessageRequestHeader
from rewindmq.protocol.names import dlq_topic, retry_topic
from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.race.sim import World
from tests.client.client_records import record
from tests.client.push.orderly_props import RELEASES, SUCCESS, SUSPEND, InOrder, consume
from tests.client.race_props import since
from tests.client.scripted_broker import ScriptedBroker, pull_answer
from tests.client.scripted_stage import ALL, consumer_of, play_scripted
from tests.support.ends import new_end
from tests.support.fixtures import RunScenario, played
from tests.support.stage import SimStage


@pytest.mark.parametrize("profile", [*RELEASES, Profile.EPOCH])
def test_every_queue_is_consumed_in_order_and_committed(play: RunScenario, profile: Profile) -> None:
    async def scene(stage: SimStage) -> None:
        await stage.create_topic(queues=3)
        await stage.fill(700)
        listener = InOrder(stage)
        await consume(stage, listener, profile=profile)
        await stage.until(lambda: len(listener.calls) == 2100)
        for queue_id in range(3):
            assert listener.offsets(queue_id) == list(range(700))
        await stage.until(lambda: stage.stored() == {0: 700, 1: 700, 2: 700})

    play(scene, profile=Profile.V49 if profile is Profile.EPOCH else profile)


@pytest.mark.scenario("C18", "v42", "v49")
@pytest.mark.parametrize("profile", RELEASES)
@played()
async def test_C18_a_queue_gained_at_22_is_pulled_after_the_refresh_at_41(
    stage: SimStage, profile: Profile
) -> None:
    """Locks are refreshed at 1, 21, 41, and a queue is gained at 22: 4.x pulls it after 41, 5.x at once."""
    await stage.create_topic(queues=2)
    start = stage.world.now
    first = await consume(stage, InOrder(stage), name="c1")
    second = await consume(stage, InOrder(stage), name="c2")
    await since(stage, start, 21.9)
    assert [queue.queue_id for queue in first.process_queues if queue.topic == "T"] == [0]
    await second.shutdown()
    await since(stage, start, 70)
    mine = {"client_id": first.client_id, "topic": "T", "queue_id": 1}
    (gained,) = [at for at in stage.events.at(Point.QUEUE_ADDED, **mine) if at > start + 20]
    pulled = min(at for at in stage.events.at(Point.PULL_SENT, **mine) if at > gained)
    assert gained - start == pytest.approx(22, abs=0.3)
    if profile is Profile.V53:
        assert pulled - gained == pytest.approx(0.5, abs=0.1)
    else:
        assert start + 41 < pulled < start + 41.2 + first.profile.pull_exception_delay


@pytest.mark.parametrize("profile", RELEASES)
@played()
async def test_a_queue_whose_holder_died_is_taken_over_when_its_lock_expires(
    stage: SimStage, profile: Profile
) -> None:
    await stage.create_topic(queues=1)
    queue = MessageQueue("T", "broker-a", 0)
    locks = stage.brokers["broker-a"].context.clients.queue_locks
    locked = stage.world.now
    assert locks.lock(new_end(), "G", "dead", [queue]) == {queue}
    await stage.fill(3)
    listener = InOrder(stage)
    consumer = await consume(stage, listener)
    await since(stage, locked, 59.9)
    assert queue not in consumer.process_queues
    await stage.until(lambda: listener.offsets() == [0, 1, 2], 45)


@played()
async def test_a_consumer_that_stops_releases_its_locks(stage: SimStage) -> None:
    await stage.create_topic()
    consumer = await consume(stage, InOrder(stage))
    locks = stage.brokers["broker-a"].context.clients.queue_locks
    await stage.world.sleep(5)
    assert locks.is_any_held("G")
    await consumer.shutdown()
    assert not locks.is_any_held("G")


@played()
async def test_a_refused_refresh_stops_pulls_and_deliveries_until_the_lock_is_back(stage: SimStage) -> None:
    await stage.create_topic(queues=1)
    await stage.fill(30)
    queue = MessageQueue("T", "broker-a", 0)
    listener = InOrder(stage, seconds=1.0)
    consumer = await consume(stage, listener)
    await stage.until(lambda: len(listener.calls) == 2)
    locks = stage.brokers["broker-a"].context.clients.queue_locks
    locks.unlock("G", consumer.client_id, [queue])
    assert locks.lock(new_end(), "G", "thief", [queue]) == {queue}
    process_queue = consumer.process_queues[queue]
    await stage.until(lambda: not process_queue.locked, 25)  # type: ignore[attr-defined]
    await stage.world.sleep(1.1)
    seen = len(listener.calls)
    await stage.world.sleep(10)
    assert len(listener.calls) == seen < 30
    locks.unlock("G", "thief", [queue])
    await stage.until(lambda: len(listener.calls) == 30, 45)
    assert listener.offsets() == list(range(30))


# Results.


def answer(
    status: ConsumeOrderlyStatus, **changes: object
) -> Callable[[ConsumeOrderlyContext], ConsumeOrderlyStatus]:
    """Return a listener's verdict that changes the context first."""

    def verdict(context: ConsumeOrderlyContext) -> ConsumeOrderlyStatus:
        for name, value in changes.items():
            setattr(context, name, value)
        return status

    return verdict


@played()
async def test_suspending_redelivers_the_same_messages_after_the_pause(stage: SimStage) -> None:
    await stage.create_topic(queues=1)
    await stage.fill(6)
    listener = InOrder(stage)

    a_moment = answer(SUSPEND, suspend_current_queue_time_millis=4_000)

    def fail(context: ConsumeOrderlyContext) -> ConsumeOrderlyStatus:
        raise ValueError("the listener's own")

    listener.verdicts = {1: SUSPEND, 2: a_moment, 3: fail, 4: lambda context: None}
    await consume(stage, listener)
    await stage.until(lambda: stage.stored() == {0: 6})
    assert listener.offsets() == [0, 1, 1, 2, 2, 3, 3, 4, 4, 5]
    times = [at for at, _, _ in listener.calls]
    gaps = [round(after - before, 1) for before, after in pairwise(times)]
    assert gaps == [0.0, 1.0, 0.0, 4.0, 0.0, 1.0, 0.0, 1.0, 0.0]


@played()
async def test_a_pause_is_limited_to_10_ms_to_30_s(stage: SimStage) -> None:
    await stage.create_topic(queues=1)
    await stage.fill(2)
    listener = InOrder(stage)
    pauses = enumerate((0, 99_999))
    listener.verdicts = {
        number: answer(SUSPEND, suspend_current_queue_time_millis=pause) for number, pause in pauses
    }
    await consume(stage, listener)
    await stage.until(lambda: len(listener.calls) == 4)
    times = [at for at, _, _ in listener.calls]
    assert times[1] - times[0] < 0.1
    assert times[3] - times[2] == pytest.approx(30, abs=0.1)


@played()
async def test_without_auto_commit_progress_waits_for_a_commit_and_a_rollback_repeats_all(
    stage: SimStage,
) -> None:
    await stage.create_topic(queues=1)
    await stage.fill(8)
    listener = InOrder(stage)
    verdicts = {
        2: SUCCESS,
        3: ConsumeOrderlyStatus.ROLLBACK,
        5: ConsumeOrderlyStatus.COMMIT,
        6: SUCCESS,
        7: SUCCESS,
    }
    listener.verdicts = {number: answer(status, auto_commit=False) for number, status in verdicts.items()}
    consumer = await consume(stage, listener)
    await stage.until(lambda: len(listener.calls) == 10)
    assert listener.offsets() == [0, 1, 2, 3, 2, 3, 4, 5, 6, 7]
    await stage.world.sleep(20)
    assert stage.stored() == {0: 6}
    (process_queue,) = [held for queue, held in consumer.process_queues.items() if queue.topic == "T"]
    assert process_queue.cached_count == 2


@played()
async def test_with_auto_commit_every_result_except_suspend_is_success(stage: SimStage) -> None:
    await stage.create_topic(queues=1)
    await stage.fill(3)
    listener = InOrder(stage)
    listener.verdicts = {0: ConsumeOrderlyStatus.COMMIT, 1: ConsumeOrderlyStatus.ROLLBACK}
    await consume(stage, listener)
    await stage.until(lambda: stage.stored() == {0: 3})
    assert listener.offsets() == [0, 1, 2]


@pytest.mark.parametrize("profile", RELEASES)
@played()
async def test_a_message_that_failed_too_often_becomes_a_dead_letter(
    stage: SimStage, profile: Profile
) -> None:
    await stage.create_topic(queues=1)
    await stage.fill(3)
    listener = InOrder(stage)
    times: list[int] = []

    def fail(context: ConsumeOrderlyContext) -> ConsumeOrderlyStatus:
        times.append(len(times))
        listener.verdicts = {1: fail}
        return SUSPEND

    listener.verdicts = {1: fail}
    await consume(stage, listener, max_reconsume_times=2)
    await stage.until(lambda: stage.stored() == {0: 3})
    assert listener.offsets() == [0, 1, 1, 1, 2]
    store = stage.brokers["broker-a"].context.store
    await stage.until(lambda: store.max_offset(dlq_topic("G"), 0) == 1)
    assert store.max_offset(retry_topic("G"), 0) == 0


# Broadcasting, flow control and yielding.


@pytest.mark.parametrize(("profile", "count"), [(Profile.V42, 0), (Profile.V49, 0), (Profile.V53, 12)])
@played()
async def test_an_orderly_listener_of_a_broadcasting_group_gets_nothing_before_5(
    stage: SimStage, tmp_path: Path, profile: Profile, count: int
) -> None:
    await stage.create_topic()
    await stage.fill(3)
    listener = InOrder(stage)
    options: dict[str, Any] = {"message_model": MessageModel.BROADCASTING, "offset_root": tmp_path / "o"}
    await consume(stage, listener, **options)
    await stage.world.sleep(60)
    assert len(listener.calls) == count


@pytest.mark.scenario("C07", "v42", "v49", "v53")
@pytest.mark.parametrize("profile", ALL)
def test_C07_orderly_consumption_ignores_the_span(profile: Profile) -> None:
    """A span of 2,001 cached offsets stops the next pull of a concurrent consumer only."""

    async def scene(world: World, broker: ScriptedBroker, runtime: Runtime) -> None:
        broker.stored = {0: 0}
        pulled: list[int] = []

        def pull(connection: Any, request: RemotingCommand) -> RemotingCommand | None:
            header = request.decode_header(PullMessageRequestHeader)
            if header.topic != "T":
                return None
            pulled.append(header.queue_offset)
            stream = record(0) + record(2001)
            return pull_answer(ResponseCode.SUCCESS, 2002, stream) if len(pulled) == 1 else None

        broker.handlers[RequestCode.PULL_MESSAGE] = pull
        forever = asyncio.Event()

        async def stuck(messages: Sequence[MessageExt], context: ConsumeOrderlyContext) -> None:
            await forever.wait()

        consumer = consumer_of(broker, runtime, profile)
        consumer.register_orderly_listener(stuck)
        async with consumer:
            await world.sleep(5)
            assert pulled == [0, 2002]

    play_scripted(scene)


@pytest.mark.parametrize(("seconds", "is_over"), [(60.5, False), (61.5, True)])
@played()
async def test_a_queue_yields_to_others_after_60_seconds(
    stage: SimStage, seconds: float, is_over: bool
) -> None:
    await stage.create_topic(queues=2)
    await stage.fill(40)
    listener = InOrder(stage, seconds=1.9)
    await consume(stage, listener, consume_thread_max=1)
    await stage.until(lambda: len(listener.calls) == 1)
    ((began, _, _),) = listener.calls
    await stage.world.sleep(began + seconds - stage.world.now)
    assert ({queue for _, queue, _ in listener.calls} == {0, 1}) == is_over


@played()
async def test_a_plain_listener_runs_beside_the_event_loop(stage: SimStage) -> None:
    await stage.create_topic(queues=1)
    await stage.fill(3)
    seen: list[int] = []

    def listener(messages: Sequence[MessageExt], context: ConsumeOrderlyContext) -> ConsumeOrderlyStatus:
        assert context.message_queue == MessageQueue("T", "broker-a", 0)
        seen.extend(message.queue_offset for message in messages)
        return SUCCESS

    await consume(stage, listener, consume_message_batch_max_size=2)
    await stage.until(lambda: stage.stored() == {0: 3})
    assert seen == [0, 1, 2]
