"""Resets and direct writes with the admin client (docs/spec/reset.md D.1, D.8), in virtual time."""

from __future__ import annotations

import pytest

from rewindmq import MessageQueue
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import RequestTimeoutError, ResponseError
from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import RELEASES, Profile
from rewindmq.protocol.reset_mode import ResetMode
from tests.client.admin.support import GROUP, TOPIC, new_consumer, start_mute_broker
from tests.support.answers import present
from tests.support.fixtures import played
from tests.support.stage import SimStage

Q0, Q1 = MessageQueue(TOPIC, "broker-a", 0), MessageQueue(TOPIC, "broker-a", 1)


def commit(stage: SimStage, offset: int, *queues: MessageQueue) -> None:
    """Store an offset of the group for each queue at its broker."""
    for queue in queues:
        stage.brokers[queue.broker_name].context.offsets.table.commit(
            GROUP, queue.topic, queue.queue_id, offset
        )


async def store_times(stage: SimStage, queue: MessageQueue) -> list[int]:
    store = stage.brokers[queue.broker_name].context.store
    end = store.max_offset(queue.topic, queue.queue_id)
    return [store.store_time(queue.topic, queue.queue_id, offset) for offset in range(end)]


@pytest.mark.parametrize("profile", RELEASES)
@played(reset_mode=ResetMode.CLASSIC)
async def test_D05_without_force_a_queue_at_the_target_keeps_its_offset(
    stage: SimStage, profile: Profile
) -> None:
    await stage.create_topic(TOPIC, 1)
    await stage.send(4, TOPIC)
    async with new_consumer(stage):
        await stage.world.sleep(20)
        commit(stage, 2, Q0)
        times = await store_times(stage, Q0)
        admin = await stage.admin()
        same = await admin.resets.reset(TOPIC, GROUP, times[2], force=False)
        assert same.offset_table == {Q0: 2}
        later = await admin.resets.reset(TOPIC, GROUP, times[3], force=False)
        assert later.offset_table == {Q0: 2}
        earlier = await admin.resets.reset(TOPIC, GROUP, times[1], force=False)
        assert earlier.offset_table == {Q0: 1}


@pytest.mark.scenario("D06", "v42", "v49")
@pytest.mark.parametrize(("profile", "target"), [(Profile.V42, 99), (Profile.V49, 100), (Profile.V53, 100)])
@played(reset_mode=ResetMode.CLASSIC)
async def test_D06_now_means_the_last_message_or_the_end_by_profile(
    stage: SimStage, profile: Profile, target: int
) -> None:
    await stage.create_topic(TOPIC, 1)
    await stage.send(100, TOPIC, gap=0.1)
    async with new_consumer(stage):
        await stage.world.sleep(20)
        lines = await stage.run(f"resetOffsetByTime -g {GROUP} -t {TOPIC} -s now")
    assert lines[-1].split() == ["broker-a", "0", str(target)]
    assert "timestamp(string)[now]" in lines[0]
    assert ("timestamp(long)[-1]" in lines[0]) == (profile is Profile.V49)


@pytest.mark.scenario("D10", "v42", "v49", "v53c")
@pytest.mark.parametrize("profile", RELEASES)
@played(reset_mode=ResetMode.CLASSIC)
async def test_D10_an_offline_group_is_refused_with_206_and_the_command_writes_its_offsets(
    stage: SimStage, profile: Profile
) -> None:
    await stage.create_topic(TOPIC, 2)
    await stage.send(5, TOPIC)
    async with new_consumer(stage):
        await stage.world.sleep(20)
    await stage.world.sleep(1)
    admin = await stage.admin()
    with pytest.raises(ResponseError) as refused:
        await admin.resets.reset(TOPIC, GROUP, 1000, write=False)
    assert refused.value.code == ResponseCode.CONSUMER_NOT_ONLINE
    assert refused.value.remark == (
        f"Consumer not online, so can not reset offset, Group: {GROUP} Topic: {TOPIC} Timestamp: 1000"
    )
    assert [stage.stored_offset(Q0, GROUP), stage.stored_offset(Q1, GROUP)] == [5, 5]
    await stage.run(f"resetOffsetByTime -g {GROUP} -t {TOPIC} -s 1000")
    assert [stage.stored_offset(Q0, GROUP), stage.stored_offset(Q1, GROUP)] == [0, 0]


@pytest.mark.scenario("D11", "v42", "v49", "v53c")
@pytest.mark.parametrize("profile", RELEASES)
@played(reset_mode=ResetMode.CLASSIC)
async def test_D11_an_offline_group_without_offsets_fails_without_fallback(
    stage: SimStage, profile: Profile
) -> None:
    await stage.create_topic(TOPIC, 2)
    await stage.send(1, TOPIC)
    with pytest.raises(ResponseError) as refused:
        await stage.run(f"resetOffsetByTime -g {GROUP} -t {TOPIC} -s 1000")
    assert str(refused.value) == f"CODE: 1  DESC: THe consumer group <{GROUP}> not exist"
    assert [stage.stored_offset(Q0, GROUP), stage.stored_offset(Q1, GROUP)] == [-1, -1]


@played()
async def test_after_a_reset_that_times_out_no_offsets_are_written(stage: SimStage) -> None:
    await stage.create_topic(TOPIC, 2)
    await stage.send(3, TOPIC)
    commit(stage, 3, Q0, Q1)
    await start_mute_broker(stage, "a-broker")
    with pytest.raises(RequestTimeoutError):
        await stage.run(f"skipAccumulatedMessage -g {GROUP} -t {TOPIC}")
    assert [stage.stored_offset(Q0, GROUP), stage.stored_offset(Q1, GROUP)] == [3, 3]


@played(brokers=2)
async def test_if_a_later_broker_returns_206_offsets_are_written_at_all_brokers(stage: SimStage) -> None:
    await stage.create_topic(TOPIC, 1)
    await stage.send(3, TOPIC)
    there = MessageQueue(TOPIC, "broker-b", 0)
    async with new_consumer(stage):
        await stage.world.sleep(20)
        # broker-b forgets the group, as if its connection had just been lost.
        consumers = stage.brokers["broker-b"].context.clients.consumers
        for channel in list(present(consumers.find(GROUP)).channels.values()):
            consumers.unregister(GROUP, channel.connection, notify=False)
        lines = await stage.run(f"resetOffsetByTime -g {GROUP} -t {TOPIC} -s 1000")
        assert "consumerGroup[" in lines[0]
        assert [line.split()[0] for line in lines[2:]] == ["broker-a", "broker-b"]
        assert [stage.stored_offset(Q0, GROUP), stage.stored_offset(there, GROUP)] == [0, 0]


# Direct writes (D.8).


@played()
async def test_direct_write_without_force_compares_with_less_or_equal(stage: SimStage) -> None:
    await stage.create_topic(TOPIC, 2)
    await stage.send(4, TOPIC)
    times = await store_times(stage, Q0)
    commit(stage, 2, Q0)
    commit(stage, 1, Q1)
    result = await (await stage.admin()).resets.reset(TOPIC, GROUP, times[2], force=False, write=True)
    rows = result.written or ()
    assert [(row.timestamp_offset, row.consumer_offset, row.rollback_offset) for row in rows] == [
        (2, 2, 2),
        (2, 1, 1),
    ]
    assert [stage.stored_offset(Q0, GROUP), stage.stored_offset(Q1, GROUP)] == [2, 1]


@played()
async def test_direct_write_without_history_covers_every_read_queue(stage: SimStage) -> None:
    await stage.create_topic(TOPIC, 2, read=3)
    await stage.send(4, TOPIC)
    rows = (await (await stage.admin()).resets.reset(TOPIC, GROUP, -1, write=True)).written or ()
    assert [(row.broker_offset, row.consumer_offset, row.rollback_offset) for row in rows] == [
        (4, 0, 4),
        (4, 0, 4),
        (0, 0, 0),
    ]
    assert [
        stage.stored_offset(Q0, GROUP),
        stage.stored_offset(Q1, GROUP),
        stage.stored_offset(Q0._replace(queue_id=2), GROUP),
    ] == [4, 4, 0]


@pytest.mark.parametrize(("profile", "code"), [(Profile.V49, None), (Profile.V53, 26)])
@played(reset_mode=ResetMode.CLASSIC)
async def test_direct_write_for_an_unknown_group_is_refused_by_v53_only(
    stage: SimStage, profile: Profile, code: int | None
) -> None:
    await stage.create_topic(TOPIC, 2)
    await stage.send(1, TOPIC)
    admin = await stage.admin()
    if code is None:
        await admin.resets.reset(TOPIC, GROUP, -1, write=True)
        assert [stage.stored_offset(Q0, GROUP), stage.stored_offset(Q1, GROUP)] == [1, 1]
        return
    with pytest.raises(ResponseError) as refused:
        await admin.resets.reset(TOPIC, GROUP, -1, write=True)
    assert refused.value.code == code
    assert [stage.stored_offset(Q0, GROUP), stage.stored_offset(Q1, GROUP)] == [-1, -1]


@played()
async def test_direct_write_leaves_other_topics_alone(stage: SimStage) -> None:
    await stage.create_topic(TOPIC, 2)
    await stage.create_topic("Other", 1)
    await stage.send(2, TOPIC)
    other = MessageQueue("Other", "broker-a", 0)
    commit(stage, 2, Q0, Q1)
    commit(stage, 7, other)
    await (await stage.admin()).resets.reset(TOPIC, GROUP, 0, write=True)
    assert [
        stage.stored_offset(Q0, GROUP),
        stage.stored_offset(Q1, GROUP),
        stage.stored_offset(other, GROUP),
    ] == [0, 0, 7]


@pytest.mark.scenario("D31", "v42", "v49", "v53c")
@pytest.mark.parametrize("profile", RELEASES)
@played(reset_mode=ResetMode.CLASSIC)
async def test_D31_a_running_consumer_overwrites_a_direct_write_within_5_s(
    stage: SimStage, profile: Profile
) -> None:
    await stage.create_topic(TOPIC, 1)
    await stage.send(100, TOPIC, gap=0.01)
    async with new_consumer(stage):
        await stage.world.sleep(30)
        assert stage.stored_offset(Q0, GROUP) == 100
        await (await stage.admin()).resets.reset(TOPIC, GROUP, 0, write=True)
        assert stage.stored_offset(Q0, GROUP) == 0
        await stage.world.sleep(5.1)
        assert stage.stored_offset(Q0, GROUP) == 100
        assert len(stage.consumed) == 100


# The meaning of a success.


@played()
async def test_success_means_that_the_reset_notification_was_sent_and_offsets_move_10_s_later(
    stage: SimStage,
) -> None:
    await stage.create_topic(TOPIC, 1)
    await stage.send(10, TOPIC, gap=0.1)
    async with new_consumer(stage):
        await stage.world.sleep(30)
        steps = []
        admin = await stage.admin(probe=lambda point, details: steps.append((point, details)))
        began = stage.world.now
        result = await admin.resets.reset(TOPIC, GROUP, 0)
        assert result.offset_table == {Q0: 0}
        assert stage.world.now - began < 0.1
        assert stage.stored_offset(Q0, GROUP) == 10
        assert [point for point, _ in steps] == [
            Point.ROUTE_QUERIED,
            Point.RESET_SENT,
            Point.RESET_ANSWERED,
        ]
        asked = {"broker": "broker-a", "topic": TOPIC, "group": GROUP, "timestamp": 0}
        assert steps[1][1] == {**asked, "mode": None}
        assert steps[2][1] == {**asked, "mode": "classic"}
        assert result.modes == {"broker-a": ResetMode.CLASSIC}
        await stage.world.sleep(9.8)
        assert (stage.stored_offset(Q0, GROUP), len(stage.consumed)) == (10, 10)
        await stage.world.sleep(1)
        assert len(stage.consumed) == 20


@pytest.mark.scenario("D14", "v42", "v49", "v53c")
@pytest.mark.parametrize("profile", RELEASES)
@played(reset_mode=ResetMode.CLASSIC)
async def test_D14_a_cpp_reset_is_accepted_and_ignored_by_other_clients(
    stage: SimStage, profile: Profile
) -> None:
    await stage.create_topic(TOPIC, 1)
    await stage.send(3, TOPIC)
    async with new_consumer(stage):
        await stage.world.sleep(30)
        lines = await stage.run(f"resetOffsetByTime -g {GROUP} -t {TOPIC} -s 0 -c")
        assert lines[-1].split() == ["broker-a", "0", "0"]
        await stage.world.sleep(30)
        assert (stage.stored_offset(Q0, GROUP), len(stage.consumed)) == (3, 3)
