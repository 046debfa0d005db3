"""Reset scenarios with real servers under virtual time (behaviour.md D.5 to D.7, F-D; E15 and E16)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rewindmq.client import ConsumeConcurrentlyStatus, MessageExt, PushConsumer
from rewindmq.client.reset import ResetState
from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import Profile
from tests.client.client_stage import OK, Cluster, Inbox, play, until

ALL = list(Profile)
GUARDED = [profile for profile in Profile if profile is not Profile.UNGUARDED]


@pytest.mark.scenario("D01", "v42", "v49", "v53c")
@pytest.mark.parametrize("profile", ALL)
def test_D01_a_reset_to_before_the_first_message_redelivers_everything(
    tmp_path: Path, profile: Profile
) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic()
        before = cluster.runtime()[0].clock.now_ms() - 1
        await asyncio.sleep(1)
        await cluster.fill(2500)
        inbox = Inbox(cluster.world)
        await cluster.consume(inbox, consume_message_batch_max_size=32)
        await until(lambda: len(inbox.messages) == 10_000)
        # Held pulls are answered after 15 to 20 s; right after one was, 10 s pass without the next.
        await asyncio.sleep(15)
        assert cluster.stored() == dict.fromkeys(range(4), 2500)
        await _until_pulls_are_fresh(cluster)
        inbox.clear()
        admin = await cluster.admin()
        start = cluster.world.now
        await admin.reset_offset_by_timestamp("T", "G", before, True)
        assert cluster.world.now - start < 0.1
        await asyncio.sleep(9.9 - (cluster.world.now - start))
        assert cluster.stored() == dict.fromkeys(range(4), 2500)
        assert not inbox.messages
        applied = len(cluster.events.at(Point.OFFSET_APPLIED, offset=0))
        assert applied == 0
        await until(lambda: cluster.stored() == dict.fromkeys(range(4), 0), 1)
        assert 10.0 <= cluster.world.now - start < 10.1
        await until(lambda: len(inbox.messages) == 10_000)
        assert sorted(set(inbox.bodies)) == sorted(b"%d" % number for number in range(2500))
        await asyncio.sleep(16)
        assert len(inbox.messages) == 10_000
        assert cluster.stored() == dict.fromkeys(range(4), 2500)

    play(scene, tmp_path, profile)


async def _until_pulls_are_fresh(cluster: Cluster) -> None:
    """Until 6 s after each queue was pulled anew: the holds then end within the 10 s (15 s each)."""

    def fresh() -> bool:
        latest = {
            details["queue_id"]: when
            for when, point, details in cluster.events.heard
            if point is Point.PULL_SENT and details["topic"] == "T"
        }
        return all(when > cluster.world.now - 0.05 for when in latest.values())

    await until(fresh)
    await asyncio.sleep(6)


@pytest.mark.scenario("D02", "v42", "v49", "v53c")
@pytest.mark.parametrize("profile", GUARDED)
def test_D02_no_listener_call_starts_during_the_wait(tmp_path: Path, profile: Profile) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic(queues=1)
        await cluster.fill(100)
        running: list[bytes] = []

        async def slow(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
            running.append(messages[0].body)
            await asyncio.sleep(3)
            return OK

        await cluster.consume(slow, consume_thread_max=1)
        await asyncio.sleep(40)
        admin = await cluster.admin()
        await admin.reset_offset_by_timestamp("T", "G", 0, True)
        started = cluster.world.now
        calls = len(running)
        await asyncio.sleep(9.9)
        assert len(running) == calls
        # The call that was running ended; what it finished is not noted anywhere.
        returned = cluster.events.at(Point.LISTENER_RETURNED)[-1]
        assert started <= returned <= started + 3.1
        updates = [
            when
            for when, point, _ in cluster.events.heard
            if point is Point.OFFSET_UPDATED and when > started
        ]
        assert updates == []
        await asyncio.sleep(1)
        assert running[calls] == b"0"

    play(scene, tmp_path, profile)


@pytest.mark.parametrize("profile", GUARDED)
def test_the_cache_of_a_queue_is_emptied_before_the_wait(tmp_path: Path, profile: Profile) -> None:
    """Step 3 of behaviour.md D.5; only queues that the notice names are concerned."""

    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic(queues=1)
        await cluster.create_topic("Other", queues=1)
        await cluster.fill(20)
        await cluster.fill(20, "Other")
        forever = asyncio.Event()

        async def stuck(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
            await forever.wait()
            return OK

        consumer = cluster.push_consumer(stuck)
        consumer.subscribe("Other")
        async with consumer:
            await asyncio.sleep(25)
            before = {queue.topic: held for queue, held in consumer.process_queues.items()}
            assert (before["T"].cached_count, before["Other"].cached_count) == (20, 20)
            admin = await cluster.admin()
            await admin.reset_offset_by_timestamp("T", "G", 0, True)
            await until(lambda: consumer.is_suspended, 1)
            assert (before["T"].dropped, before["T"].cached_count) == (True, 0)
            assert (before["Other"].dropped, before["Other"].cached_count) == (False, 20)

    play(scene, tmp_path, profile)


@pytest.mark.scenario("D03", "v42", "v49", "v53c")
@pytest.mark.parametrize("profile", ALL)
def test_D03_skip_accumulation_never_delivers_what_was_skipped(tmp_path: Path, profile: Profile) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic(queues=1)
        await cluster.fill(200)
        got: list[int] = []
        blocked = asyncio.Event()

        async def first_hundred(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
            got.append(int(messages[0].body))
            if got[-1] >= 100:
                await blocked.wait()
            return OK

        await cluster.consume(first_hundred, consume_thread_max=1)
        await until(lambda: cluster.stored() == {0: 100})
        admin = await cluster.admin()
        targets = await admin.reset_offset_by_timestamp("T", "G", -1, True)
        assert list(targets.offset_table.values()) == [200]
        await until(lambda: cluster.events.at(Point.SUSPENDED) != [])
        blocked.set()
        await asyncio.sleep(30)
        # 100 was in the listener already.
        assert got == list(range(101))
        assert cluster.stored() == {0: 200}
        await cluster.fill(1, first=200)
        await until(lambda: got[-1] == 200)

    play(scene, tmp_path, profile)


@pytest.mark.scenario("D17", "v49")
@pytest.mark.parametrize("profile", ALL)
def test_D17_a_pull_consumer_is_not_moved(tmp_path: Path, profile: Profile) -> None:
    """222 answers 0, and neither what is stored nor where the application stands moves."""

    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic(queues=1)
        await cluster.fill(50)
        consumer = await cluster.pull_consumer()
        consumer.register_topic("T")
        (queue,) = await consumer.fetch_subscribe_message_queues("T")
        await asyncio.sleep(40)
        consumer.update_consume_offset(queue, 30)
        await consumer.persist_consume_offset(queue)
        await until(lambda: cluster.stored() == {0: 30})
        admin = await cluster.admin()
        result = await admin.reset_offset_by_timestamp("T", "G", 0, True)
        assert list(result.offset_table.values()) == [0]
        await asyncio.sleep(20)
        assert cluster.events.at(Point.RESET_NOTICE_RECEIVED) != []
        assert cluster.events.at(Point.SUSPENDED) == []
        assert cluster.stored() == {0: 30}
        assert await consumer.fetch_consume_offset(queue) == 30

    play(scene, tmp_path, profile)


@pytest.mark.scenario("D22", "v42", "v49", "v53c")
@pytest.mark.parametrize("profile", ALL)
def test_D22_a_consumer_suspended_by_its_application_comes_out_running(
    tmp_path: Path, profile: Profile
) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic(queues=1)
        await cluster.fill(10)
        inbox = Inbox(cluster.world)
        consumer = await cluster.consume(inbox)
        await until(lambda: cluster.stored() == {0: 10})
        consumer.suspend()
        inbox.clear()
        admin = await cluster.admin()
        await admin.reset_offset_by_timestamp("T", "G", 0, True)
        await asyncio.sleep(9.9)
        assert consumer.is_suspended
        await until(lambda: len(inbox.messages) == 10, 3)
        assert not consumer.is_suspended

    play(scene, tmp_path, profile)


async def _shut_down_4_s_into_a_reset(cluster: Cluster) -> float:
    """Reset an idle consumer from 100 to 0; gives the seconds from the reset to the end of its shutdown."""
    await cluster.create_topic(queues=1)
    await cluster.fill(100)
    consumer = await cluster.consume(Inbox(cluster.world))
    await until(lambda: cluster.stored() == {0: 100})
    admin = await cluster.admin()
    start = cluster.world.now
    await admin.reset_offset_by_timestamp("T", "G", 0, True)
    await asyncio.sleep(4 - (cluster.world.now - start))
    await consumer.shutdown()
    took = round(cluster.world.now - start, 1)
    await asyncio.sleep(10)
    return took


def test_E15_v42_a_shutdown_during_the_wait_ends_the_reset(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        assert await _shut_down_4_s_into_a_reset(cluster) == 4.0
        assert cluster.stored() == {0: 100}

    play(scene, tmp_path, Profile.V42)


@pytest.mark.parametrize("profile", [Profile.V49, Profile.V53])
def test_E16_a_shutdown_waits_for_the_reset(tmp_path: Path, profile: Profile) -> None:
    async def scene(cluster: Cluster) -> None:
        assert await _shut_down_4_s_into_a_reset(cluster) == 10.0
        assert cluster.stored() == {0: 0}

    play(scene, tmp_path, profile)


def test_a_start_given_up_during_a_reset_leaves_nothing_behind(tmp_path: Path) -> None:
    """From 4.9.0 a second consumer of the instance waits for the monitor; its start may be cancelled."""

    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic(queues=1)
        await cluster.fill(3)
        first = await cluster.consume(Inbox(cluster.world))
        await until(lambda: cluster.stored() == {0: 3})
        admin = await cluster.admin()
        await admin.reset_offset_by_timestamp("T", "G", 0, True)
        await until(lambda: first.is_suspended)
        options: dict[str, Any] = {"runtime": first.runtime, "instance_name": "c1"}

        def second() -> PushConsumer:
            consumer = PushConsumer("H", cluster.namesrv, **options)
            consumer.subscribe("T")
            consumer.register_message_listener(Inbox(cluster.world))
            return consumer

        with pytest.raises(TimeoutError):
            await asyncio.wait_for(second().start(), 3)
        async with second() as again:
            assert again.instance is first.instance
        assert not first.instance.is_unused

    play(scene, tmp_path)


@pytest.mark.parametrize(("profile", "applied"), [(Profile.V42, [10.0, 13.0]), (Profile.V49, [10.0, 20.0])])
def test_two_resets_overlap_in_v42_and_queue_up_in_v49(
    tmp_path: Path, profile: Profile, applied: list[float]
) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic(queues=1)
        await cluster.fill(100)
        inbox = Inbox(cluster.world)
        await cluster.consume(inbox)
        await until(lambda: cluster.stored() == {0: 100})
        admin = await cluster.admin()
        start = cluster.world.now
        await admin.reset_offset_by_timestamp("T", "G", 0, True)
        await asyncio.sleep(3 - (cluster.world.now - start))
        await admin.reset_offset_by_timestamp("T", "G", -1, True)
        await asyncio.sleep(20)
        times = [round(when - start, 1) for when in cluster.events.at(Point.OFFSET_APPLIED)]
        assert times == applied

    play(scene, tmp_path, profile)


def test_the_steps_of_a_reset_come_in_their_order(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic(queues=1)
        await cluster.fill(3)
        inbox = Inbox(cluster.world)
        consumer = await cluster.consume(inbox)
        await until(lambda: cluster.stored() == {0: 3})
        cluster.events.heard.clear()
        admin = await cluster.admin()
        assert consumer.reset_state is ResetState.RUNNING
        await admin.reset_offset_by_timestamp("T", "G", 0, True)
        await until(lambda: consumer.reset_state is ResetState.SUSPENDED)
        await until(lambda: cluster.events.at(Point.QUEUE_ADDED) != [])
        assert consumer.reset_state is ResetState.RUNNING
        wanted = [
            Point.RESET_NOTICE_RECEIVED,
            Point.SUSPENDED,
            Point.QUEUE_DROPPED,
            Point.WAIT_OVER,
            Point.OFFSET_APPLIED,
            Point.QUEUE_REMOVED,
            Point.RESUMED,
            Point.QUEUE_ADDED,
        ]
        heard = [(point, details) for _, point, details in cluster.events.heard if point in wanted]
        assert [point for point, details in heard if details["topic"] == "T"] == wanted

    play(scene, tmp_path)


def test_a_local_reset_by_time_needs_no_broker_notice(tmp_path: Path) -> None:
    """behaviour.md D.13."""

    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic(queues=2)
        await cluster.fill(5)
        inbox = Inbox(cluster.world)
        consumer = await cluster.consume(inbox)
        await until(lambda: cluster.stored() == {0: 5, 1: 5})
        inbox.clear()
        consumer.unsubscribe("%RETRY%G")
        await consumer.reset_offset_by_timestamp(0)
        await until(lambda: len(inbox.messages) == 10)
        assert cluster.events.at(Point.RESET_NOTICE_RECEIVED) == []

    play(scene, tmp_path)
