"""Suspended POPs, resets, deletions, slaves, and what hostile records do (docs/spec/pop.md)."""

from __future__ import annotations

import asyncio

import pytest

from rewindmq.broker.config import BrokerRole
from rewindmq.broker.offsets import committer
from rewindmq.broker.pop import acknowledger
from rewindmq.broker.store.model import StoredMessage
from rewindmq.protocol.body.registration import TopicConfig
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.header.admin import DeleteSubscriptionGroupRequestHeader, DeleteTopicRequestHeader
from rewindmq.protocol.header.pop import NotificationResponseHeader
from rewindmq.protocol.pop.records import PopCheckPoint
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.text import java_hash
from tests.broker.pop.asking import ack, ack_all, batch_ack, notification, peek, polling_num, pop
from tests.broker.pop.test_pop import filled
from tests.support.fixtures import RunScenario, simulated
from tests.support.stage import SimStage

V53 = Profile.V53
REVIVE = "rmq_sys_REVIVE_LOG_DefaultCluster"


# Suspended requests


@simulated(profile=V53)
async def test_one_message_wakes_one_pop_of_each_group(stage: SimStage) -> None:
    peer = await filled(stage, 0)
    waiting = [
        asyncio.create_task(pop(stage.peer(f"c{number}"), poll=15_000, group=group, count=1))
        for number, group in enumerate("GGGH")
    ]
    await stage.at(2.0)
    assert await polling_num(peer) == 3
    for number in (1, 2):
        (await peer.send(body=b"m%d" % number)).require_success()
        await stage.at(2.0 + number)
        assert sum(task.done() for task in waiting[:3]) == number
        assert waiting[3].done()
    assert await polling_num(peer) == 1
    (await peer.send(body=b"m3")).require_success()
    bodies = [popped.bodies for popped in await asyncio.gather(*waiting)]
    assert sorted(bodies[:3]) == [[b"m1"], [b"m2"], [b"m3"]]
    assert bodies[3] == [b"m1"]


@simulated(profile=V53)
async def test_a_burst_is_shared_by_the_suspended_pops(stage: SimStage) -> None:
    peer = await filled(stage, 0)
    waiting = [
        asyncio.create_task(pop(stage.peer(f"c{number}"), poll=15_000, count=4)) for number in range(5)
    ]
    await stage.at(2.0)
    await asyncio.gather(*(peer.send(body=b"m%d" % number, queue_id=number % 4) for number in range(20)))
    await stage.at(2.1)
    bodies = [body for task in waiting if task.done() for body in task.result().bodies]
    assert sorted(bodies) == sorted(b"m%d" % number for number in range(20))


@simulated(profile=V53)
async def test_a_message_passes_over_pops_with_other_filters(stage: SimStage) -> None:
    peer = await filled(stage, 0)
    tagged = asyncio.create_task(pop(stage.peer("c1"), poll=15_000, exp="B", group="H"))
    by_property = asyncio.create_task(
        pop(stage.peer("c2"), poll=15_000, exp="n > 3", exp_type="SQL92", group="S")
    )
    await stage.at(2.0)
    (await peer.send(properties={"TAGS": "A", "n": "1"})).require_success()
    await stage.at(3.0)
    assert not tagged.done()
    assert not by_property.done()
    (await peer.send(body=b"wanted", properties={"TAGS": "B", "n": "4"})).require_success()
    assert (await tagged).bodies == (await by_property).bodies == [b"wanted"]


@simulated(profile=V53)
async def test_a_filter_passes_over_any_number_of_messages_within_one_pop(stage: SimStage) -> None:
    """As seen at 5.5.1: a POP goes on by itself behind the entries that one read scans."""
    peer = await filled(stage, 0, 1)
    await asyncio.gather(*(peer.send(properties={"TAGS": "A"}) for _ in range(2_000)))
    (await peer.send(body=b"wanted", properties={"TAGS": "B"})).require_success()
    assert (await pop(peer, exp="B", poll=5_000)).bodies == [b"wanted"]
    assert stage.world.now < 1.1


@simulated(profile=V53)
async def test_the_pops_of_a_closed_connection_are_gone(stage: SimStage) -> None:
    peer = await filled(stage, 0)
    gone = stage.peer("gone")
    lost = asyncio.create_task(pop(gone, poll=15_000))
    left = asyncio.create_task(pop(stage.peer("left"), poll=15_000))
    await stage.at(2.0)
    await gone.client.close()
    await asyncio.wait((lost,))
    await stage.at(3.0)
    assert await polling_num(peer) == 1
    (await peer.send(body=b"m")).require_success()
    assert (await left).bodies == [b"m"]


@simulated(profile=V53, pop_polling_size=1)
async def test_too_many_suspended_pops_are_refused(stage: SimStage) -> None:
    peer = await filled(stage, 0)
    waiting = [asyncio.create_task(pop(peer, poll=15_000)) for _ in range(2)]
    await stage.at(2.0)
    assert (await pop(peer, poll=15_000)).response.code == ResponseCode.POLLING_FULL
    response = await notification(peer, poll=1_000)
    assert response.decode_header(NotificationResponseHeader) == NotificationResponseHeader(False, False)
    await asyncio.gather(*waiting)


@simulated(profile=V53)
async def test_a_notification_waits_for_a_message_and_takes_none(stage: SimStage) -> None:
    peer = await filled(stage, 0)
    waiting = asyncio.create_task(notification(stage.peer("c2"), poll=15_000))
    await stage.at(2.0)
    assert await polling_num(peer) == 0
    (await peer.send(body=b"m")).require_success()
    answer = (await waiting).decode_header(NotificationResponseHeader)
    assert answer == NotificationResponseHeader(True, False)
    assert (await pop(peer)).bodies == [b"m"]


@simulated(profile=V53)
async def test_a_peek_moves_nothing(stage: SimStage) -> None:
    peer = await filled(stage, 3, 1)
    for _ in range(2):
        response = await peek(peer, count=2)
        assert response.code == ResponseCode.SUCCESS
    assert len((await pop(peer)).messages) == 3


# Resets


@simulated(profile=V53)
async def test_the_next_pop_takes_the_mark_and_late_acks_undo_nothing(stage: SimStage) -> None:
    """Seen at 5.5.1: everything again, once each, and no suspended POP is woken."""
    peer = await filled(stage, 12)
    first = await pop(peer)
    waiting = asyncio.create_task(pop(stage.peer("c2"), poll=5_000))
    await stage.at(2.0)
    (await peer.reset(0)).require_success()
    await ack_all(peer, first.messages)
    await stage.at(5.9)
    assert not waiting.done()
    again = await waiting
    assert sorted(again.bodies) == sorted(first.bodies)
    assert {lent.attempt for lent in again.messages} == {1}
    await ack_all(peer, again.messages)
    await stage.at(40.0)
    assert (await pop(peer)).messages == []
    assert [await peer.stored_offset(queue_id=queue_id) for queue_id in range(4)] == [3] * 4


@simulated(profile=V53)
async def test_a_skip_leaves_messages_in_flight_and_in_the_retry_topic(stage: SimStage) -> None:
    peer = await filled(stage, 4)
    assert len((await pop(peer, invisible=1_000)).messages) == 4
    await stage.at(6.0)
    (await peer.send(body=b"skipped")).require_success()
    (await peer.reset(-1)).require_success()
    assert sorted((await pop(peer)).bodies) == [b"m0", b"m1", b"m2", b"m3"]


@pytest.mark.parametrize("seconds", [0.0, 1.0])
@simulated(profile=V53, reset_mode="fenced")
async def test_a_fenced_reset_of_a_group_that_pops(stage: SimStage, seconds: float) -> None:
    peer = await filled(stage, 4)
    first = await pop(peer)
    (await peer.reset(0)).require_success()
    await stage.at(1.0 + seconds)
    again = await pop(peer)
    assert sorted(again.bodies) == sorted(first.bodies)
    # Both POPs may begin at the same time and offset: each ack closes its own checkpoint only.
    await ack_all(peer, again.messages)
    await stage.at(30.0)
    assert len((await pop(peer)).messages) == 4


# Deletions, slaves, hostile records


@simulated(profile=V53)
async def test_a_deleted_topic_revives_nothing_and_takes_its_retry_topic_along(stage: SimStage) -> None:
    peer = await filled(stage, 4)
    await pop(peer, invisible=1_000)
    await stage.at(6.0)
    topics = stage.broker.context.tables.topics
    assert topics.find("%RETRY%G_T") is not None
    await pop(peer, invisible=1_000)
    (await peer.ask(RequestCode.DELETE_TOPIC_IN_BROKER, DeleteTopicRequestHeader("T"))).require_success()
    assert topics.find("%RETRY%G_T") is None
    await stage.at(20.0)
    assert topics.find("%RETRY%G_T") is None
    revive = stage.broker.context.pop
    assert revive is not None
    assert revive.revive.open_check_points == 0


@simulated(profile=V53)
async def test_a_deleted_group_revives_nothing_and_stays_deleted(stage: SimStage) -> None:
    peer = await filled(stage, 4)
    await pop(peer, invisible=1_000)
    kept = await pop(peer, invisible=1_000, group="H")
    header = DeleteSubscriptionGroupRequestHeader("G")
    (await peer.ask(RequestCode.DELETE_SUBSCRIPTIONGROUP, header)).require_success()
    await stage.at(8.0)
    tables = stage.broker.context.tables
    assert tables.groups.get("G") is None
    assert tables.topics.find("%RETRY%G_T") is None
    assert sorted((await pop(peer, group="H")).bodies) == sorted(kept.bodies)


@simulated(profile=V53)
async def test_records_that_are_none_stop_nothing(stage: SimStage) -> None:
    """Every revive queue has garbage before, between and behind the checkpoints."""
    peer = await filled(stage, 12)

    def put(body: bytes, tag: str) -> None:
        for queue_id in range(8):
            properties = f"TAGS\x01{tag}\x02".encode()
            message = StoredMessage(REVIVE, queue_id, body, properties, java_hash(tag))
            stage.broker.context.sends.appender.put_other(message)

    def garbage() -> None:
        for tag in ("ck", "ack", "bAck", "x"):
            put(b"garbage", tag)
        put(b"{}", "ck")
        put(b'{"t":"T","c":"G","n":2,"d":[0]}', "ck")
        put(b'{"t":"T","c":"G","n":1,"so":-5}', "ck")
        put(b'{"t":"T","c":"G","q":-1,"n":1}', "ck")
        put(b'{"t":"None","c":"G","n":32}', "ck")
        put(b'{"t":"T","c":"G","ao":0}', "ack")

    garbage()
    # One that would be due in a hundred years, had it come by itself.
    far = PopCheckPoint(topic="T", consumer_group="G", num=1, pop_time=10**12, invisible_time=3 * 10**12)
    put(far.encode(), "ck")
    popped = await pop(peer)
    garbage()
    await ack_all(peer, popped.messages[:6])
    await stage.at(30.0)
    again = await pop(peer)
    assert sorted(again.bodies) == sorted(popped.bodies[6:])


@simulated(profile=V53)
async def test_a_slave_refuses_pops_and_acks(stage: SimStage) -> None:
    peer = await filled(stage, 4)
    (lent, *_) = (await pop(peer)).messages
    slave = await stage.start_broker(
        "broker-a-s",
        broker_name="broker-a",
        broker_id=1,
        broker_role=BrokerRole.SLAVE,
        ha_master_address="10.9.9.9:1",
    )
    slave.context.tables.topics.update(TopicConfig("T"))
    other = stage.peer("c9", slave.address)
    assert (await pop(other)).response.code == ResponseCode.SERVICE_NOT_AVAILABLE
    refused = await ack(other, lent, offset=0)
    assert refused.code == ResponseCode.SERVICE_NOT_AVAILABLE
    assert (await peek(other)).code == ResponseCode.PULL_NOT_FOUND


# Refusals


def test_a_queue_without_room_for_its_offset_spoils_no_others(
    simulate: RunScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committer, "MAX_NEW_OFFSETS_PER_CONNECTION", 2)

    async def scenario(stage: SimStage) -> None:
        peer = await filled(stage, 8)
        popped = await pop(peer)
        assert len(popped.messages) == 4
        assert len({lent.queue_id for lent in popped.messages}) == 2
        refused = (await pop(peer)).response
        assert (refused.code, refused.remark) == (
            ResponseCode.SYSTEM_ERROR,
            "this connection has 2 new consumer offsets already, of 2",
        )

    simulate(scenario, profile=V53)


@simulated(profile=V53)
async def test_a_batch_names_offsets_that_are_not_too_far_apart(
    stage: SimStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer = await filled(stage, 12, 1)
    lent = (await pop(peer)).messages
    monkeypatch.setattr(acknowledger, "MAX_BATCH_ACK_BITS", 8)
    refused = await batch_ack(peer, [lent[0], lent[8]])
    assert (refused.code, refused.remark) == (
        ResponseCode.SYSTEM_ERROR,
        "a batch names messages of one POP that are 9 offsets apart: the limit is 8",
    )
    (await batch_ack(peer, lent[:8])).require_success()
    await stage.at(20.0)
    assert sorted((await pop(peer)).bodies) == sorted(message.body for message in lent[8:])
