"""The lite pull consumer with real servers under virtual time (behaviour.md C.14)."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from rewindmq.client import ClientError, ConsumeFromWhere, LitePullConsumer, Message, MessageExt, MessageModel
from rewindmq.client.pull_result import PullStatus
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import RELEASES, Profile
from tests.client.client_stage import Cluster, play, until

ALL = list(Profile)
FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
Q0 = MessageQueue("T", "broker-a", 0)


def lite(cluster: Cluster, group: str = "G", **options: Any) -> LitePullConsumer:
    """Made, not started; on a host of its own."""
    options.setdefault("consume_from_where", FIRST)
    options.setdefault("profile", cluster.profile)
    return LitePullConsumer(group, cluster.namesrv, runtime=cluster.runtime()[0], **options)


async def poll_all(consumer: LitePullConsumer, count: int, seconds: float = 60.0) -> list[MessageExt]:
    """Poll until that many messages have come."""
    got: list[MessageExt] = []
    async with asyncio.timeout(seconds):
        while len(got) < count:
            got += await consumer.poll()
    return got


def bodies(messages: list[MessageExt]) -> list[int]:
    return sorted(int(message.body) for message in messages)


@pytest.mark.parametrize("profile", ALL)
def test_two_members_share_a_topic_and_poll_each_message_once(tmp_path: Path, profile: Profile) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic(queues=4)
        await cluster.fill(50)
        a, b = lite(cluster, instance_name="a"), lite(cluster, instance_name="b")
        for consumer in (a, b):
            consumer.subscribe("T")
        async with a, b:
            await until(lambda: len(a.assignment) == len(b.assignment) == 2)
            got = [await poll_all(consumer, 100) for consumer in (a, b)]
            assert {message.queue_id for message in got[0]} == {0, 1}
            assert {message.queue_id for message in got[1]} == {2, 3}
            assert [bodies(messages) for messages in got] == [sorted([*range(50)] * 2)] * 2
            assert await a.poll(0) == []
            # Noted by a poll at least 5 s later, stored by the next persist.
            await asyncio.sleep(5)
            assert await a.poll(0) == await b.poll(0) == []
            await until(lambda: cluster.stored() == dict.fromkeys(range(4), 50), seconds=6)

    play(scene, tmp_path, profile)


@pytest.mark.parametrize("profile", RELEASES)
def test_what_is_sent_and_when(tmp_path: Path, profile: Profile) -> None:
    """The heartbeat says ACTIVELY; v53 pulls with 361, flags 22, 20 s of hold; 10 messages at a time."""

    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic(queues=1)
        await cluster.fill(30)
        context = cluster.brokers["broker-a"].context
        asked: list[tuple[int, int, int, int]] = []
        pull = context.puller.pull

        def noting(connection: Any, request: Any, header: Any) -> Any:
            asked.append((request.code, header.sys_flag, header.max_msg_nums, header.suspend_timeout_millis))
            return pull(connection, request, header)

        context.puller.pull = noting  # type: ignore[method-assign]
        consumer = lite(cluster)
        consumer.subscribe("T", "*")
        async with consumer:
            assert len((await poll_all(consumer, 30))[:10]) == 10
            group = context.consumers.find("G")
            assert group is not None
            assert group.consume_type == "CONSUME_ACTIVELY"
        code = RequestCode.LITE_PULL_MESSAGE if profile is Profile.V53 else RequestCode.PULL_MESSAGE
        assert set(asked) == {(code, 22, 10, 20_000)}

    play(scene, tmp_path, profile)


@pytest.mark.parametrize("profile", ALL)
def test_assigned_queues_are_pulled_whoever_else_does(tmp_path: Path, profile: Profile) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic(queues=3)
        await cluster.fill(5)
        a, b = lite(cluster, instance_name="a"), lite(cluster, instance_name="b")
        q1 = MessageQueue("T", "broker-a", 1)
        a.assign([Q0, q1])
        async with a, b:
            b.assign([q1])
            assert a.assignment == [Q0, q1]
            assert {message.queue_id for message in await poll_all(a, 10)} == {0, 1}
            assert bodies(await poll_all(b, 5)) == [0, 1, 2, 3, 4]
            await a.commit([q1], persist=True)
            await until(lambda: cluster.stored() == {1: 5})
            # Another assignment keeps what goes on and ends the rest.
            a.assign([q1])
            await cluster.fill(1, first=5)
            assert [message.queue_id for message in await poll_all(a, 1)] == [1]
            assert await a.poll(2000) == []

    play(scene, tmp_path, profile)


@pytest.mark.parametrize("profile", RELEASES)
def test_seek_throws_away_what_was_pulled_and_goes_on_elsewhere(tmp_path: Path, profile: Profile) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic(queues=1)
        await cluster.fill(100)
        consumer = lite(cluster)
        consumer.assign([Q0])
        async with consumer:
            assert bodies(await consumer.poll()) == [*range(10)]
            await asyncio.sleep(1)
            await consumer.seek(Q0, 90)
            assert bodies(await poll_all(consumer, 10)) == [*range(90, 100)]
            await consumer.seek_to_begin(Q0)
            assert bodies(await consumer.poll()) == [*range(10)]
            # The position that is committed follows a seek, backwards too.
            consumer.commit_sync()
            assert await consumer.committed(Q0) == 10
            await consumer.seek_to_end(Q0)
            assert await consumer.poll(1000) == []
            consumer.commit_sync()
            assert await consumer.committed(Q0) == 100
            moment = cluster.world.now * 1000
            assert await consumer.offset_for_timestamp(Q0, round(moment)) == 0
            with pytest.raises(ClientError, match="Seek offset illegal, seek offset = 101, min offset = 0"):
                await consumer.seek(Q0, 101)
            with pytest.raises(ClientError, match="not in assigned list, message queue"):
                await consumer.seek(MessageQueue("T", "broker-a", 7), 0)

    play(scene, tmp_path, profile)


def test_paused_queues_are_not_pulled_and_keep_what_was(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic(queues=2)
        await cluster.fill(20)
        consumer = lite(cluster)
        consumer.subscribe("T")
        async with consumer:
            await until(lambda: len(consumer.requests) == 4)
            consumer.pause([Q0])
            await poll_all(consumer, 40)
            # The pull that is held when it is paused still brings one message.
            await cluster.fill(1, first=20)
            await poll_all(consumer, 2)
            await cluster.fill(2, first=21)
            assert {message.queue_id for message in await poll_all(consumer, 2)} == {1}
            assert await consumer.poll(3000) == []
            consumer.resume([Q0])
            assert {message.queue_id for message in await poll_all(consumer, 2, seconds=2)} == {0}

    play(scene, tmp_path)


@pytest.mark.parametrize(
    ("options", "most"),
    [
        ({"pull_threshold_for_queue": 40}, 50),
        ({"consume_max_span": 25}, 30),
        ({"pull_threshold_for_all": 60}, 70),
        # Two of these bodies make a pull: 24 of them are the first to fill 2 MiB.
        ({"pull_threshold_size_for_queue": 1}, 24),
    ],
    ids=str,
)
def test_thresholds_hold_up_the_pulls(tmp_path: Path, options: dict[str, int], most: int) -> None:
    """Each is exceeded by at most one batch of 10, and polling lets the pulls go on."""

    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic(queues=1)
        producer, chance = await cluster.producer(), random.Random(1)
        for _ in range(100):
            body = chance.randbytes(90_000 if "pull_threshold_size_for_queue" in options else 3)
            await producer.send(Message("T", body), queue=Q0)
        consumer = lite(cluster, **options)
        consumer.assign([Q0])
        async with consumer:
            await asyncio.sleep(5)
            assert consumer.process_queues[Q0].cached_count == most
            got = await poll_all(consumer, 100)
            assert [message.queue_offset for message in got] == [*range(100)]

    play(scene, tmp_path, store={"mapped_file_size_commit_log": 1 << 24})


@pytest.mark.parametrize("profile", RELEASES)
def test_an_illegal_offset_moves_the_pulls_and_nothing_else(tmp_path: Path, profile: Profile) -> None:
    """C.14: no wait, no commit, no new ProcessQueue; what is stored stays until something is polled."""

    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic(queues=1)
        await cluster.fill(10)
        reader = await cluster.pull_consumer()
        # v53 refuses commits of a group it has never heard of.
        await reader.pull(Q0, "*", 0, 1)
        reader.update_consume_offset(Q0, 77)
        await reader.persist_consume_offset(Q0)
        await reader.shutdown()
        consumer = lite(cluster)
        consumer.assign([Q0])
        async with consumer:
            before = consumer.process_queues[Q0]
            await asyncio.sleep(4)
            assert consumer.process_queues[Q0] is before
            illegal = cluster.events.at(Point.PULL_CALLBACK, status=str(PullStatus.OFFSET_ILLEGAL), offset=10)
            assert len(illegal) == 1
            assert await consumer.poll(0) == []
            await asyncio.sleep(12)
            assert cluster.stored() == {0: 77}
            await cluster.fill(1, first=10)
            assert bodies(await poll_all(consumer, 1)) == [10]
            await asyncio.sleep(6)
            assert await consumer.poll(0) == []
            await until(lambda: cluster.stored() == {0: 11})

    play(scene, tmp_path, profile)


@pytest.mark.parametrize("profile", RELEASES)
def test_a_classic_reset_passes_it_by(tmp_path: Path, profile: Profile) -> None:
    """D.6, issue 5318: success, 220 ignored, nothing stored, nothing moved."""

    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic(queues=1)
        await cluster.fill(10)
        consumer = lite(cluster)
        consumer.subscribe("T")
        async with consumer:
            await poll_all(consumer, 10)
            await asyncio.sleep(6)
            await consumer.poll(0)
            await until(lambda: cluster.stored() == {0: 10})
            admin = await cluster.admin()
            result = await admin.reset_offset_by_timestamp("T", "G", 0, True)
            assert list(result.offset_table.values()) == [0]
            assert await consumer.poll(20_000) == []
            assert cluster.events.at(Point.RESET_NOTICE_RECEIVED) != []
            assert cluster.events.at(Point.SUSPENDED) == []
            assert cluster.stored() == {0: 10}

    play(scene, tmp_path, profile)


def test_new_queues_of_a_topic_are_told(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic(queues=1)
        told: list[tuple[float, str, int]] = []
        consumer = lite(cluster)
        consumer.assign([Q0])
        consumer.register_topic_message_queue_change_listener(
            "T", lambda topic, queues: told.append((cluster.world.now, topic, len(queues)))
        )
        async with consumer:
            await asyncio.sleep(45)
            assert told == []
            await cluster.create_topic(queues=3)
            await asyncio.sleep(30)
            assert [(topic, count) for _, topic, count in told] == [("T", 3)]

    play(scene, tmp_path)


def test_a_topic_given_up_is_neither_pulled_nor_committed_and_may_be_taken_up_again(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic(queues=1)
        await cluster.fill(20)
        consumer = lite(cluster)
        consumer.subscribe("T")
        async with consumer:
            await until(lambda: len(consumer.requests) == 2)
            assert len(await consumer.poll()) == 10
            consumer.unsubscribe("T")
            assert await consumer.poll(30_000) == []
            assert cluster.stored() == {}
            consumer.subscribe("T")
            assert bodies(await poll_all(consumer, 20)) == [*range(20)]

    play(scene, tmp_path)


@pytest.mark.parametrize("profile", RELEASES)
def test_broadcasting_members_each_poll_everything_and_go_on_from_their_files(
    tmp_path: Path, profile: Profile
) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic(queues=2)
        await cluster.fill(5)
        options = {"message_model": MessageModel.BROADCASTING, "offset_root": tmp_path / "offsets"}
        for expected in ([0, 0, 1, 1, 2, 2, 3, 3, 4, 4], []):
            members = [lite(cluster, instance_name=name, **options) for name in "ab"]
            for consumer in members:
                consumer.subscribe("T")
            async with members[0], members[1]:
                await asyncio.sleep(3)
                for consumer in members:
                    assert len(consumer.assignment) == 2
                    assert bodies(await poll_all(consumer, len(expected))) == expected
                    consumer.commit_sync()
        assert cluster.stored() == {}

    play(scene, tmp_path, profile)


def test_storing_some_offsets_forgets_what_is_noted_of_the_others(tmp_path: Path) -> None:
    """RocketMQ's own quirk; the next ``commit_sync`` notes them again."""

    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic(queues=2)
        await cluster.fill(5)
        q1 = MessageQueue("T", "broker-a", 1)
        consumer = lite(cluster, auto_commit=False)
        consumer.assign([Q0, q1])
        async with consumer:
            await poll_all(consumer, 10)
            consumer.commit_sync()
            await consumer.commit([Q0], persist=True)
            await asyncio.sleep(12)
            assert cluster.stored() == {0: 5}
            assert await consumer.committed(q1) == 0
            consumer.commit_sync()
            await until(lambda: cluster.stored() == {0: 5, 1: 5}, seconds=6)

    play(scene, tmp_path)


def test_who_waits_in_poll_is_let_go_by_a_shutdown(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic(queues=1)
        consumer = lite(cluster)
        consumer.assign([Q0])
        await consumer.start()
        polling = asyncio.ensure_future(consumer.poll(60_000))
        await asyncio.sleep(1)
        begun = cluster.world.now
        await consumer.shutdown()
        assert await polling == []
        assert cluster.world.now - begun < 1
        with pytest.raises(ClientError, match="not OK"):
            await consumer.poll(0)

    play(scene, tmp_path)


def test_what_it_refuses() -> None:
    address = "127.0.0.1:9876"
    subscribed, assigned = LitePullConsumer("G", address), LitePullConsumer("G", address)
    subscribed.subscribe("T")
    with pytest.raises(ClientError, match="mutually exclusive"):
        subscribed.assign([Q0])
    assigned.assign([Q0])
    with pytest.raises(ClientError, match="mutually exclusive"):
        assigned.subscribe("T")
    with pytest.raises(ClientError, match="can not be null or empty"):
        assigned.assign([])
    for options, words in [
        ({"pull_batch_size": 0}, "pull_batch_size Out of range"),
        ({"broker_suspend_max_time_millis": 40_000}, "must greater than"),
        ({"consume_from_where": "NOWHERE"}, "NOWHERE"),
    ]:
        with pytest.raises(ClientError, match=words):
            LitePullConsumer("G", address, **options)  # type: ignore[arg-type]
    with pytest.raises(ClientError, match="not OK"):
        asyncio.run(assigned.poll())
