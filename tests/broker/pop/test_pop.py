"""POP, acks and revivals (docs/spec/pop.md), which cites what was seen at 5.5.1."""

from __future__ import annotations

import asyncio

import pytest

from rewindmq.broker.pop.queues_in_turn import QUEUES_IN_TURN
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.profile import Profile
from rewindmq.race.sim.world import EPOCH_MS
from tests.broker.pop.asking import ack, ack_all, batch_ack, change, pop
from tests.support.fixtures import simulated
from tests.support.peer import Peer
from tests.support.stage import SimStage

V53 = Profile.V53


async def filled(stage: SimStage, count: int = 12, queues: int = 4) -> Peer:
    peer = stage.peer()
    await peer.create_topic(write=queues, read=queues)
    for number in range(count):
        (await peer.send(body=b"m%d" % number, queue_id=number % queues)).require_success()
    await stage.at(1.0)
    return peer


@simulated(profile=V53)
async def test_the_response_says_where_the_messages_come_from(stage: SimStage) -> None:
    peer = await filled(stage)
    popped = await pop(peer, queue_id=1)
    assert popped.bodies == [b"m1", b"m5", b"m9"]
    header = popped.header
    assert header.pop_time == EPOCH_MS + 1_000
    assert (header.invisible_time, header.revive_qid, header.rest_num) == (10_000, 0, 0)
    assert header.start_offset_info == "0 1 0"
    assert header.msg_offset_info == "0 1 0,1,2"
    assert header.order_count_info is None
    assert popped.response.remark == "FOUND"
    assert (await peer.stored_offset(queue_id=1)) == 3
    # The next POP finds nothing, and has the next revive queue.
    empty = await pop(peer, queue_id=1)
    assert (empty.response.code, empty.response.remark) == (
        ResponseCode.POLLING_TIMEOUT,
        "NO_MESSAGE_IN_QUEUE",
    )
    assert (empty.header.revive_qid, empty.header.start_offset_info) == (1, "")


@simulated(profile=V53)
async def test_messages_without_an_ack_come_again_two_to_four_seconds_late(stage: SimStage) -> None:
    """As seen at 5.5.1, the retry topic is created with the first revival."""
    peer = await filled(stage)
    popped = await pop(peer)
    assert len(popped.messages) == 12
    await ack_all(peer, popped.messages[:9])
    late = popped.messages[9:]
    visible_at = popped.header.pop_time + 10_000
    assert stage.broker.context.tables.topics.find("%RETRY%G_T") is None
    await stage.at(1.0 + 10.0 + 1.99)
    assert stage.broker.context.tables.topics.find("%RETRY%G_T") is None
    again = await pop(peer, poll=5_000)
    await stage.at(1.0 + 10.0 + 4.5)
    messages = [*again.messages, *(await pop(peer)).messages]
    assert sorted(lent.body for lent in messages) == sorted(lent.body for lent in late)
    retry = stage.broker.context.tables.topics.find("%RETRY%G_T")
    assert retry is not None
    assert (retry.read_queue_nums, retry.write_queue_nums, retry.perm) == (1, 1, 6)
    for lent in messages:
        assert (lent.attempt, lent.topic, lent.message.topic) == (2, "%RETRY%G_T", "T")
        assert lent.message.properties["1ST_POP_TIME"] == str(popped.header.pop_time)
        assert lent.message.properties["ORIGIN_GROUP"] == "G"
        assert 2_000 <= lent.message.store_timestamp - visible_at <= 4_500
    await ack_all(peer, messages)
    await stage.at(60.0)
    assert (await pop(peer)).messages == []
    assert stage.broker.context.pop is not None
    assert stage.broker.context.pop.revive.open_check_points == 0


@simulated(profile=V53)
async def test_a_batch_of_acks_counts_for_each_message(stage: SimStage) -> None:
    peer = await filled(stage, 20)
    popped = await pop(peer, count=20)
    (await batch_ack(peer, popped.messages[1:])).require_success()
    await stage.at(30.0)
    assert (await pop(peer)).bodies == [popped.messages[0].body]


@simulated(profile=V53)
async def test_a_message_is_revived_again_and_again(stage: SimStage) -> None:
    """As seen at 5.5.1, the broker itself never gives up."""
    peer = await filled(stage, 1)
    attempts = []
    for _ in range(20):
        popped = await pop(peer, invisible=1_000, poll=10_000)
        assert popped.bodies == [b"m0"]
        attempts.append(popped.messages[0].attempt)
    assert attempts == list(range(1, 21))


@simulated(profile=V53)
async def test_a_changed_invisible_time_replaces_the_old_one(stage: SimStage) -> None:
    """As seen at 5.5.1, the old handle acknowledges nothing, the new one does."""
    peer = await filled(stage, 2, 1)
    first, second = (await pop(peer)).messages
    response, renewed = await change(peer, first, 25_000)
    response.require_success()
    (await ack(peer, first)).require_success()
    (await change(peer, second, 25_000))[0].require_success()
    await stage.at(1.0 + 24.0)
    assert (await pop(peer)).messages == []
    (await ack(peer, renewed)).require_success()
    await stage.at(1.0 + 25.0 + 4.5)
    assert (await pop(peer)).bodies == [second.body]


@simulated(profile=V53)
async def test_suspending_a_message_does_not_count_as_an_attempt(stage: SimStage) -> None:
    peer = await filled(stage, 1)
    (lent,) = (await pop(peer)).messages
    (await change(peer, lent, 1_000, suspend=True))[0].require_success()
    (again,) = (await pop(peer, poll=10_000)).messages
    assert again.attempt == 1


@simulated(profile=V53)
async def test_a_suspended_pop_is_woken_by_the_message(stage: SimStage) -> None:
    peer = await filled(stage, 0)
    waiting = asyncio.create_task(pop(peer, poll=15_000))
    single = asyncio.create_task(pop(stage.peer("c2"), poll=15_000, queue_id=2, group="H"))
    await stage.at(5.0)
    assert not waiting.done()
    for number in range(3):
        (await peer.send(body=b"m%d" % number, queue_id=2)).require_success()
    await stage.at(5.001)
    assert len((await waiting).messages) + len((await pop(peer)).messages) == 3
    assert len((await single).messages) >= 1


@simulated(profile=V53)
async def test_a_suspended_pop_ends_with_its_poll_time(stage: SimStage) -> None:
    """Seen at 5.5.1: 4.96 to 4.98 s of 5 s."""
    peer = await filled(stage, 0)
    popped = await pop(peer, poll=5_000)
    assert popped.response.code == ResponseCode.POLLING_TIMEOUT
    assert 1.0 + 4.94 <= stage.world.now <= 1.0 + 5.0


@pytest.mark.parametrize(("init_mode", "queues", "expected"), [(0, 1, 10), (1, 1, 10)])
@simulated(profile=V53)
async def test_a_new_group_gets_what_is_in_memory(
    stage: SimStage, init_mode: int, queues: int, expected: int
) -> None:
    """As seen at 5.5.1."""
    peer = await filled(stage, 10, queues)
    assert len((await pop(peer, init_mode=init_mode)).messages) == expected


@simulated(profile=V53)
async def test_a_pop_of_a_very_wide_topic_finds_the_queues_with_messages(stage: SimStage) -> None:
    """A request looks at a bounded number of queues, so that it does not hold the loop."""
    peer = stage.peer()
    wide = QUEUES_IN_TURN + 1_000
    await peer.create_topic(write=wide, read=wide)
    for queue_id in (0, 77, wide - 1):
        (await peer.send(body=b"%d" % queue_id, queue_id=queue_id)).require_success()
    popped = await pop(peer)
    assert sorted(popped.bodies) == sorted(b"%d" % queue_id for queue_id in (0, 77, wide - 1))
    await ack_all(peer, popped.messages)
    assert (await pop(peer)).bodies == []
