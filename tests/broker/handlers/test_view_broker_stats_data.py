"""VIEW_BROKER_STATS_DATA (315): what sends, pulls and messages sent back leave in the statistics."""

from __future__ import annotations

import pytest

from rewindmq.protocol.body.stats import BrokerStatsData, BrokerStatsItem, ConsumeStats
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import SerializeType
from rewindmq.protocol.header.admin import (
    DeleteSubscriptionGroupRequestHeader,
    DeleteTopicRequestHeader,
    GetConsumeStatsRequestHeader,
    ViewBrokerStatsDataRequestHeader,
)
from rewindmq.protocol.header.message import ConsumerSendMsgBackRequestHeader
from rewindmq.protocol.message import Message
from rewindmq.protocol.message.batch import encode_batch
from rewindmq.protocol.profile import Profile
from tests.support.answers import body_of
from tests.support.fixtures import simulated
from tests.support.peer import Peer
from tests.support.stage import ServerStage, SimStage

CODE = RequestCode.VIEW_BROKER_STATS_DATA
CLUSTER = "DefaultCluster"
NOTHING = BrokerStatsItem(0, 0.0, 0.0)


async def view(peer: Peer, name: str, key: str) -> BrokerStatsData:
    answer = await peer.ask(CODE, ViewBrokerStatsDataRequestHeader(name, key))
    return decode_body(answer.require_success(), BrokerStatsData)


async def sums(peer: Peer, *statistics: tuple[str, str]) -> list[int | None]:
    """The sum of the last minute of each statistic; None where the broker has none."""
    found: list[int | None] = []
    for name, key in statistics:
        answer = await peer.ask(CODE, ViewBrokerStatsDataRequestHeader(name, key))
        found.append(decode_body(answer, BrokerStatsData).stats_minute.sum if answer.code == 0 else None)
    return found


@pytest.mark.parametrize("serialize_type", list(SerializeType))
async def test_a_new_statistic_is_there_at_once_and_an_unknown_one_refused(
    stage: ServerStage, serialize_type: SerializeType
) -> None:
    await stage.start_broker()
    peer = stage.peer(serialize_type=serialize_type)
    await peer.fill(1)
    found = await view(peer, "TOPIC_PUT_NUMS", "T")
    assert found == BrokerStatsData(NOTHING, NOTHING, NOTHING)
    for name, key in (
        ("GROUP_GET_NUMS", "T@G"),
        ("TOPIC_PUT_NUMS", "U"),
        ("nix", "T"),
        ("T", "TOPIC_PUT_NUMS"),
    ):
        answer = await peer.ask(CODE, ViewBrokerStatsDataRequestHeader(name, key))
        assert (answer.code, answer.remark) == (1, f"The stats <{name}> <{key}> not exist")
    missing = await peer.ask(CODE, statsName="TOPIC_PUT_NUMS")
    assert (missing.code, missing.remark) == (1, "The stats <TOPIC_PUT_NUMS> <null> not exist")


@simulated()
async def test_sends_and_pulls_are_counted(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic()
    await peer.heartbeat()
    await peer.fill(4)
    await peer.fill(2, queue_id=1)
    size = stage.broker.context.store.max_commit_log_offset
    taken = len(body_of(await peer.pull(0)))
    await peer.pull(4)
    await peer.pull(1, queue_id=1)
    await stage.at(10.5)
    assert (await view(peer, "TOPIC_PUT_NUMS", "T")).stats_minute == BrokerStatsItem(6, 0.6, 1.0)
    assert (await view(peer, "TOPIC_PUT_SIZE", "T")).stats_minute.sum == size
    assert (await view(peer, "GROUP_GET_NUMS", "T@G")).stats_minute == BrokerStatsItem(5, 0.5, 2.5)
    got = (await view(peer, "GROUP_GET_SIZE", "T@G")).stats_minute.sum
    assert got == taken + size // 6
    assert (await view(peer, "GROUP_GET_LATENCY", "1@T@G")).stats_minute == NOTHING
    assert (await view(peer, "BROKER_PUT_NUMS", CLUSTER)).stats_minute == BrokerStatsItem(6, 0.6, 0.0)
    assert (await view(peer, "BROKER_GET_NUMS", CLUSTER)).stats_minute == BrokerStatsItem(5, 0.5, 0.0)
    header = GetConsumeStatsRequestHeader("G")
    await peer.commit(1)
    stats = decode_body(await peer.ask(RequestCode.GET_CONSUME_STATS, header), ConsumeStats)
    assert stats.consume_tps == 0.5


@simulated()
async def test_the_windows_fill_after_ten_seconds_ten_minutes_and_an_hour(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic()
    await peer.fill(3)
    empty = []
    for second in (9.0, 11.0, 599.0, 601.0, 3_599.0, 3_601.0):
        await stage.at(second)
        found = await view(peer, "TOPIC_PUT_NUMS", "T")
        empty.append([item.sum == 0 for item in (found.stats_minute, found.stats_hour, found.stats_day)])
    assert empty == [
        [True, True, True],
        [False, True, True],
        [True, True, True],
        [True, False, True],
        [True, False, True],
        [True, False, False],
    ]
    assert found.stats_day.tps == pytest.approx(3 / 3_600)


@simulated()
async def test_a_batch_is_one_request_of_several_messages(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic()
    batch = encode_batch([Message("T", b"x")] * 5)
    answer = await peer.send(body=batch, code=RequestCode.SEND_BATCH_MESSAGE, batch=True)
    answer.require_success()
    await peer.fill(1)
    await stage.at(10.5)
    assert (await view(peer, "TOPIC_PUT_NUMS", "T")).stats_minute == BrokerStatsItem(6, 0.6, 3.0)


@simulated()
async def test_refused_sends_are_not_counted(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic()
    assert (await peer.send(queue_id=99)).code != 0
    assert (await peer.send(properties="x" * 40_000)).code != 0
    assert await sums(peer, ("TOPIC_PUT_NUMS", "T"), ("BROKER_PUT_NUMS", CLUSTER)) == [None, None]


@simulated()
async def test_a_delayed_message_counts_when_it_is_sent_and_when_it_is_due(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic()
    statistics = (
        ("TOPIC_PUT_NUMS", "SCHEDULE_TOPIC_XXXX"),
        ("QUEUE_PUT_NUMS", "SCHEDULE_TOPIC_XXXX@1"),
        ("QUEUE_GET_NUMS", "SCHEDULE_TOPIC_XXXX@1@SCHEDULE_CONSUMER"),
        ("GROUP_GET_NUMS", "SCHEDULE_TOPIC_XXXX@SCHEDULE_CONSUMER"),
        ("TOPIC_PUT_NUMS", "T"),
        ("BROKER_PUT_NUMS", CLUSTER),
    )
    await stage.at(9.0)
    (await peer.send(properties={"DELAY": "2"})).require_success()
    await stage.at(10.5)
    assert await sums(peer, *statistics) == [1, 1, None, None, None, 1]
    await stage.at(20.5)
    assert await sums(peer, *statistics) == [1, 1, 1, 1, 1, 2]


@simulated()
async def test_a_message_sent_back_is_counted_for_its_topic_and_group(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic()
    await peer.heartbeat()
    await peer.fill(1)
    header = ConsumerSendMsgBackRequestHeader(0, "G", 0)
    (await peer.ask(RequestCode.CONSUMER_SEND_MSG_BACK, header)).require_success()
    await stage.at(10.5)
    assert await sums(
        peer,
        ("SNDBCK_PUT_NUMS", "T@G"),
        ("TOPIC_PUT_NUMS", "SCHEDULE_TOPIC_XXXX"),
        ("QUEUE_PUT_NUMS", "SCHEDULE_TOPIC_XXXX@2"),
        ("BROKER_PUT_NUMS", CLUSTER),
    ) == [1, 1, 1, 1]
    # The delayed copy was due at second 10.
    await stage.at(20.5)
    assert await sums(peer, ("TOPIC_PUT_NUMS", "%RETRY%G"), ("BROKER_PUT_NUMS", CLUSTER)) == [1, 2]


@pytest.mark.parametrize(("profile", "removed"), [(Profile.V49, False), (Profile.V53, True)])
@simulated()
async def test_5x_removes_the_statistics_of_a_deleted_topic_or_group(
    stage: SimStage, profile: Profile, removed: bool
) -> None:
    """The defaults of ``autoDeleteUnusedStats``."""
    peer = stage.peer()
    for topic in ("T", "U"):
        await peer.create_topic(topic)
        await peer.heartbeat(topics=(topic,))
        await peer.fill(1, topic)
        await peer.pull(0, topic)
    header = DeleteTopicRequestHeader("T")
    (await peer.ask(RequestCode.DELETE_TOPIC_IN_BROKER, header)).require_success()
    group = DeleteSubscriptionGroupRequestHeader("G")
    statistics = (
        ("TOPIC_PUT_NUMS", "T"),
        ("GROUP_GET_NUMS", "T@G"),
        ("TOPIC_PUT_NUMS", "U"),
        ("GROUP_GET_NUMS", "U@G"),
    )
    assert await sums(peer, *statistics) == ([None, None, 0, 0] if removed else [0, 0, 0, 0])
    (await peer.ask(RequestCode.DELETE_SUBSCRIPTIONGROUP, group)).require_success()
    assert await sums(peer, *statistics) == ([None, None, 0, None] if removed else [0, 0, 0, 0])


@simulated(auto_delete_unused_stats=True)
async def test_autoDeleteUnusedStats_of_brokerConf_wins(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic()
    await peer.fill(1)
    header = DeleteTopicRequestHeader("T")
    (await peer.ask(RequestCode.DELETE_TOPIC_IN_BROKER, header)).require_success()
    assert await sums(peer, ("TOPIC_PUT_NUMS", "T")) == [None]


@simulated(profile=Profile.V53)
async def test_v53_counts_messages_outside_system_topics(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic()
    await peer.heartbeat(topics=("T", "RMQ_SYS_TRACE_TOPIC"))
    await peer.fill(3)
    await peer.fill(2, "RMQ_SYS_TRACE_TOPIC")
    await peer.pull(1)
    await peer.pull(0, "RMQ_SYS_TRACE_TOPIC")
    header = ConsumerSendMsgBackRequestHeader(0, "G", 0)
    (await peer.ask(RequestCode.CONSUMER_SEND_MSG_BACK, header)).require_success()
    await stage.at(9.0)
    (await peer.send(properties={"DELAY": "2"})).require_success()
    await stage.at(10.5)
    statistics = [
        ("BROKER_PUT_NUMS", CLUSTER),
        ("BROKER_PUT_NUMS_WITHOUT_SYSTEM_TOPIC", CLUSTER),
        ("BROKER_GET_NUMS", CLUSTER),
        ("BROKER_GET_NUMS_WITHOUT_SYSTEM_TOPIC", CLUSTER),
    ]
    # A delayed message is in a system topic; one that is sent back counts for no broker.
    assert await sums(peer, *statistics) == [6, 3, 4, 2]
    # Both are due by then, in topics of their own.
    await stage.at(30.5)
    assert await sums(peer, *statistics) == [8, 5, 4, 2]


@simulated(profile=Profile.V53)
async def test_v53_counts_connections_and_registrations(stage: SimStage) -> None:
    peer, other = stage.peer("one"), stage.peer("other")
    await peer.create_topic()
    registrations = (("CONSUMER_REGISTER_TIME", CLUSTER), ("PRODUCER_REGISTER_TIME", CLUSTER))
    assert await sums(peer, *registrations) == [None, None]
    await peer.heartbeat()
    assert await sums(peer, *registrations) == [0, None]
    await other.heartbeat()
    await other.client.close()
    await stage.at(10.5)
    connections = [("CHANNEL_ACTIVITY", event) for event in ("CONNECT", "CLOSE", "IDLE", "EXCEPTION")]
    assert await sums(peer, *connections) == [2, 1, None, None]


@simulated(profile=Profile.V53)
async def test_v53_counts_how_long_sends_to_each_queue_take(stage: SimStage) -> None:
    """5.3.3 names the queue that a delayed message was sent to, and the topic that it was stored in."""
    peer = stage.peer()
    await peer.create_topic()
    await peer.fill(2)
    batch = encode_batch([Message("T", b"x")] * 5)
    answer = await peer.send(queue_id=1, body=batch, code=RequestCode.SEND_BATCH_MESSAGE, batch=True)
    answer.require_success()
    assert (await peer.send(queue_id=99)).code != 0
    (await peer.send(queue_id=3, properties={"DELAY": "2"})).require_success()
    (await peer.send(queue_id=3, properties={"TRAN_MSG": "true", "PGROUP": "P"})).require_success()
    # The delayed message is delivered, which is no send.
    await stage.at(10.5)
    latencies = stage.broker.context.stats.items.put_latencies
    assert latencies is not None
    keys = {"0@T": 2, "1@T": 1, "3@SCHEDULE_TOPIC_XXXX": 1, "3@RMQ_SYS_TRANS_HALF_TOPIC": 1}
    assert {key: item.times for key, item in latencies.by_key.items()} == keys
    assert await sums(peer, *(("TOPIC_PUT_LATENCY", key) for key in keys)) == [0, 0, 0, 0]
    header = DeleteTopicRequestHeader("T")
    (await peer.ask(RequestCode.DELETE_TOPIC_IN_BROKER, header)).require_success()
    assert await sums(peer, *(("TOPIC_PUT_LATENCY", key) for key in keys)) == [None, None, 0, 0]


@simulated(profile=Profile.V53)
async def test_v53_counts_dead_letters_by_owner_topic_and_group(stage: SimStage) -> None:
    """Without a commercial client there is no owner; RocketMQ then writes ``null``."""
    peer = stage.peer()
    await peer.create_topic()
    await peer.heartbeat()
    await peer.fill(1)
    for level, origin in ((0, "T"), (-1, "T"), (-1, None)):
        header = ConsumerSendMsgBackRequestHeader(0, "G", level, origin_topic=origin)
        (await peer.ask(RequestCode.CONSUMER_SEND_MSG_BACK, header)).require_success()
    await stage.at(10.5)
    assert await sums(
        peer,
        ("SNDBCK2DLQ_TIMES", "null@T@G@SEND_BACK_TO_DLQ"),
        ("SNDBCK2DLQ_TIMES", "null@null@G@SEND_BACK_TO_DLQ"),
        ("SNDBCK_PUT_NUMS", "T@G"),
    ) == [1, 1, 3]


@simulated(profile=Profile.V53)
async def test_an_idle_connection_counts_as_idle_and_as_closed(stage: SimStage) -> None:
    silent = stage.peer("silent")
    await silent.heartbeat()
    await stage.at(125)
    peer = stage.peer()
    await peer.heartbeat()
    await stage.at(140)
    statistics = [("CHANNEL_ACTIVITY", event) for event in ("CONNECT", "CLOSE", "IDLE")]
    # The first connection was opened before the last minute.
    assert await sums(peer, *statistics) == [1, 1, 1]


@pytest.mark.parametrize("profile", [Profile.V42, Profile.V49])
@simulated()
async def test_releases_before_5_have_none_of_its_statistics(stage: SimStage, profile: Profile) -> None:
    peer = stage.peer()
    await peer.create_topic()
    await peer.heartbeat()
    await peer.fill(1)
    statistics = (
        ("BROKER_PUT_NUMS_WITHOUT_SYSTEM_TOPIC", CLUSTER),
        ("CONSUMER_REGISTER_TIME", CLUSTER),
        ("CHANNEL_ACTIVITY", "CONNECT"),
        ("TOPIC_PUT_LATENCY", "0@T"),
    )
    assert await sums(peer, *statistics) == [None] * len(statistics)
