"""The lite pull consumer with real servers under virtual time (docs/spec/client.md C.14)."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from rewindmq import ClientError, ConsumeFromWhere, LitePullConsumer, Message, MessageExt, MessageModel
from rewindmq.client.consume.pull_result import PullStatus
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import RELEASES, Profile
from rewindmq.protocol.reset_mode import ResetMode
from tests.support.fixtures import played
from tests.support.stage import SimStage

ALL = list(Profile)
FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
Q0 = MessageQueue("T", "broker-a", 0)


def lite(stage: SimStage, group: str = "G", **options: Any) -> LitePullConsumer:
    """Return a consumer on a host of its own, not started."""
    options.setdefault("consume_from_where", FIRST)
    options.setdefault("profile", stage.profile)
    return LitePullConsumer(group, stage.namesrv, runtime=stage.new_runtime(), **options)


async def poll_all(consumer: LitePullConsumer, count: int, seconds: float = 60.0) -> list[MessageExt]:
    """Poll until ``count`` messages have arrived."""
    got: list[MessageExt] = []
    async with asyncio.timeout(seconds):
        while len(got) < count:
            got += await consumer.poll()
    return got


def bodies(messages: list[MessageExt]) -> list[int]:
    return sorted(int(message.body) for message in messages)


@pytest.mark.parametrize("profile", ALL)
@played()
async def test_two_consumers_share_a_topic_and_poll_each_message_once(
    stage: SimStage, profile: Profile
) -> None:
    await stage.create_topic(queues=4)
    await stage.fill(50)
    a, b = lite(stage, instance_name="a"), lite(stage, instance_name="b")
    for consumer in (a, b):
        consumer.subscribe("T")
    async with a, b:
        await stage.until(lambda: len(a.assignment) == len(b.assignment) == 2)
        got = [await poll_all(consumer, 100) for consumer in (a, b)]
        assert {message.queue_id for message in got[0]} == {0, 1}
        assert {message.queue_id for message in got[1]} == {2, 3}
        assert [bodies(messages) for messages in got] == [sorted([*range(50)] * 2)] * 2
        assert await a.poll(0) == []
        # A poll at least 5 s later notes it, and the next persist stores it.
        await stage.world.sleep(5)
        assert await a.poll(0) == await b.poll(0) == []
        await stage.until(lambda: stage.stored() == dict.fromkeys(range(4), 50), seconds=6)


@pytest.mark.parametrize("profile", RELEASES)
@played()
async def test_the_requests_of_a_lite_pull_consumer(stage: SimStage, profile: Profile) -> None:
    """The heartbeat says ACTIVELY. v53 pulls with 361, flags 22, 20 s of suspension, 10 messages."""
    await stage.create_topic(queues=1)
    await stage.fill(30)
    context = stage.brokers["broker-a"].context
    asked: list[tuple[int, int, int, int]] = []
    pull = context.pulls.puller.pull

    def noting(connection: Any, request: Any, header: Any) -> Any:
        asked.append((request.code, header.sys_flag, header.max_msg_nums, header.suspend_timeout_millis))
        return pull(connection, request, header)

    context.pulls.puller.pull = noting  # type: ignore[method-assign]
    consumer = lite(stage)
    consumer.subscribe("T", "*")
    async with consumer:
        assert len((await poll_all(consumer, 30))[:10]) == 10
        group = context.clients.consumers.find("G")
        assert group is not None
        assert group.consume_type == "CONSUME_ACTIVELY"
    code = RequestCode.LITE_PULL_MESSAGE if profile is Profile.V53 else RequestCode.PULL_MESSAGE
    assert set(asked) == {(code, 22, 10, 20_000)}


@pytest.mark.parametrize("profile", ALL)
@played()
async def test_assigned_queues_are_pulled_even_if_others_pull_them(stage: SimStage, profile: Profile) -> None:
    await stage.create_topic(queues=3)
    await stage.fill(5)
    a, b = lite(stage, instance_name="a"), lite(stage, instance_name="b")
    q1 = MessageQueue("T", "broker-a", 1)
    a.assign([Q0, q1])
    async with a, b:
        b.assign([q1])
        assert a.assignment == [Q0, q1]
        assert {message.queue_id for message in await poll_all(a, 10)} == {0, 1}
        assert bodies(await poll_all(b, 5)) == [0, 1, 2, 3, 4]
        await a.commit([q1], persist=True)
        await stage.until(lambda: stage.stored() == {1: 5})
        # Another assignment keeps the queues that stay, and ends the others.
        a.assign([q1])
        await stage.fill(1, first=5)
        assert [message.queue_id for message in await poll_all(a, 1)] == [1]
        assert await a.poll(2000) == []


@pytest.mark.parametrize("profile", RELEASES)
@played()
async def test_seek_discards_pulled_messages_and_continues_elsewhere(
    stage: SimStage, profile: Profile
) -> None:
    await stage.create_topic(queues=1)
    await stage.fill(100)
    consumer = lite(stage)
    consumer.assign([Q0])
    async with consumer:
        assert bodies(await consumer.poll()) == [*range(10)]
        await stage.world.sleep(1)
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
        moment = stage.world.now * 1000
        assert await consumer.offset_for_timestamp(Q0, round(moment)) == 0
        with pytest.raises(ClientError, match="Seek offset illegal, seek offset = 101, min offset = 0"):
            await consumer.seek(Q0, 101)
        with pytest.raises(ClientError, match="not in assigned list, message queue"):
            await consumer.seek(MessageQueue("T", "broker-a", 7), 0)


@played()
async def test_paused_queues_are_not_pulled_and_keep_their_messages(stage: SimStage) -> None:
    await stage.create_topic(queues=2)
    await stage.fill(20)
    consumer = lite(stage)
    consumer.subscribe("T")
    async with consumer:
        await stage.until(lambda: len(consumer.requests) == 4)
        consumer.pause([Q0])
        await poll_all(consumer, 40)
        # The suspended pull of a queue still brings one message after the queue is paused.
        await stage.fill(1, first=20)
        await poll_all(consumer, 2)
        await stage.fill(2, first=21)
        assert {message.queue_id for message in await poll_all(consumer, 2)} == {1}
        assert await consumer.poll(3000) == []
        consumer.resume([Q0])
        assert {message.queue_id for message in await poll_all(consumer, 2, seconds=2)} == {0}


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
@played(store={"mapped_file_size_commit_log": 1 << 24})
async def test_thresholds_stop_the_pulls(stage: SimStage, options: dict[str, Any], most: int) -> None:
    """At most one batch of 10 exceeds each threshold; after polls, the pulls go on."""
    await stage.create_topic(queues=1)
    producer, chance = await stage.producer(), random.Random(1)
    for _ in range(100):
        body = chance.randbytes(90_000 if "pull_threshold_size_for_queue" in options else 3)
        await producer.send(Message("T", body), queue=Q0)
    consumer = lite(stage, **options)
    consumer.assign([Q0])
    async with consumer:
        await stage.world.sleep(5)
        assert consumer.process_queues[Q0].cached_count == most
        got = await poll_all(consumer, 100)
        assert [message.queue_offset for message in got] == [*range(100)]


@pytest.mark.parametrize("profile", RELEASES)
@played()
async def test_an_illegal_offset_moves_the_pulls_and_nothing_else(stage: SimStage, profile: Profile) -> None:
    """C.14: no wait, no commit, no new ProcessQueue; the stored offset stays until a poll."""
    await stage.create_topic(queues=1)
    await stage.fill(10)
    reader = await stage.pull_consumer()
    # v53 refuses commits of a group that it does not know.
    await reader.pull(Q0, "*", 0, 1)
    reader.update_consume_offset(Q0, 77)
    await reader.persist_consume_offset(Q0)
    await reader.shutdown()
    consumer = lite(stage)
    consumer.assign([Q0])
    async with consumer:
        before = consumer.process_queues[Q0]
        await stage.world.sleep(4)
        assert consumer.process_queues[Q0] is before
        illegal = stage.events.at(Point.PULL_CALLBACK, status=str(PullStatus.OFFSET_ILLEGAL), offset=10)
        assert len(illegal) == 1
        assert await consumer.poll(0) == []
        await stage.world.sleep(12)
        assert stage.stored() == {0: 77}
        await stage.fill(1, first=10)
        assert bodies(await poll_all(consumer, 1)) == [10]
        await stage.world.sleep(6)
        assert await consumer.poll(0) == []
        await stage.until(lambda: stage.stored() == {0: 11})


@pytest.mark.parametrize("profile", RELEASES)
@played(reset_mode=ResetMode.CLASSIC)
async def test_a_classic_reset_has_no_effect(stage: SimStage, profile: Profile) -> None:
    """docs/spec/reset.md D.6, issue 5318: success, but the consumer ignores the reset; nothing is stored."""
    await stage.create_topic(queues=1)
    await stage.fill(10)
    consumer = lite(stage)
    consumer.subscribe("T")
    async with consumer:
        await poll_all(consumer, 10)
        await stage.world.sleep(6)
        await consumer.poll(0)
        await stage.until(lambda: stage.stored() == {0: 10})
        admin = await stage.admin()
        result = await admin.resets.reset("T", "G", 0)
        assert list(result.offset_table.values()) == [0]
        assert await consumer.poll(20_000) == []
        assert stage.events.at(Point.RESET_NOTIFICATION_RECEIVED) != []
        assert stage.events.at(Point.SUSPENDED) == []
        assert stage.stored() == {0: 10}


@played()
async def test_the_listener_is_called_for_new_queues(stage: SimStage) -> None:
    await stage.create_topic(queues=1)
    calls: list[tuple[float, str, int]] = []
    consumer = lite(stage)
    consumer.assign([Q0])
    consumer.register_topic_message_queue_change_listener(
        "T", lambda topic, queues: calls.append((stage.world.now, topic, len(queues)))
    )
    async with consumer:
        await stage.world.sleep(45)
        assert calls == []
        await stage.create_topic(queues=3)
        await stage.world.sleep(30)
        assert [(topic, count) for _, topic, count in calls] == [("T", 3)]


@played()
async def test_an_unsubscribed_topic_is_neither_pulled_nor_committed(stage: SimStage) -> None:
    await stage.create_topic(queues=1)
    await stage.fill(20)
    consumer = lite(stage)
    consumer.subscribe("T")
    async with consumer:
        await stage.until(lambda: len(consumer.requests) == 2)
        assert len(await consumer.poll()) == 10
        consumer.unsubscribe("T")
        assert await consumer.poll(30_000) == []
        assert stage.stored() == {}
        consumer.subscribe("T")
        assert bodies(await poll_all(consumer, 20)) == [*range(20)]


@pytest.mark.parametrize("profile", RELEASES)
@played()
async def test_broadcasting_consumers_each_poll_everything_and_continue_from_files(
    stage: SimStage, tmp_path: Path, profile: Profile
) -> None:
    await stage.create_topic(queues=2)
    await stage.fill(5)
    options: dict[str, Any] = {
        "message_model": MessageModel.BROADCASTING,
        "offset_root": tmp_path / "offsets",
    }
    for expected in ([0, 0, 1, 1, 2, 2, 3, 3, 4, 4], []):
        consumers = [lite(stage, instance_name=name, **options) for name in "ab"]
        for consumer in consumers:
            consumer.subscribe("T")
        async with consumers[0], consumers[1]:
            await stage.world.sleep(3)
            for consumer in consumers:
                assert len(consumer.assignment) == 2
                assert bodies(await poll_all(consumer, len(expected))) == expected
                consumer.commit_sync()
    assert stage.stored() == {}


@played()
async def test_storing_some_offsets_removes_the_noted_offsets_of_others(stage: SimStage) -> None:
    """A quirk of RocketMQ; the next ``commit_sync`` notes them again."""
    await stage.create_topic(queues=2)
    await stage.fill(5)
    q1 = MessageQueue("T", "broker-a", 1)
    consumer = lite(stage, auto_commit=False)
    consumer.assign([Q0, q1])
    async with consumer:
        await poll_all(consumer, 10)
        consumer.commit_sync()
        await consumer.commit([Q0], persist=True)
        await stage.world.sleep(12)
        assert stage.stored() == {0: 5}
        assert await consumer.committed(q1) == 0
        consumer.commit_sync()
        await stage.until(lambda: stage.stored() == {0: 5, 1: 5}, seconds=6)


@played()
async def test_a_shutdown_ends_a_waiting_poll(stage: SimStage) -> None:
    await stage.create_topic(queues=1)
    consumer = lite(stage)
    consumer.assign([Q0])
    await consumer.start()
    polling = asyncio.ensure_future(consumer.poll(60_000))
    await stage.world.sleep(1)
    begun = stage.world.now
    await consumer.shutdown()
    assert await polling == []
    assert stage.world.now - begun < 1
    with pytest.raises(ClientError, match="not OK"):
        await consumer.poll(0)


def test_invalid_options_are_refused() -> None:
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
