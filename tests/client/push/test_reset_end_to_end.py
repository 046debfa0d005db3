"""Reset scenarios with real servers under virtual time (docs/spec/reset.md D.5 to D.7, E15 and E16)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from rewindmq import ConsumeConcurrentlyStatus, MessageExt, PushConsumer
from rewindmq.client.push.reset import ResetState
from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from tests.client.inbox import Inbox
from tests.support.clients import OK
from tests.support.fixtures import RunScenario, played
from tests.support.stage import SimStage

ALL = list(Profile)
GUARDED = [profile for profile in Profile if profile is not Profile.UNGUARDED]


@pytest.mark.scenario("D01", "v42", "v49", "v53c")
@pytest.mark.parametrize("profile", ALL)
def test_D01_a_reset_to_before_the_first_message_redelivers_everything(
    play: RunScenario, profile: Profile
) -> None:
    # v49 uses the scenario's size, the other profiles a tenth of it.
    count = 2500 if profile is Profile.V49 else 250

    async def scene(stage: SimStage) -> None:
        await stage.create_topic()
        before = stage.new_runtime().clock.now_ms() - 1
        await stage.world.sleep(1)
        await stage.fill(count)
        inbox = Inbox(stage.world)
        await stage.consume(inbox, consume_message_batch_max_size=32)
        await stage.until(lambda: len(inbox.messages) == 4 * count)
        # Suspended pulls are answered after 15 to 20 s, so right after an answer 10 s pass without another.
        await stage.world.sleep(15)
        assert stage.stored() == dict.fromkeys(range(4), count)
        await _until_pulls_are_fresh(stage)
        inbox.clear()
        admin = await stage.admin()
        start = stage.world.now
        await admin.resets.reset("T", "G", before)
        assert stage.world.now - start < 0.1
        await stage.world.sleep(9.9 - (stage.world.now - start))
        assert stage.stored() == dict.fromkeys(range(4), count)
        assert not inbox.messages
        applied = len(stage.events.at(Point.OFFSET_APPLIED, offset=0))
        assert applied == 0
        await stage.until(lambda: stage.stored() == dict.fromkeys(range(4), 0), 1)
        assert 10.0 <= stage.world.now - start < 10.1
        await stage.until(lambda: len(inbox.messages) == 4 * count)
        assert sorted(set(inbox.bodies)) == sorted(b"%d" % number for number in range(count))
        await stage.world.sleep(16)
        assert len(inbox.messages) == 4 * count
        assert stage.stored() == dict.fromkeys(range(4), count)

    play(scene, profile=profile, reset_mode=ResetMode.CLASSIC)


async def _until_pulls_are_fresh(stage: SimStage) -> None:
    """Wait until 6 s after the last pull of each queue; the suspensions (15 s) then end within the 10 s."""

    def fresh() -> bool:
        latest = {
            details["queue_id"]: when
            for when, point, details in stage.events.heard
            if point is Point.PULL_SENT and details["topic"] == "T"
        }
        return all(when > stage.world.now - 0.05 for when in latest.values())

    await stage.until(fresh)
    await stage.world.sleep(6)


@pytest.mark.scenario("D02", "v42", "v49", "v53c")
@pytest.mark.parametrize("profile", GUARDED)
@played(reset_mode=ResetMode.CLASSIC)
async def test_D02_no_listener_call_starts_during_the_wait(stage: SimStage, profile: Profile) -> None:
    await stage.create_topic(queues=1)
    await stage.fill(100)
    running: list[bytes] = []

    async def slow(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        running.append(messages[0].body)
        await stage.world.sleep(3)
        return OK

    await stage.consume(slow, consume_thread_max=1)
    await stage.world.sleep(40)
    admin = await stage.admin()
    await admin.resets.reset("T", "G", 0)
    started = stage.world.now
    calls = len(running)
    await stage.world.sleep(9.9)
    assert len(running) == calls
    # The running call has ended, and its result is discarded.
    returned = stage.events.at(Point.LISTENER_RETURNED)[-1]
    assert started <= returned <= started + 3.1
    updates = [
        when for when, point, _ in stage.events.heard if point is Point.OFFSET_UPDATED and when > started
    ]
    assert updates == []
    await stage.world.sleep(1)
    assert running[calls] == b"0"


@pytest.mark.parametrize("profile", GUARDED)
@played(reset_mode=ResetMode.CLASSIC)
async def test_the_cache_of_a_queue_is_emptied_before_the_wait(stage: SimStage, profile: Profile) -> None:
    """Step 3 of docs/spec/reset.md D.5; only for queues in the reset notification."""
    await stage.create_topic(queues=1)
    await stage.create_topic("Other", queues=1)
    await stage.fill(20)
    await stage.fill(20, "Other")
    forever = asyncio.Event()

    async def stuck(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        await forever.wait()
        return OK

    consumer = stage.push_consumer(stuck)
    consumer.subscribe("Other")
    async with consumer:
        await stage.world.sleep(25)
        before = {queue.topic: held for queue, held in consumer.process_queues.items()}
        assert (before["T"].cached_count, before["Other"].cached_count) == (20, 20)
        admin = await stage.admin()
        await admin.resets.reset("T", "G", 0)
        await stage.until(lambda: consumer.is_suspended, 1)
        assert (before["T"].dropped, before["T"].cached_count) == (True, 0)
        assert (before["Other"].dropped, before["Other"].cached_count) == (False, 20)


@pytest.mark.scenario("D03", "v42", "v49", "v53c")
@pytest.mark.parametrize("profile", ALL)
@played(reset_mode=ResetMode.CLASSIC)
async def test_D03_skip_accumulation_never_delivers_what_was_skipped(
    stage: SimStage, profile: Profile
) -> None:
    await stage.create_topic(queues=1)
    await stage.fill(200)
    got: list[int] = []
    blocked = asyncio.Event()

    async def first_hundred(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        got.append(int(messages[0].body))
        if got[-1] >= 100:
            await blocked.wait()
        return OK

    await stage.consume(first_hundred, consume_thread_max=1)
    await stage.until(lambda: stage.stored() == {0: 100})
    admin = await stage.admin()
    targets = await admin.resets.reset("T", "G", -1)
    assert list(targets.offset_table.values()) == [200]
    await stage.until(lambda: stage.events.at(Point.SUSPENDED) != [])
    blocked.set()
    await stage.world.sleep(30)
    # The listener already had 100.
    assert got == list(range(101))
    assert stage.stored() == {0: 200}
    await stage.fill(1, first=200)
    await stage.until(lambda: got[-1] == 200)


@pytest.mark.scenario("D17", "v49")
@pytest.mark.parametrize("profile", ALL)
@played(reset_mode=ResetMode.CLASSIC)
async def test_D17_a_pull_consumer_is_not_moved(stage: SimStage, profile: Profile) -> None:
    """222 succeeds, but neither the stored offset nor the application's offset moves."""
    await stage.create_topic(queues=1)
    await stage.fill(50)
    consumer = await stage.pull_consumer()
    consumer.register_topic("T")
    (queue,) = await consumer.fetch_subscribe_message_queues("T")
    await stage.world.sleep(40)
    consumer.update_consume_offset(queue, 30)
    await consumer.persist_consume_offset(queue)
    await stage.until(lambda: stage.stored() == {0: 30})
    admin = await stage.admin()
    result = await admin.resets.reset("T", "G", 0)
    assert list(result.offset_table.values()) == [0]
    await stage.world.sleep(20)
    assert stage.events.at(Point.RESET_NOTIFICATION_RECEIVED) != []
    assert stage.events.at(Point.SUSPENDED) == []
    assert stage.stored() == {0: 30}
    assert await consumer.fetch_consume_offset(queue) == 30


@pytest.mark.scenario("D22", "v42", "v49", "v53c")
@pytest.mark.parametrize("profile", ALL)
@played(reset_mode=ResetMode.CLASSIC)
async def test_D22_a_consumer_suspended_by_its_application_is_resumed(
    stage: SimStage, profile: Profile
) -> None:
    await stage.create_topic(queues=1)
    await stage.fill(10)
    inbox = Inbox(stage.world)
    consumer = await stage.consume(inbox)
    await stage.until(lambda: stage.stored() == {0: 10})
    consumer.suspend()
    inbox.clear()
    admin = await stage.admin()
    await admin.resets.reset("T", "G", 0)
    await stage.world.sleep(9.9)
    assert consumer.is_suspended
    await stage.until(lambda: len(inbox.messages) == 10, 3)
    assert not consumer.is_suspended


async def _shut_down_4_s_into_a_reset(stage: SimStage) -> float:
    """Reset an idle consumer from 100 to 0; return the seconds from the reset to the end of its shutdown."""
    await stage.create_topic(queues=1)
    await stage.fill(100)
    consumer = await stage.consume(Inbox(stage.world))
    await stage.until(lambda: stage.stored() == {0: 100})
    admin = await stage.admin()
    start = stage.world.now
    await admin.resets.reset("T", "G", 0)
    await stage.world.sleep(4 - (stage.world.now - start))
    await consumer.shutdown()
    took = round(stage.world.now - start, 1)
    await stage.world.sleep(10)
    return took


@played(profile=Profile.V42)
async def test_E15_v42_a_shutdown_during_the_wait_ends_the_reset(stage: SimStage) -> None:
    assert await _shut_down_4_s_into_a_reset(stage) == 4.0
    assert stage.stored() == {0: 100}


@pytest.mark.parametrize("profile", [Profile.V49, Profile.V53])
@played(reset_mode=ResetMode.CLASSIC)
async def test_E16_a_shutdown_waits_for_the_reset(stage: SimStage, profile: Profile) -> None:
    assert await _shut_down_4_s_into_a_reset(stage) == 10.0
    assert stage.stored() == {0: 0}


@played()
async def test_a_start_given_up_during_a_reset_leaves_nothing_behind(stage: SimStage) -> None:
    """Since 4.9.0 a second consumer of the instance waits for the monitor; its start may be cancelled."""
    await stage.create_topic(queues=1)
    await stage.fill(3)
    first = await stage.consume(Inbox(stage.world))
    await stage.until(lambda: stage.stored() == {0: 3})
    admin = await stage.admin()
    await admin.resets.reset("T", "G", 0)
    await stage.until(lambda: first.is_suspended)
    options: dict[str, Any] = {"runtime": first.runtime, "instance_name": "c1"}

    def second() -> PushConsumer:
        consumer = PushConsumer("H", stage.namesrv, **options)
        consumer.subscribe("T")
        consumer.register_message_listener(Inbox(stage.world))
        return consumer

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(second().start(), 3)
    async with second() as again:
        assert again.instance is first.instance
    assert not first.instance.is_unused


@pytest.mark.parametrize(("profile", "applied"), [(Profile.V42, [10.0, 13.0]), (Profile.V49, [10.0, 20.0])])
@played(reset_mode=ResetMode.CLASSIC)
async def test_two_resets_overlap_in_v42_and_queue_up_in_v49(
    stage: SimStage, profile: Profile, applied: list[float]
) -> None:
    await stage.create_topic(queues=1)
    await stage.fill(100)
    inbox = Inbox(stage.world)
    await stage.consume(inbox)
    await stage.until(lambda: stage.stored() == {0: 100})
    admin = await stage.admin()
    start = stage.world.now
    await admin.resets.reset("T", "G", 0)
    await stage.world.sleep(3 - (stage.world.now - start))
    await admin.resets.reset("T", "G", -1)
    await stage.world.sleep(20)
    times = [round(when - start, 1) for when in stage.events.at(Point.OFFSET_APPLIED)]
    assert times == applied


@played()
async def test_the_steps_of_a_reset_come_in_their_order(stage: SimStage) -> None:
    await stage.create_topic(queues=1)
    await stage.fill(3)
    inbox = Inbox(stage.world)
    consumer = await stage.consume(inbox)
    await stage.until(lambda: stage.stored() == {0: 3})
    stage.events.heard.clear()
    admin = await stage.admin()
    assert consumer.reset_state is ResetState.RUNNING
    await admin.resets.reset("T", "G", 0)
    await stage.until(lambda: consumer.reset_state is ResetState.SUSPENDED)
    await stage.until(lambda: stage.events.at(Point.QUEUE_ADDED) != [])
    assert consumer.reset_state is ResetState.RUNNING
    wanted = [
        Point.RESET_NOTIFICATION_RECEIVED,
        Point.SUSPENDED,
        Point.QUEUE_DROPPED,
        Point.WAIT_OVER,
        Point.OFFSET_APPLIED,
        Point.QUEUE_REMOVED,
        Point.RESUMED,
        Point.QUEUE_ADDED,
    ]
    heard = [(point, details) for _, point, details in stage.events.heard if point in wanted]
    assert [point for point, details in heard if details["topic"] == "T"] == wanted


@played()
async def test_a_local_reset_by_time_needs_no_notification(stage: SimStage) -> None:
    """docs/spec/reset.md D.13."""
    await stage.create_topic(queues=2)
    await stage.fill(5)
    inbox = Inbox(stage.world)
    consumer = await stage.consume(inbox)
    await stage.until(lambda: stage.stored() == {0: 5, 1: 5})
    inbox.clear()
    consumer.unsubscribe("%RETRY%G")
    await consumer.reset_offset_by_timestamp(0)
    await stage.until(lambda: len(inbox.messages) == 10)
    assert stage.events.at(Point.RESET_NOTIFICATION_RECEIVED) == []
