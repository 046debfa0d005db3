"""Consuming with real servers under virtual time: division, start, filters, models, failures, replay."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from client_stage import OK, Cluster, Inbox, play, until

from rewindmq.client import (
    ClientError,
    ConsumeConcurrentlyStatus,
    ConsumeFromWhere,
    Message,
    MessageExt,
    MessageModel,
    PullStatus,
)
from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import Profile
from rewindmq.race.sim.world import EPOCH_MS

ALL = list(Profile)
# With so little memory every message counts as on disk, and a new group is answered 22.
COLD: dict[str, Any] = {"physical_memory_bytes": 1}


@pytest.mark.parametrize("profile", ALL)
def test_two_consumers_share_two_brokers_and_get_each_message_once(tmp_path: Path, profile: Profile) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic()
        first, second = Inbox(cluster.world), Inbox(cluster.world)
        await cluster.consume(first, name="c1")
        await cluster.consume(second, name="c2")
        await asyncio.sleep(5)
        await cluster.fill(100)
        await until(lambda: len(first.messages) + len(second.messages) == 800)
        assert len(first.messages) == len(second.messages) == 400
        places = Counter(message.message_queue for message in first.messages + second.messages)
        assert set(places.values()) == {100}
        await asyncio.sleep(10)
        assert cluster.stored() == cluster.stored(broker="broker-b") == dict.fromkeys(range(4), 100)

    play(scene, tmp_path, profile, brokers=2)


@pytest.mark.parametrize("profile", ALL)
def test_the_queues_of_a_consumer_that_leaves_go_to_the_others(tmp_path: Path, profile: Profile) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic()
        first, second = Inbox(cluster.world), Inbox(cluster.world)
        await cluster.consume(first, name="c1")
        leaver = await cluster.consume(second, name="c2")
        await asyncio.sleep(5)
        assert len(leaver.process_queues) == 2 + ("%RETRY%G" in {q.topic for q in leaver.process_queues})
        await leaver.shutdown()
        await cluster.fill(10)
        await until(lambda: len(first.messages) == 40, 30)
        assert not second.messages

    play(scene, tmp_path, profile)


@pytest.mark.parametrize("profile", ALL)
def test_a_broker_may_leave_and_come_back(tmp_path: Path, profile: Profile) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic(queues=2)
        await cluster.fill(5)
        inbox = Inbox(cluster.world)
        consumer = await cluster.consume(inbox)
        await until(lambda: len(inbox.messages) == 20)
        await asyncio.sleep(12)
        await cluster.brokers["broker-a"].close()
        # Routes are asked for every 30 s; then it is forgotten, and its queues with it.
        await asyncio.sleep(62)
        assert set(consumer.instance.routes.brokers) == {"broker-b"}
        assert {queue.broker_name for queue in consumer.process_queues} == {"broker-b"}
        # With its store, but at another address.
        await cluster.start_broker("broker-a", 2, {})
        await cluster.fill(1, first=5)
        await until(lambda: len(inbox.messages) == 24, 60)
        await asyncio.sleep(20)
        assert Counter(inbox.bodies) == {b"%d" % number: 4 for number in range(6)}

    play(scene, tmp_path, profile, brokers=2)


@pytest.mark.parametrize("profile", ALL)
def test_a_name_server_may_come_late_and_go(tmp_path: Path, profile: Profile) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic(queues=1)
        inbox = Inbox(cluster.world)
        await cluster.stop_namesrv()
        consumer = await cluster.consume(inbox)
        await asyncio.sleep(5)
        assert consumer.process_queues == {}
        await cluster.start_namesrv()
        # Brokers register every 30 s, consumers ask as often.
        await until(lambda: len(consumer.process_queues) >= 1, 85)
        producer = await cluster.producer()
        await producer.send(Message("T", b"first"))
        await until(lambda: len(inbox.messages) == 1)
        await cluster.stop_namesrv()
        await asyncio.sleep(100)
        await producer.send(Message("T", b"second"))
        await until(lambda: len(inbox.messages) == 2)

    play(scene, tmp_path, profile)


@pytest.mark.parametrize("profile", ALL)
@pytest.mark.parametrize(
    ("where", "timestamp", "expected"),
    [
        (ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, None, range(21)),
        (ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET, None, range(20, 21)),
        (ConsumeFromWhere.CONSUME_FROM_MAX_OFFSET, None, range(20, 21)),
        (ConsumeFromWhere.CONSUME_FROM_TIMESTAMP, EPOCH_MS + 50_000, range(10, 21)),
        (ConsumeFromWhere.CONSUME_FROM_TIMESTAMP, "20231114221410", range(10, 21)),
        # Half an hour before the consumer was made is before every message.
        (ConsumeFromWhere.CONSUME_FROM_TIMESTAMP, None, range(21)),
    ],
)
def test_a_new_group_starts_where_it_was_told(
    tmp_path: Path, profile: Profile, where: ConsumeFromWhere, timestamp: str | int | None, expected: range
) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic(queues=1)
        await cluster.fill(10)
        await asyncio.sleep(60 - cluster.world.now)
        await cluster.fill(10, first=10)
        inbox = Inbox(cluster.world)
        await cluster.consume(inbox, consume_from_where=where, consume_timestamp=timestamp)
        await asyncio.sleep(3)
        await cluster.fill(1, first=20)
        await asyncio.sleep(3)
        got = sorted(int(body) for body in inbox.bodies)
        # The nearest message to a time between two groups of them may be the last of the first group (4.x).
        if where is ConsumeFromWhere.CONSUME_FROM_TIMESTAMP and timestamp and profile is not Profile.V53:
            assert got in (list(expected), [9, *expected])
        else:
            assert got == list(expected)

    play(scene, tmp_path, profile, store=COLD)


@pytest.mark.parametrize("profile", [Profile.V42, Profile.V49])
def test_a_new_group_on_a_recent_topic_starts_at_0_whatever_it_was_told(
    tmp_path: Path, profile: Profile
) -> None:
    """behaviour.md B.9, C.9: 14 is answered 0."""

    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic(queues=1)
        await cluster.fill(5)
        inbox = Inbox(cluster.world)
        await cluster.consume(inbox, consume_from_where=ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET)
        await until(lambda: len(inbox.messages) == 5)

    play(scene, tmp_path, profile)


@pytest.mark.parametrize("profile", ALL)
def test_only_messages_with_a_subscribed_tag_arrive(tmp_path: Path, profile: Profile) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic(queues=1)
        inbox = Inbox(cluster.world)
        await cluster.consume(inbox, expression="TagA || TagB")
        await asyncio.sleep(2)
        producer = await cluster.producer()
        # "Aa" and "BB" have the same hash: the broker lets both pass, the client looks at the text.
        for tag in ("TagA", "TagB", "TagC", None, "Aa"):
            await producer.send(Message("T", (tag or "none").encode(), tag))
        await asyncio.sleep(2)
        assert sorted(inbox.bodies) == [b"TagA", b"TagB"]
        await asyncio.sleep(12)
        assert cluster.stored() == {0: 5}

    play(scene, tmp_path, profile)


def test_a_tag_of_equal_hash_is_filtered_by_the_client(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic(queues=1)
        inbox = Inbox(cluster.world)
        await cluster.consume(inbox, expression="Aa")
        producer = await cluster.producer()
        for tag in ("Aa", "BB"):
            await producer.send(Message("T", tag.encode(), tag))
        await asyncio.sleep(5)
        assert inbox.bodies == [b"Aa"]
        assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []

    play(scene, tmp_path)


@pytest.mark.parametrize("profile", ALL)
def test_broadcasting_members_each_get_everything_and_remember_it_locally(
    tmp_path: Path, profile: Profile
) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic()
        await cluster.fill(10)
        options: dict[str, Any] = {"message_model": MessageModel.BROADCASTING}
        inboxes = [Inbox(cluster.world), Inbox(cluster.world)]
        members = [
            await cluster.consume(inbox, name=f"m{number}", offset_root=tmp_path / f"m{number}", **options)
            for number, inbox in enumerate(inboxes)
        ]
        await until(lambda: [len(inbox.messages) for inbox in inboxes] == [40, 40])
        await members[0].shutdown()
        assert (tmp_path / "m0" / "127.0.0.1@m0" / "G" / "offsets.json").exists()
        assert cluster.stored() == {}
        await cluster.fill(1, first=10)
        again = Inbox(cluster.world)
        await cluster.consume(again, name="m0", offset_root=tmp_path / "m0", **options)
        await until(lambda: len(again.messages) == 4)
        assert set(again.bodies) == {b"10"}

    play(scene, tmp_path, profile)


def test_a_listener_that_lets_a_cancellation_out_has_failed(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic(queues=1)
        await cluster.fill(1)
        calls: list[int] = []

        async def listen(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
            calls.append(messages[0].reconsume_times)
            if len(calls) == 1:
                raise asyncio.CancelledError
            return OK

        await cluster.consume(listen)
        await asyncio.sleep(20)
        assert calls == [0, 1]
        assert cluster.stored() == {0: 1}

    play(scene, tmp_path)


@pytest.mark.parametrize("is_async", [True, False])
def test_a_raising_listener_gets_its_message_again(tmp_path: Path, is_async: bool) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic(queues=1)
        await cluster.fill(3)
        seen: list[tuple[bytes, int]] = []

        def listen(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus | None:
            message = messages[0]
            seen.append((message.body, message.reconsume_times))
            if message.body == b"1" and message.reconsume_times == 0:
                raise ValueError("not this one")
            return None if message.reconsume_times == 1 else OK

        async def listen_async(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus | None:
            return listen(messages)

        await cluster.consume(listen_async if is_async else listen)
        await asyncio.sleep(25)
        assert [times for body, times in seen if body == b"1"] == [0, 1, 2]
        assert [body for body, times in seen if times == 0] == [b"0", b"1", b"2"]
        assert cluster.stored() == {0: 3}
        assert cluster.events.at(Point.PERSIST_TICK) != []

    play(scene, tmp_path)


def test_a_listener_cannot_change_what_counts_as_consumed(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic(queues=1)
        await cluster.fill(3)
        given: list[Sequence[MessageExt]] = []

        async def listen(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
            given.append(messages)
            return OK

        await cluster.consume(listen, consume_message_batch_max_size=2)
        await asyncio.sleep(12)
        assert [len(messages) for messages in given] == [2, 1]
        assert all(isinstance(messages, tuple) for messages in given)

    play(scene, tmp_path)


def test_a_plain_listener_that_raises_stop_iteration_has_failed(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic(queues=1)
        await cluster.fill(1)
        calls: list[int] = []

        def listen(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
            calls.append(messages[0].reconsume_times)
            return OK if len(calls) > 1 else next(iter(()))

        await cluster.consume(listen)
        await asyncio.sleep(20)
        assert calls == [0, 1]
        assert cluster.stored() == {0: 1}

    play(scene, tmp_path)


@pytest.mark.parametrize("profile", ALL)
def test_a_listener_may_shut_its_consumer_down(tmp_path: Path, profile: Profile) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic(queues=1)
        await cluster.fill(5)
        calls: list[bytes] = []
        ended = asyncio.Event()

        async def listen(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
            calls.append(messages[0].body)
            if len(calls) == 3:
                await consumer.shutdown()
                ended.set()
            return OK

        consumer = cluster.push_consumer(listen, consume_thread_max=1)
        await consumer.start()
        await ended.wait()
        await asyncio.sleep(15)
        assert calls == [b"0", b"1", b"2"]
        # Its own message is not among what it had finished.
        assert cluster.stored() == {0: 2}
        assert consumer.instance.is_unused

    play(scene, tmp_path, profile)


def test_a_failed_batch_is_delivered_again_as_one(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic(queues=1)
        await cluster.fill(4)
        calls: list[int] = []

        async def listen(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
            calls.append(len(messages))
            return ConsumeConcurrentlyStatus.RECONSUME_LATER if len(calls) == 1 else OK

        await cluster.consume(listen, consume_message_batch_max_size=32)
        await asyncio.sleep(4)
        assert calls == [4]
        await asyncio.sleep(12)
        assert calls == [4, 4]
        assert cluster.stored() == {0: 4}

    play(scene, tmp_path)


def test_a_slow_listener_holds_up_nothing_else(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic(queues=1)
        await cluster.fill(3)

        async def slow(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
            await asyncio.sleep(100)
            return OK

        await cluster.consume(slow)
        await asyncio.sleep(125)
        assert len(cluster.events.at(Point.LISTENER_RETURNED)) == 3
        ticks = [when for when in cluster.events.at(Point.PERSIST_TICK) if when < 100]
        assert len(ticks) >= 18
        assert len(cluster.events.at(Point.REBALANCED, topic="T")) >= 5

    play(scene, tmp_path)


def test_the_listener_runs_on_no_more_than_consume_thread_max_batches(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic()
        await cluster.fill(20)
        running = most = done = 0

        async def listen(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
            nonlocal running, most, done
            running += 1
            most = max(most, running)
            await asyncio.sleep(1)
            running -= 1
            done += 1
            return OK

        await cluster.consume(listen, consume_thread_max=7)
        await until(lambda: done == 80)
        assert most == 7

    play(scene, tmp_path)


@pytest.mark.parametrize("profile", ALL)
def test_a_pull_consumer_keeps_queues_it_does_not_pull(tmp_path: Path, profile: Profile) -> None:
    """The 120 s of behaviour.md C.5 are for push consumers."""

    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic(queues=2)
        consumer = await cluster.pull_consumer()
        consumer.register_topic("T")
        await asyncio.sleep(60)
        mine = dict(consumer.rebalancer.process_queues)
        assert len(mine) == 2
        await asyncio.sleep(150)
        assert consumer.rebalancer.process_queues == mine
        assert not any(process_queue.dropped for process_queue in mine.values())

    play(scene, tmp_path, profile)


@pytest.mark.parametrize("profile", ALL)
def test_C19_a_blocking_pull_at_the_end_waits_20_to_25_seconds(tmp_path: Path, profile: Profile) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic(queues=1)
        await cluster.fill(10)
        consumer = await cluster.pull_consumer()
        (queue,) = await consumer.fetch_subscribe_message_queues("T")
        start = cluster.world.now
        result = await consumer.pull_block_if_not_found(queue, "*", 10, 32)
        assert result.status is PullStatus.NO_NEW_MSG
        assert result.next_begin_offset == 10
        assert 20 <= cluster.world.now - start <= 25.1

    play(scene, tmp_path, profile)


@pytest.mark.parametrize(("profile", "hi"), [(Profile.V42, 99), (Profile.V49, 99), (Profile.V53, 100)])
def test_C20_the_search_after_the_last_message_and_what_a_replay_makes_of_it(
    tmp_path: Path, profile: Profile, hi: int
) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic(queues=1)
        for number in range(100):
            await cluster.fill(1, first=number)
            await asyncio.sleep(0.01)
        consumer = await cluster.pull_consumer()
        (queue,) = await consumer.fetch_subscribe_message_queues("T")
        end = EPOCH_MS + round(cluster.world.now * 1000) + 1000
        assert await consumer.search_offset(queue, end) == hi
        naive: list[bytes] = []
        offset = 0
        while offset < hi:
            result = await consumer.pull(queue, "*", offset, 32)
            naive += [message.body for message in result.messages if message.queue_offset < hi]
            offset = result.next_begin_offset
        assert len(naive) == hi
        replayed = [message.body async for message in consumer.replay("T", EPOCH_MS, end)]
        assert replayed == [b"%d" % number for number in range(100)]

    play(scene, tmp_path, profile)


@pytest.mark.parametrize("profile", ALL)
def test_a_replay_takes_exactly_the_interval(tmp_path: Path, profile: Profile) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic(queues=2)
        stored: dict[bytes, int] = {}
        for number in range(30):
            await cluster.fill(1, first=number)
            await asyncio.sleep(0.1 if number % 3 == 0 else 0)
        consumer = await cluster.pull_consumer()
        for queue in await consumer.fetch_subscribe_message_queues("T"):
            for message in (await consumer.pull(queue, "*", 0, 32)).messages:
                stored[message.body] = message.store_timestamp
        begin, end = stored[b"7"], stored[b"20"]
        expected = sorted(body for body, when in stored.items() if begin <= when <= end)
        replayed = sorted({message.body async for message in consumer.replay("T", begin, end)})
        assert replayed == expected
        assert [message async for message in consumer.replay("T", end + 60_000, end + 90_000)] == []

    play(scene, tmp_path, profile)


def test_the_four_outcomes_of_a_pull(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic(queues=1)
        await cluster.fill(10)
        consumer = await cluster.pull_consumer()
        (queue,) = await consumer.fetch_subscribe_message_queues("T")
        found = await consumer.pull(queue, "*", 4, 3)
        assert (found.status, found.next_begin_offset) == (PullStatus.FOUND, 7)
        assert [message.body for message in found.messages] == [b"4", b"5", b"6"]
        none = await consumer.pull(queue, "NoSuchTag", 0, 32)
        assert (none.status, none.next_begin_offset) == (PullStatus.NO_MATCHED_MSG, 10)
        assert (await consumer.pull(queue, "*", 10, 32)).status is PullStatus.NO_NEW_MSG
        beyond = await consumer.pull(queue, "*", 99, 32)
        assert (beyond.status, beyond.next_begin_offset) == (PullStatus.OFFSET_ILLEGAL, 10)
        assert (await consumer.min_offset(queue), await consumer.max_offset(queue)) == (0, 10)
        with pytest.raises(ClientError, match="offset < 0"):
            await consumer.pull(queue, "*", -1, 32)
        with pytest.raises(ClientError, match="maxNums <= 0"):
            await consumer.pull(queue, "*", 0, 0)

    play(scene, tmp_path)
