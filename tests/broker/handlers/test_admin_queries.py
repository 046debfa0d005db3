"""Queries of administration tools: connections, progress of groups, stored data."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rewindmq.broker.config import BrokerRole
from rewindmq.broker.handlers import query_consume_queue
from rewindmq.broker.handlers.shared import group_progress
from rewindmq.broker.limits import MAX_CONSUME_QUEUE_ENTRIES
from rewindmq.protocol.body.connection import ProducerConnection, ProducerTableInfo
from rewindmq.protocol.body.group import SubscriptionGroupConfig
from rewindmq.protocol.body.heartbeat import ConsumerData, HeartbeatData
from rewindmq.protocol.body.kv import KVTable
from rewindmq.protocol.body.registration import TopicConfig
from rewindmq.protocol.body.stats import (
    ConsumeStats,
    ConsumeStatsList,
    QueryConsumeQueueResponseBody,
    QueryConsumeTimeSpanBody,
)
from rewindmq.protocol.body.topic_list import TopicList
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.header.admin import (
    CreateTopicRequestHeader,
    DeleteTopicRequestHeader,
    GetConsumeStatsInBrokerHeader,
    GetConsumeStatsRequestHeader,
    GetProducerConnectionListRequestHeader,
    GetSubscriptionGroupConfigRequestHeader,
    GetTopicConfigRequestHeader,
    QueryConsumeQueueRequestHeader,
    QueryConsumeTimeSpanRequestHeader,
)
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.subscription import build_subscription_data
from rewindmq.protocol.text import java_hash
from rewindmq.race.sim.world import EPOCH_MS
from tests.support.fixtures import RunScenario, simulated
from tests.support.peer import Peer
from tests.support.stage import SimStage


async def ask(peer: Peer, code: int, header: Any, body_type: Any) -> Any:
    return decode_body((await peer.ask(code, header)).require_success(), body_type)


@simulated()
async def test_204_and_328_list_producers(stage: SimStage) -> None:
    peer = stage.peer("c7")
    await peer.heartbeat(producers=("P",))
    await stage.at(5.0)
    header = GetProducerConnectionListRequestHeader("P")
    body = await ask(peer, RequestCode.GET_PRODUCER_CONNECTION_LIST, header, ProducerConnection)
    (member,) = body.connection_set
    assert (member.client_id, member.language, member.version) == ("c7", "JAVA", 401)
    table = await ask(peer, RequestCode.GET_ALL_PRODUCER_INFO, None, ProducerTableInfo)
    (info,) = table.data["P"]
    assert (info.client_id, info.remote_ip) == ("c7", f"/{member.client_addr}")
    assert info.last_update_timestamp == EPOCH_MS


@simulated()
async def test_204_of_a_group_without_producers(stage: SimStage) -> None:
    header = GetProducerConnectionListRequestHeader("P")
    answer = await stage.peer().ask(RequestCode.GET_PRODUCER_CONNECTION_LIST, header)
    assert (answer.code, answer.remark) == (1, "the producer group[P] not exist")


@simulated()
async def test_GET_SYSTEM_TOPIC_LIST_FROM_BROKER_names_system_topics_not_created_yet(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic()
    body = await ask(peer, RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER, None, TopicList)
    assert {"broker-a", "DefaultCluster", "TBW102", "RMQ_SYS_TRANS_HALF_TOPIC"} <= set(body.topic_list)
    assert "T" not in body.topic_list


@pytest.mark.parametrize("profile", [Profile.V42, Profile.V49, Profile.V53])
@simulated()
async def test_CHECKPOINT_TOPIC_is_a_system_topic_of_5x_only(stage: SimStage, profile: Profile) -> None:
    """5.3.3 ``TopicValidator``: listed, neither created nor deleted on request, and yet open to sends."""
    is_reserved = profile is Profile.V53
    peer, topic = stage.peer(), "CHECKPOINT_TOPIC"
    names = await ask(peer, RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER, None, TopicList)
    assert (topic in names.topic_list) == is_reserved
    refusal = f"The topic[{topic}] is conflict with system topic." if is_reserved else None
    header = CreateTopicRequestHeader(topic, "TBW102", 4, 4, 6, "SINGLE_TAG")
    created = await peer.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, header)
    assert (created.code != 0, created.remark) == (is_reserved, refusal)
    deleted = await peer.ask(RequestCode.DELETE_TOPIC_IN_BROKER, DeleteTopicRequestHeader(topic))
    assert (deleted.code != 0, deleted.remark) == (is_reserved, refusal)
    (await peer.send(topic)).require_success()


@simulated(profile=Profile.V53)
async def test_351_returns_the_settings_of_a_topic(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic(write=3, read=5)
    header = GetTopicConfigRequestHeader("T")
    topic = await ask(peer, RequestCode.GET_TOPIC_CONFIG, header, TopicConfig)
    assert (topic.topic_name, topic.write_queue_nums, topic.read_queue_nums) == ("T", 3, 5)
    absent = await peer.ask(RequestCode.GET_TOPIC_CONFIG, GetTopicConfigRequestHeader("nix"))
    assert (absent.code, absent.remark) == (17, "No topic in this broker. topic: nix")


@pytest.mark.parametrize("may_create", [True, False])
def test_352_creates_a_group_where_groups_may_be_created(simulate: RunScenario, may_create: bool) -> None:
    async def scenario(stage: SimStage) -> None:
        header = GetSubscriptionGroupConfigRequestHeader("G")
        answer = await stage.peer().ask(RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, header)
        if may_create:
            assert decode_body(answer.require_success(), SubscriptionGroupConfig).group_name == "G"
        else:
            assert (answer.code, answer.remark) == (26, "No group in this broker")
        assert (stage.broker.context.tables.groups.get("G") is not None) is may_create

    simulate(scenario, profile=Profile.V53, auto_create_subscription_group=may_create)


@simulated()
async def test_321_returns_the_entries_of_a_consume_queue(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic()
    for tag in "ABC":
        (await peer.send(properties={"TAGS": tag})).require_success()
    await peer.heartbeat(expression="A||B")
    header = QueryConsumeQueueRequestHeader("T", 0, 1, 5, "G")
    body = await ask(peer, RequestCode.QUERY_CONSUME_QUEUE, header, QueryConsumeQueueResponseBody)
    assert (body.min_queue_index, body.max_queue_index) == (0, 3)
    assert [entry.tags_code for entry in body.queue_data] == [java_hash("B"), java_hash("C")]
    first, second = body.queue_data
    assert second.physic_offset == first.physic_offset + first.physic_size
    assert body.subscription_data.tags_set == {"A", "B"}
    assert body.filter_data == "null"


@simulated(enable_property_filter=True)
async def test_321_returns_the_subscription_of_a_group_or_that_it_is_offline(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic()
    await peer.fill(1)
    subscription = build_subscription_data("T", "a > 1", "SQL92", sub_version=7)
    members = [ConsumerData("G", subscription_data_set=[subscription])]
    (await peer.ask(RequestCode.HEART_BEAT, body=HeartbeatData("c1", [], members))).require_success()
    for group, words in (("G", '"expression":"a > 1"'), ("H", "H@T is not online!")):
        header = QueryConsumeQueueRequestHeader("T", 0, 0, 1, group)
        body = await ask(peer, RequestCode.QUERY_CONSUME_QUEUE, header, QueryConsumeQueueResponseBody)
        assert words in body.filter_data


@pytest.mark.parametrize(
    ("topic", "queue_id", "index", "remark"),
    [
        ("nix", 0, 0, "0@nix is not exist!"),
        ("T", 1, 0, "1@T is not exist!"),
        ("T", 0, 2, "Index 2 of 0@T is not exist!"),
        ("T", 0, -1, "Index -1 of 0@T is not exist!"),
    ],
)
@simulated()
async def test_321_refuses_an_unknown_queue_or_index(
    stage: SimStage, topic: str, queue_id: int, index: int, remark: str
) -> None:
    peer = stage.peer()
    await peer.create_topic()
    await peer.fill(2)
    header = QueryConsumeQueueRequestHeader(topic, queue_id, index, MAX_CONSUME_QUEUE_ENTRIES + 1)
    answer = await peer.ask(RequestCode.QUERY_CONSUME_QUEUE, header)
    assert (answer.code, answer.remark) == (1, remark)


def test_321_limits_the_number_of_entries(simulate: RunScenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_consume_queue, "MAX_CONSUME_QUEUE_ENTRIES", 2)

    async def scenario(stage: SimStage) -> None:
        peer = stage.peer()
        await peer.create_topic()
        await peer.fill(4)
        header = QueryConsumeQueueRequestHeader("T", 0, 1, 0x7FFF_FFFF)
        body = await ask(peer, RequestCode.QUERY_CONSUME_QUEUE, header, QueryConsumeQueueResponseBody)
        assert len(body.queue_data) == 2

    simulate(scenario)


@simulated()
async def test_303_returns_the_times_of_a_group_that_lags(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic(write=3, read=3)
    for second in (10.0, 20.0, 30.0):
        await stage.at(second)
        await peer.fill(1)
        await peer.fill(1, queue_id=1)
    await peer.commit(2)
    await stage.at(40.0)
    header = QueryConsumeTimeSpanRequestHeader("T", "G")
    body = await ask(peer, RequestCode.QUERY_CONSUME_TIME_SPAN, header, QueryConsumeTimeSpanBody)
    begun, fresh, empty = body.consume_time_span_set
    first = begun.min_time_stamp
    assert begun.max_time_stamp == first + 20_000
    assert begun.consume_time_stamp == first + 10_000
    assert begun.delay_time == 10_000
    assert begun.consume_time_stamp_str.endswith(f":{(first + 10_000) % 1_000:03}")
    assert (fresh.consume_time_stamp, fresh.delay_time) == (first, 30_000)
    assert (empty.min_time_stamp, empty.max_time_stamp, empty.delay_time) == (-1, -1, 0)
    stage.world.wall_ahead_ms = -3_600_000
    body = await ask(peer, RequestCode.QUERY_CONSUME_TIME_SPAN, header, QueryConsumeTimeSpanBody)
    assert [span.delay_time for span in body.consume_time_span_set] == [0, 0, 0]
    absent = await peer.ask(
        RequestCode.QUERY_CONSUME_TIME_SPAN, QueryConsumeTimeSpanRequestHeader("nix", "G")
    )
    assert (absent.code, absent.remark) == (17, "topic[nix] not exist")


@simulated()
async def test_317_lists_every_group_in_every_topic(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic(write=1, read=1)
    await peer.fill(3)
    for group, offset in (("G", 1), ("H", 3)):
        stage.broker.context.tables.groups.find(group)
        await peer.commit(offset, group=group)
    header = GetConsumeStatsInBrokerHeader(is_order=False)
    body = await ask(peer, RequestCode.GET_BROKER_CONSUME_STATS, header, ConsumeStatsList)
    assert body.total_diff == 2
    queue = MessageQueue("T", "broker-a", 0)
    found = {
        group: one.offset_table[queue].consumer_offset
        for entry in body.consume_stats_list
        for group, stats in entry.items()
        for one in stats
    }
    assert found == {"G": 1, "H": 3}
    ordered = GetConsumeStatsInBrokerHeader(is_order=True)
    none = await ask(peer, RequestCode.GET_BROKER_CONSUME_STATS, ordered, ConsumeStatsList)
    assert not any(stats for entry in none.consume_stats_list for stats in entry.values())


def test_208_lists_a_topic_once_and_lets_other_requests_pass(
    simulate: RunScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_progress, "QUEUES_PER_SLICE", 10)

    async def scenario(stage: SimStage) -> None:
        peer, bystander = stage.peer(), stage.peer("c2")
        await peer.create_topic(write=3_000, read=3_000)
        header = GetConsumeStatsRequestHeader("G", topic_list=";".join(["T"] * 50))
        answer = asyncio.ensure_future(ask(peer, RequestCode.GET_CONSUME_STATS, header, ConsumeStats))
        stats = await answer
        assert len(stats.offset_table) == 3_000
        # The broker reads a slice of the queues at a time, and serves the heartbeat between two slices.
        answer = asyncio.ensure_future(ask(peer, RequestCode.GET_CONSUME_STATS, header, ConsumeStats))
        order: list[str] = []
        answer.add_done_callback(lambda _: order.append("208"))
        await bystander.heartbeat()
        order.append("heartbeat")
        await answer
        assert order == ["heartbeat", "208"]

    simulate(scenario)


@simulated()
async def test_208_and_317_refuse_a_response_larger_than_a_frame(
    stage: SimStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer = stage.peer()
    await peer.create_topic(write=8, read=8)
    await peer.commit(0)
    stage.broker.context.tables.groups.find("G")
    for code, header in (
        (RequestCode.GET_CONSUME_STATS, GetConsumeStatsRequestHeader("G", "T")),
        (RequestCode.GET_BROKER_CONSUME_STATS, GetConsumeStatsInBrokerHeader(is_order=False)),
    ):
        (await peer.ask(code, header)).require_success()
        monkeypatch.setattr(group_progress, "MAX_PROGRESS_QUEUES", 7)
        refused = await peer.ask(code, header)
        assert refused.code == ResponseCode.SYSTEM_ERROR
        assert "more than 7 queues: ask for one group" in (refused.remark or "")
        monkeypatch.undo()


@pytest.mark.parametrize(("profile", "pulled"), [(Profile.V49, None), (Profile.V53, 1)])
@simulated()
async def test_tools_of_5x_count_nothing_in_flight(
    stage: SimStage, profile: Profile, pulled: int | None
) -> None:
    """They subtract the offset consumed from the one pulled, which 0 must not stand for."""
    peer = stage.peer()
    await peer.create_topic(write=1, read=1)
    await peer.fill(3)
    stage.broker.context.tables.groups.find("G")
    await peer.commit(1)
    header = GetConsumeStatsRequestHeader("G")
    stats = await ask(peer, RequestCode.GET_CONSUME_STATS, header, ConsumeStats)
    (entry,) = stats.offset_table.values()
    assert (entry.consumer_offset, entry.pull_offset) == (1, pulled)


@simulated()
async def test_28_counts_pulls_with_and_without_messages(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic()
    await peer.fill(4)
    for offset in (0, 4, 4):
        await peer.pull(offset)
    await stage.at(10.5)
    table = (await ask(peer, RequestCode.GET_BROKER_RUNTIME_INFO, None, KVTable)).table
    found, missed, both = (
        float(table[key].split()[2]) for key in ("getFoundTps", "getMissTps", "getTotalTps")
    )
    assert (found, missed, both) == pytest.approx((0.1, 0.2, 0.3))
    assert table["putMessageTimesTotal"] == "4"
    assert int(table["putMessageSizeTotal"]) == stage.broker.context.store.max_commit_log_offset
    assert "brokerActive" not in table


@simulated()
async def test_28_returns_the_unflushed_bytes_in_a_readable_unit(stage: SimStage) -> None:
    """As ``MixAll#humanReadableByteCount`` words it."""
    peer = stage.peer()
    store = stage.broker.context.store

    async def remaining() -> tuple[str, int]:
        table = (await ask(peer, RequestCode.GET_BROKER_RUNTIME_INFO, None, KVTable)).table
        return table["remainHowManyDataToFlush"], store.max_commit_log_offset - store.flushed_offset

    await peer.create_topic()
    store.flush()
    assert await remaining() == ("0 B", 0)
    await peer.fill(1)
    text, size = await remaining()
    assert 0 < size < 1_024
    assert text == f"{size} B"
    await peer.fill(20)
    text, size = await remaining()
    assert size > 2_048
    assert text == f"{size / 1_024:.1f} KiB"


@pytest.mark.parametrize(("role", "active"), [(BrokerRole.ASYNC_MASTER, "true"), (BrokerRole.SLAVE, "false")])
def test_28_of_5x_says_whether_the_broker_is_active(
    simulate: RunScenario, role: BrokerRole, active: str
) -> None:
    """Only a master delivers delayed messages and checks transactions; clusterList shows it."""

    async def scenario(stage: SimStage) -> None:
        table = (await ask(stage.peer(), RequestCode.GET_BROKER_RUNTIME_INFO, None, KVTable)).table
        assert (table["brokerActive"], table["ackThreadPoolQueueSize"]) == (active, "0")

    simulate(scenario, profile=Profile.V53, broker_role=role, broker_id=int(role is BrokerRole.SLAVE))


@simulated()
async def test_an_unknown_code_is_refused_and_the_connection_stays(stage: SimStage) -> None:
    """Codes of access control: RocketMQ without it leaves 52 and 54 unanswered, on which tools wait."""
    peer = stage.peer()
    for code in (50, 51, 52, 53, 54):
        answer = await peer.ask(code)
        assert answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
        assert answer.remark == f" request type {code} not supported"
