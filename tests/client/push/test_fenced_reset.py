"""Fenced resets with real servers and clients under virtual time (docs/spec/races.md F12, scenario E28)."""

from __future__ import annotations

import asyncio
import logging
from itertools import pairwise
from typing import Any

import pytest

from rewindmq import ConsumeFromWhere, PullStatus, PushConsumer
from rewindmq.client.push.listener import MessageListener
from rewindmq.protocol.body.fenced_commit import FencedCommit
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.offset import QueryConsumerOffsetRequestHeader
from rewindmq.protocol.header.reset import NotifyQueueResetRequestHeader
from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import RELEASES, Profile
from rewindmq.protocol.remoting.connection import Connection, Reply
from rewindmq.protocol.reset_mode import ResetMode
from tests.client.inbox import Inbox
from tests.client.race_props import (
    SlowListener,
    Stall,
    before_the_answer,
    check_stored_follows_deliveries,
    live_chains,
    next_idle_pull,
    reset,
    since,
)
from tests.support.answers import present
from tests.support.fixtures import RunScenario, played
from tests.support.stage import SimStage

ROUND_TRIPS = 0.02


# Brokers in fenced mode, and epoch-aware clients.
FENCED: dict[str, Any] = {"profile": Profile.EPOCH, "reset_mode": ResetMode.FENCED}


def fenced(stage: SimStage) -> list[FencedCommit]:
    """Return the refused commits of T that the broker lists."""
    return stage.brokers["broker-a"].context.offsets.fenced_commits.listed("G", "T").commits


async def _consumed(
    stage: SimStage, listener: MessageListener, count: int = 100, **options: Any
) -> PushConsumer:
    """Start a consumer, and wait until it has consumed and stored everything of one queue."""
    await stage.create_topic(queues=1)
    await stage.fill(count)
    consumer = await stage.consume(listener, **options)
    await stage.until(lambda: stage.stored() == {0: count})
    return consumer


@played(**FENCED)
async def test_E28_an_idle_group_is_redelivered_at_once_without_stopping_a_consumer(stage: SimStage) -> None:
    await stage.create_topic()
    await stage.create_topic("Other")
    await stage.fill(50)
    await stage.fill(5, "Other")
    inbox = Inbox(stage.world)
    consumer = stage.push_consumer(inbox)
    consumer.subscribe("Other")
    async with consumer:
        await stage.until(lambda: len(inbox.messages) == 4 * 55)
        await stage.until(lambda: stage.stored() == dict.fromkeys(range(4), 50))
        others = {queue: held for queue, held in consumer.process_queues.items() if queue.topic != "T"}
        inbox.clear()
        start = await reset(stage)
        assert not consumer.is_suspended
        await stage.until(lambda: len(inbox.messages) == 200, 1)
        assert inbox.times[-1] - start < ROUND_TRIPS
        assert {message.topic for message in inbox.messages} == {"T"}
        await stage.world.sleep(6)
        assert stage.stored() == dict.fromkeys(range(4), 50)
        # Only the four queues were restarted.
        assert stage.events.at(Point.SUSPENDED) == []
        assert len(stage.events.at(Point.QUEUE_RESTARTED, topic="T", epoch=1)) == 4
        for queue, held in others.items():
            assert consumer.process_queues[queue] is held
        check_stored_follows_deliveries(stage, start)


@played(**FENCED)
async def test_E28_the_result_of_a_listener_that_was_running_is_not_noted_anywhere(stage: SimStage) -> None:
    listener = SlowListener(stage.world)
    consumer = await _consumed(stage, listener, consume_thread_max=3)
    done = listener.hold(100)
    await stage.fill(1, first=100)
    await stage.until(lambda: listener.offsets[-1] == 100)
    listener.seconds = 1.0
    start = await reset(stage)
    await since(stage, start, 14)
    done.set()
    await stage.world.sleep(0.1)
    (queue,) = [queue for queue in consumer.process_queues if queue.topic == "T"]
    assert consumer.offset_store.read_memory(queue) < 50
    assert stage.events.at(Point.RESULT_DISCARDED, offsets=[100], epoch=0) != []
    await stage.world.sleep(60)
    assert stage.stored() == {0: 101}
    assert sorted(listener.offsets[101:]) == list(range(101))
    check_stored_follows_deliveries(stage, start)


@pytest.mark.parametrize("is_restarted", [False, True], ids=["", "over a broker's restart"])
def test_R9_a_commit_from_before_the_reset_is_answered_fenced_listed_and_logged(
    play: RunScenario, caplog: pytest.LogCaptureFixture, is_restarted: bool
) -> None:
    async def scene(stage: SimStage) -> None:
        listener, stall = SlowListener(stage.world), Stall()
        await _consumed(stage, listener, failpoint=stall, consume_thread_max=8)
        stall.arm(Point.COMMIT_READ, topic="T", offset=100)
        await stage.until(lambda: stall.is_caught)
        listener.seconds = 1.0
        start = await reset(stage)
        if is_restarted:
            await stage.restart_broker()
        await stage.world.sleep(2)
        stall.release()
        await stage.until(lambda: fenced(stage) != [])
        (commit,) = fenced(stage)
        assert (commit.offset, commit.epoch, commit.carrier) == (100, 0, RequestCode.UPDATE_CONSUMER_OFFSET)
        assert commit.stored_epoch == 1
        assert stage.stored()[0] < 100
        await stage.until(lambda: stage.stored() == {0: 100})
        assert sorted(set(listener.offsets[100:])) == list(range(100))
        check_stored_follows_deliveries(stage, start)

    with caplog.at_level(logging.WARNING, "rewindmq.client.consume.offset_store"):
        play(scene, **FENCED)
    assert [record.args for record in caplog.records if "fenced" in record.message] != []
    assert len([record for record in caplog.records if "fenced" in record.message]) == 1


@played(**FENCED)
async def test_E28_a_result_overtaken_between_test_and_update_is_discarded(stage: SimStage) -> None:
    listener, stall = SlowListener(stage.world), Stall()
    await _consumed(stage, listener, failpoint=stall, consume_thread_max=8)
    stall.arm(Point.RESULT_ACCEPTED, offsets=[100])
    await stage.fill(1, first=100)
    await stage.until(lambda: stall.is_caught)
    listener.seconds = 1.0
    start = await reset(stage)
    await stage.world.sleep(3)
    stall.release()
    await stage.world.sleep(30)
    assert stage.stored() == {0: 101}
    assert stage.events.at(Point.OFFSET_UPDATED, offset=101, epoch=0) == []
    check_stored_follows_deliveries(stage, start)


async def _over_its_bounds(stage: SimStage, listener: SlowListener) -> list[asyncio.Event]:
    """Start a consumer whose flow control stops its one queue; its listener waits for the events."""
    await stage.create_topic(queues=1)
    await stage.fill(100)
    held = [listener.hold(10), listener.hold(31)]
    await stage.consume(listener, consume_thread_max=3, consume_concurrently_max_span=20)
    await stage.until(lambda: 31 in listener.offsets)
    await stage.until(lambda: stage.stored() == {0: 10})
    await stage.world.sleep(6)
    return held


@played(**FENCED)
async def test_E28_a_consumer_over_its_flow_control_bounds_is_notified_at_once(stage: SimStage) -> None:
    """The consumer does not pull, so the broker has no suspended pull to answer."""
    listener = SlowListener(stage.world)
    held = await _over_its_bounds(stage, listener)
    before = len(listener.offsets)
    start = await reset(stage)
    await stage.until(lambda: len(listener.offsets) > before, 1)
    assert stage.world.now - start < ROUND_TRIPS
    assert listener.offsets[before] == 0
    await stage.until(lambda: stage.stored() == {0: 100})
    assert fenced(stage) == []
    for event in held:
        event.set()
    await stage.world.sleep(10)
    assert stage.stored() == {0: 100}
    check_stored_follows_deliveries(stage, start)


@played(**FENCED)
async def test_E28_a_suspended_consumer_restarts_the_queue_before_it_resumes(stage: SimStage) -> None:
    listener = SlowListener(stage.world)
    consumer = await _consumed(stage, listener)
    consumer.suspend()
    await stage.world.sleep(30)
    start = await reset(stage)
    await stage.until(lambda: stage.events.at(Point.QUEUE_RESTARTED, epoch=1) != [], ROUND_TRIPS)
    await stage.world.sleep(10)
    assert len(listener.offsets) == 100
    assert stage.stored() == {0: 0}
    await consumer.resume()
    await stage.until(lambda: stage.stored() == {0: 100})
    assert len(listener.offsets) == 200
    assert fenced(stage) == []
    check_stored_follows_deliveries(stage, start)


@played(**FENCED)
async def test_E28_a_commit_reveals_the_reset_if_no_notification_arrives(stage: SimStage) -> None:
    """The connection of the pulls is gone; the next commit is refused, and its response has the new epoch."""
    listener = SlowListener(stage.world)
    held = await _over_its_bounds(stage, listener)
    # The broker forgets who pulled.
    await stage.restart_broker()
    await stage.world.sleep(1)
    start = await reset(stage)
    await stage.until(lambda: stage.events.at(Point.QUEUE_RESTARTED, epoch=1) != [], 5.1)
    for event in held:
        event.set()
    await stage.until(lambda: stage.stored() == {0: 100})
    assert fenced(stage)[0].carrier == RequestCode.UPDATE_CONSUMER_OFFSET
    check_stored_follows_deliveries(stage, start)


@played(**FENCED)
async def test_E28_a_late_notification_restarts_nothing(stage: SimStage) -> None:
    """A response has already announced the same reset, or a later one."""
    await stage.create_topic()
    await stage.fill(1)
    await stage.consume(Inbox(stage.world))
    await stage.until(lambda: stage.stored() == dict.fromkeys(range(4), 1))
    for _ in range(2):
        await reset(stage)
    await stage.world.sleep(1)
    assert len(stage.events.at(Point.QUEUE_RESTARTED)) == 8
    (member,) = present(stage.brokers["broker-a"].context.clients.consumers.find("G")).channels
    for epoch in (1, 2):
        header = NotifyQueueResetRequestHeader("G", "T", "broker-a", 0, 0, epoch)
        member.send_oneway(RemotingCommand(RequestCode.NOTIFY_QUEUE_RESET, header))
    # Notifications for queues and groups that the client does not have.
    for group, queue_id in (("G", 7), ("Other", 0)):
        header = NotifyQueueResetRequestHeader(group, "T", "broker-a", queue_id, 0, 9)
        member.send_oneway(RemotingCommand(RequestCode.NOTIFY_QUEUE_RESET, header))
    await stage.world.sleep(1)
    assert len(stage.events.at(Point.QUEUE_RESTARTED)) == 8


@played(**FENCED)
async def test_E28_two_consumers_each_replay_their_own_queues(stage: SimStage) -> None:
    await stage.create_topic()
    await stage.fill(50)
    inboxes = [Inbox(stage.world), Inbox(stage.world)]
    for name, inbox in zip(("c1", "c2"), inboxes, strict=True):
        await stage.consume(inbox, name=name)
    await stage.until(lambda: stage.stored() == dict.fromkeys(range(4), 50))
    await stage.world.sleep(25)
    for inbox in inboxes:
        inbox.clear()
    start = await reset(stage)
    await stage.until(lambda: sum(len(inbox.messages) for inbox in inboxes) == 200, 1)
    for inbox in inboxes:
        assert inbox.times[-1] - start < ROUND_TRIPS
        assert len({message.queue_id for message in inbox.messages}) == 2
    await stage.world.sleep(20)
    assert sum(len(inbox.messages) for inbox in inboxes) == 200
    assert stage.stored() == dict.fromkeys(range(4), 50)
    check_stored_follows_deliveries(stage, start)


@played(**FENCED)
async def test_E28_a_consumer_that_joins_right_after_the_reset_replays_its_queues(stage: SimStage) -> None:
    """docs/spec/races.md E.9: in classic mode its queues would be lost."""
    await stage.create_topic(queues=2)
    await stage.fill(100)
    slow = SlowListener(stage.world)
    await stage.consume(slow, consume_thread_max=1)
    await stage.until(lambda: stage.stored() == {0: 100, 1: 100})
    slow.seconds = 0.5
    start = await reset(stage)
    late = SlowListener(stage.world, 0.5)
    await stage.consume(late, name="c2", consume_thread_max=1)
    await stage.world.sleep(120)
    assert stage.stored() == {0: 100, 1: 100}
    assert set(late.offsets) | set(slow.offsets[200:]) == set(range(100))
    check_stored_follows_deliveries(stage, start)


@played(**FENCED)
async def test_E12_resets_right_after_each_other_leave_one_chain_at_the_last_target(stage: SimStage) -> None:
    inbox = Inbox(stage.world)
    await stage.create_topic(queues=1)
    await stage.fill(50)
    await stage.world.sleep(1)
    middle = stage.new_runtime().clock.now_ms()
    await stage.world.sleep(1)
    await stage.fill(50, first=50)
    await stage.consume(inbox)
    await stage.until(lambda: stage.stored() == {0: 100})
    inbox.clear()
    admin = await stage.admin()
    start = stage.world.now
    await asyncio.gather(*(admin.resets.reset("T", "G", at) for at in (0, middle, 0, middle)))
    await stage.world.sleep(10)
    assert stage.stored() == {0: 100}
    assert stage.brokers["broker-a"].context.offsets.table.epoch("G", "T", 0) == 4
    assert inbox.bodies[-1] == b"99"
    assert set(inbox.bodies) >= {b"%d" % number for number in range(50, 100)}
    settled = stage.world.now
    await stage.world.sleep(25)
    assert len(live_chains(stage, settled, topic="T")) == 1
    check_stored_follows_deliveries(stage, start)


@played(**FENCED)
async def test_a_skip_forward_delivers_nothing_and_is_not_undone(stage: SimStage) -> None:
    await stage.create_topic(queues=1)
    await stage.fill(100)
    listener = SlowListener(stage.world, 1.0)
    await stage.consume(listener, consume_thread_max=1)
    await stage.until(lambda: len(listener.offsets) == 10)
    start = await reset(stage, -1)
    await stage.world.sleep(30)
    assert listener.offsets == list(range(10))
    assert stage.stored() == {0: 100}
    check_stored_follows_deliveries(stage, start)


@played(**FENCED)
async def test_a_shutdown_over_a_reset_leaves_the_target_stored(stage: SimStage) -> None:
    await stage.create_topic(queues=1)
    await stage.fill(100)
    stall = Stall()
    consumer = stage.push_consumer(SlowListener(stage.world), failpoint=stall)
    await consumer.start()
    await stage.until(lambda: stage.stored() == {0: 100})
    stall.arm(Point.COMMIT_READ, topic="T", offset=100)
    leaving = asyncio.create_task(consumer.shutdown())
    await stage.until(lambda: stall.is_caught)
    await reset(stage)
    stall.release()
    await leaving
    assert stage.stored() == {0: 0}
    assert [commit.offset for commit in fenced(stage)] == [100]


@played(brokers=2, **FENCED)
async def test_a_dead_broker_does_not_delay_the_commits_at_others(stage: SimStage) -> None:
    """The broker answers commits with an epoch, but the client does not wait for the answers."""
    await stage.create_topic(queues=1)
    await stage.fill(10)
    inbox = Inbox(stage.world)
    consumer = await stage.consume(inbox)
    await stage.until(lambda: stage.stored(broker="broker-b") == {0: 10})
    await stage.brokers["broker-a"].close()
    before = len(stage.events.at(Point.PERSIST_TICK, client_id=consumer.client_id))
    await stage.world.sleep(20)
    ticks = stage.events.at(Point.PERSIST_TICK, client_id=consumer.client_id)[before:]
    assert [round(later - tick, 1) for tick, later in pairwise(ticks)] == [5.0] * 3


@played(**FENCED)
async def test_E27_a_broker_too_busy_for_an_offset_query_loses_nothing_of_a_queue_with_an_epoch(
    stage: SimStage,
) -> None:
    """The client continues at the end, as v49 does. Its pull carries no known epoch, and is redirected."""
    await stage.create_topic(queues=1)
    await stage.fill(100)
    async with stage.push_consumer(SlowListener(stage.world)):
        await stage.until(lambda: stage.stored() == {0: 100})
    start = await reset(stage)
    handlers = stage.brokers["broker-a"]._handlers
    ask = handlers[RequestCode.QUERY_CONSUMER_OFFSET]
    refused = []

    def busy_once(connection: Connection, request: RemotingCommand) -> Reply:
        if request.decode_header(QueryConsumerOffsetRequestHeader).topic != "T":
            return ask(connection, request)
        handlers[RequestCode.QUERY_CONSUMER_OFFSET] = ask
        refused.append(request)
        return RemotingCommand(ResponseCode.SYSTEM_BUSY)

    handlers[RequestCode.QUERY_CONSUMER_OFFSET] = busy_once
    listener = SlowListener(stage.world, 0.1)
    await stage.consume(
        listener,
        name="c2",
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
        consume_thread_max=1,
    )
    await stage.until(lambda: stage.stored() == {0: 100})
    assert len(refused) == 1
    assert set(listener.offsets) == set(range(100))
    check_stored_follows_deliveries(stage, start)


# Pull consumers.


@played(**FENCED)
async def test_a_manual_pull_learns_once_of_a_reset(stage: SimStage) -> None:
    await stage.create_topic(queues=1)
    await stage.fill(100)
    consumer = await stage.pull_consumer()
    (queue,) = await consumer.fetch_subscribe_message_queues("T")
    assert (await consumer.pull(queue, "*", 40, 10)).next_begin_offset == 50
    consumer.update_consume_offset(queue, 50)
    await consumer.persist_consume_offset(queue)
    await stage.until(lambda: stage.stored() == {0: 50})
    await reset(stage)
    consumer.update_consume_offset(queue, 60)
    await consumer.persist_consume_offset(queue)
    await stage.until(lambda: [commit.offset for commit in fenced(stage)] == [60])
    result = await consumer.pull(queue, "*", 60, 10)
    assert (result.status, result.next_begin_offset, result.epoch) == (PullStatus.OFFSET_ILLEGAL, 0, 1)
    assert (await consumer.pull(queue, "*", 60, 10)).status is PullStatus.FOUND
    consumer.update_consume_offset(queue, 70)
    await consumer.persist_consume_offset(queue)
    await stage.until(lambda: stage.stored() == {0: 70})
    # A consumer that starts later may pull at any offset.
    newcomer = await stage.pull_consumer()
    found = await newcomer.pull(queue, "*", 90, 10)
    assert (found.status, found.next_begin_offset) == (PullStatus.FOUND, 100)


@played(**FENCED)
async def test_progress_noted_before_a_reset_is_forgotten_when_a_manual_pull_learns_of_it(
    stage: SimStage,
) -> None:
    """Otherwise the next commit would store it under the new epoch."""
    await stage.create_topic(queues=1)
    await stage.fill(100)
    consumer = await stage.pull_consumer()
    (queue,) = await consumer.fetch_subscribe_message_queues("T")
    assert (await consumer.pull(queue, "*", 40, 10)).next_begin_offset == 50
    consumer.update_consume_offset(queue, 50)
    await consumer.persist_consume_offset(queue)
    await stage.until(lambda: stage.stored() == {0: 50})
    consumer.update_consume_offset(queue, 60)
    await reset(stage)
    assert (await consumer.pull(queue, "*", 60, 10)).status is PullStatus.OFFSET_ILLEGAL
    await consumer.persist_consume_offset(queue)
    await stage.world.sleep(1)
    assert stage.stored() == {0: 0}
    assert await consumer.fetch_consume_offset(queue) == 0


@played(**FENCED)
async def test_a_commit_refused_late_forgets_no_progress_noted_since(stage: SimStage) -> None:
    await stage.create_topic(queues=1)
    await stage.fill(100)
    stall = Stall()
    consumer = await stage.pull_consumer(failpoint=stall)
    (queue,) = await consumer.fetch_subscribe_message_queues("T")
    await consumer.pull(queue, "*", 40, 10)
    consumer.update_consume_offset(queue, 50)
    stall.arm(Point.COMMIT_READ)
    late = asyncio.create_task(consumer.persist_consume_offset(queue))
    await stage.until(lambda: stall.is_caught)
    await reset(stage)
    assert (await consumer.pull(queue, "*", 50, 10)).epoch == 1
    consumer.update_consume_offset(queue, 10)
    stall.release()
    await late
    await stage.until(lambda: [commit.offset for commit in fenced(stage)] == [50])
    await stage.world.sleep(1)
    await consumer.persist_consume_offset(queue)
    await stage.until(lambda: stage.stored() == {0: 10})


# Clients without epochs.


@pytest.mark.parametrize("profile", [*RELEASES, Profile.UNGUARDED])
def test_a_client_without_epochs_is_rewound_and_stores_only_redelivered_offsets(
    play: RunScenario, profile: Profile
) -> None:
    """5.x restarts within seconds, 4.x after its 10 s and the next rebalance (20 s)."""

    async def scene(stage: SimStage) -> None:
        listener = SlowListener(stage.world)
        await _consumed(stage, listener, profile=profile, consume_thread_max=8)
        before = len(listener.offsets)
        await before_the_answer(stage, 13)
        listener.seconds = 1.0
        start = await reset(stage)
        await stage.until(lambda: len(listener.offsets) > before, 2.1 if profile is Profile.V53 else 31)
        await stage.world.sleep(60)
        assert sorted(set(listener.offsets[before:])) == list(range(100))
        assert stage.stored() == {0: 100}
        check_stored_follows_deliveries(stage, start)

    play(scene, **FENCED)


@pytest.mark.parametrize(("profile", "seconds"), [*((p, 35) for p in RELEASES), (Profile.UNGUARDED, 5)])
def test_E01_a_late_result_of_a_client_without_epochs_is_discarded_or_refused(
    play: RunScenario, profile: Profile, seconds: float
) -> None:
    """The unguarded client commits it; the broker refuses it until it has redelivered messages."""

    async def scene(stage: SimStage) -> None:
        listener = SlowListener(stage.world)
        await _consumed(stage, listener, profile=profile, consume_thread_max=3)
        tick = await next_idle_pull(stage)
        await since(stage, tick, 0.1)
        done = listener.hold(100)
        await stage.fill(1, first=100)
        await stage.until(lambda: listener.offsets[-1] == 100)
        listener.seconds = 1.0
        start = await reset(stage)
        await stage.world.sleep(seconds)
        done.set()
        await stage.world.sleep(90)
        assert stage.stored() == {0: 101}
        assert set(listener.offsets[101:]) == set(range(101))
        assert (101 in [commit.offset for commit in fenced(stage)]) == (profile is Profile.UNGUARDED)
        check_stored_follows_deliveries(stage, start)

    play(scene, **FENCED)


@played(**FENCED)
async def test_E02_a_late_result_of_an_unguarded_client_passes_after_a_redelivery(stage: SimStage) -> None:
    """The limit of fencing clients without epochs: nothing distinguishes the two deliveries."""
    await stage.create_topic(queues=1)
    await stage.fill(100)
    listener = SlowListener(stage.world)
    done = listener.hold(99)
    await stage.consume(listener, profile=Profile.UNGUARDED, consume_thread_max=2)
    await stage.until(lambda: 99 in listener.offsets)
    listener.seconds = 1.0
    await reset(stage)
    await stage.world.sleep(40)
    assert stage.stored()[0] < 50
    done.set()
    await stage.world.sleep(6)
    assert stage.stored() == {0: 100}
    assert len(listener.offsets) < 100 + 60


@played(profile=Profile.V49, reset_mode=ResetMode.FENCED)
async def test_R3_the_delayed_correction_of_4_x_passes_where_the_queue_came_back_under_a_second_reset(
    stage: SimStage,
) -> None:
    """The other limit: redirected to 50, the client lost the queue, got it back at 10, then commits 50."""
    listener = SlowListener(stage.world)
    await _consumed(stage, listener, name="c2", consume_thread_max=2)
    await before_the_answer(stage, 13)
    admin, address = await stage.admin(), stage.brokers["broker-a"].address
    listener.seconds = 1.0
    await admin.resets.reset_queue(address, "T", "G", 0, offset=50)
    start = stage.world.now
    async with stage.push_consumer(SlowListener(stage.world, 1.0), name="c1", consume_thread_max=1):
        await since(stage, start, 3)
        await admin.resets.reset_queue(address, "T", "G", 0, offset=10)
    await since(stage, start, 9.9)
    assert stage.stored()[0] < 30
    await since(stage, start, 10.1)
    assert stage.stored() == {0: 50}
    await stage.world.sleep(60)
    assert not set(range(30, 50)) & set(listener.offsets[100:])


@played(profile=Profile.EPOCH, reset_mode=ResetMode.CLASSIC)
async def test_the_epoch_profile_is_a_v49_client_where_brokers_know_no_epochs(stage: SimStage) -> None:
    """Classic mode: reset notification (220), 10 s, and the target is stored; nothing is fenced."""
    listener = SlowListener(stage.world)
    await _consumed(stage, listener, consume_thread_max=8)
    await before_the_answer(stage, 13)
    listener.seconds = 2.0
    start = await reset(stage)
    await since(stage, start, 10.5)
    assert stage.stored() == {0: 0}
    await since(stage, start, 18.5)
    # E.4 is closed: the pull in flight was cancelled.
    assert stage.stored()[0] < 40
    assert fenced(stage) == []
