"""consumerStatus, getConsumerStatus and queryMsgById -d: requests that brokers pass on to consumers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rewindmq import (
    ConsumeConcurrentlyStatus,
    Message,
    MessageExt,
    MessageQueue,
    Producer,
    PullConsumer,
)
from rewindmq.client.admin.running_info_report import (
    find_trouble,
    format_running_info,
    have_same_subscriptions,
)
from rewindmq.client.consume.running_info import InfoProperty
from rewindmq.protocol.body.heartbeat import SubscriptionData
from rewindmq.protocol.body.running_info import CMResult, ConsumerRunningInfo, ProcessQueueInfo
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import ClientError, ResponseError
from rewindmq.protocol.profile import RELEASES, Profile
from tests.client.admin.support import GROUP, TOPIC, new_consumer
from tests.support.fixtures import RunScenario, played
from tests.support.stage import SimStage

Q0, Q1 = MessageQueue(TOPIC, "broker-a", 0), MessageQueue(TOPIC, "broker-a", 1)
ROW = "%-10s %-40s %-20s %s"
NOW = 1_700_000_000_000

pytestmark = pytest.mark.usefixtures("utc")


@pytest.mark.parametrize("profile", RELEASES)
@played()
async def test_consumer_status_lists_consumers_and_finds_equal_subscriptions(
    stage: SimStage, profile: Profile
) -> None:
    await stage.create_topic(TOPIC, 2)
    await stage.send(3, TOPIC)
    async with new_consumer(stage) as consumer:
        await stage.world.sleep(20)
        lines = await stage.run(f"consumerStatus -g {GROUP}")
        version = {"v42": "V4_2_0_SNAPSHOT", "v49": "V4_9_4", "v53": "V5_3_3"}[profile]
        assert lines[:2] == [
            ROW % ("#Index", "#ClientId", "#Version", "#ConsumerRunningInfoFile"),
            ROW % (1, consumer.client_id, version, "-"),
        ]
        assert lines[2:] == [
            "",
            "",
            "Same subscription in the same group of consumer",
            "",
            "Rebalance OK",
        ]


@played()
async def test_running_info_has_settings_subscriptions_queues_and_rates(stage: SimStage) -> None:
    await stage.create_topic(TOPIC, 2)
    await stage.send(60, TOPIC, gap=0.1)
    async with new_consumer(stage) as consumer:
        await stage.world.sleep(31)
        admin = await stage.admin()
        info = await admin.groups.get_consumer_running_info(GROUP, consumer.client_id)
        assert info.properties[InfoProperty.CONSUME_TYPE] == "CONSUME_PASSIVELY"
        assert info.properties[InfoProperty.CONSUME_ORDERLY] == "false"
        assert info.properties[InfoProperty.NAMESERVER_ADDR] == "10.0.0.1:9876;"
        assert info.properties["consumeMessageBatchMaxSize"] == "1"
        assert info.properties["allocateStrategy"] == "AllocateAveragely"
        assert [item.topic for item in info.subscription_set] == [f"%RETRY%{GROUP}", TOPIC]
        assert {Q0, Q1} < info.mq_table.keys()
        q0 = info.mq_table[Q0]
        assert (q0.commit_offset, q0.cached_msg_count, q0.droped) == (60, 0, False)
        status = info.status_table[TOPIC]
        # 120 messages in the 30 s since the consumer was created.
        assert status.consume_ok_tps == status.pull_tps == pytest.approx(4, rel=0.05)
        assert (status.consume_failed_tps, status.consume_failed_msgs) == (0, 0)
        assert status.pull_rt > 0
        assert info.jstack is None
        lines = await stage.run(f"consumerStatus -g {GROUP} -i {consumer.client_id} -s")
        assert "#Consumer Properties#" in lines
        assert "#Consumer jstack#" in lines
        assert any("stack_dump" in line for line in lines)


def test_files_are_written_only_on_request(
    play: RunScenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    async def scenario(stage: SimStage) -> None:
        await stage.create_topic(TOPIC, 2)
        before = entries(tmp_path)
        async with new_consumer(stage) as consumer:
            await stage.world.sleep(20)
            await stage.run(f"consumerStatus -g {GROUP}")
            assert entries(tmp_path) == before
            lines = await stage.run(f"consumerStatus -g {GROUP} -d infos")
            written = tmp_path / "infos" / consumer.client_id
            assert lines[1].split()[-1] == f"infos/{consumer.client_id}"
            assert written.read_text().startswith("#Consumer Properties#\n")
            (tmp_path / "file").touch()
            with pytest.raises(ClientError, match="cannot write file/"):
                await stage.run(f"consumerStatus -g {GROUP} -d file")

    play(scenario)


@played()
async def test_consumer_status_as_json(stage: SimStage) -> None:
    await stage.create_topic(TOPIC, 2)
    async with new_consumer(stage) as consumer:
        await stage.world.sleep(20)
        data = await stage.data(f"consumerStatus -g {GROUP} -i {consumer.client_id}")
        assert data["clientId"] == consumer.client_id
        assert {queue["queueId"] for queue in data["queues"] if queue["topic"] == TOPIC} == {0, 1}
        json.dumps(data)


@played()
async def test_an_offline_group_and_an_unknown_client_are_refused(stage: SimStage) -> None:
    await stage.create_topic(TOPIC, 2)
    async with new_consumer(stage):
        await stage.world.sleep(5)
        with pytest.raises(ResponseError) as refused:
            await stage.run(f"consumerStatus -g {GROUP} -i unknown")
        assert str(refused.value) == f"CODE: 1  DESC: The Consumer <{GROUP}> <unknown> not online"
    await stage.world.sleep(1)
    with pytest.raises(ResponseError) as refused:
        await stage.run(f"consumerStatus -g {GROUP}")
    assert refused.value.code == ResponseCode.CONSUMER_NOT_ONLINE
    with pytest.raises(ResponseError, match="No Any Consumer online"):
        await stage.run(f"getConsumerStatus -g {GROUP} -t {TOPIC}")


@played()
async def test_consumer_progress_names_the_consumer_that_owns_each_queue(stage: SimStage) -> None:
    await stage.create_topic(TOPIC, 2)
    await stage.send(1, TOPIC)
    async with new_consumer(stage):
        await stage.world.sleep(20)
        lines = await stage.run(f"consumerProgress -g {GROUP} -s true")
        rows = [line.split() for line in lines if line.startswith(TOPIC)]
        assert {row[5] for row in rows} == {"10.0.2.1"}


# getConsumerStatus.


@pytest.mark.parametrize("profile", RELEASES)
@played()
async def test_consumers_report_the_offsets_they_have_in_memory(stage: SimStage, profile: Profile) -> None:
    await stage.create_topic(TOPIC, 2)
    await stage.send(3, TOPIC)
    async with new_consumer(stage) as first, new_consumer(stage, host="10.0.2.2") as second:
        await stage.world.sleep(45)
        lines = await stage.run(f"getConsumerStatus -g {GROUP} -t {TOPIC}")
        assert lines[0] == f"get consumer status from client. group={GROUP}, topic={TOPIC}, originClientId="
        row = "%-50s  %-15s  %-15s  %-20s"
        assert lines[1] == row % ("#clientId", "#brokerName", "#queueId", "#offset")
        owner = {queue: consumer for consumer in (first, second) for queue in consumer.process_queues}
        assert lines[2:] == [
            row % (owner[queue].client_id, "broker-a", queue.queue_id, 3)
            for queue in sorted((Q0, Q1), key=lambda queue: (owner[queue].client_id, queue))
        ]
        only = await stage.data(f"getConsumerStatus -g {GROUP} -t {TOPIC} -i {second.client_id}")
        assert {entry["clientId"] for entry in only} == {second.client_id}
        with pytest.raises(ResponseError, match="not online"):
            await stage.run(f"getConsumerStatus -g {GROUP} -t {TOPIC} -i unknown")


def entries(folder: Path) -> set[Path]:
    return set(folder.iterdir())


# CONSUME_MESSAGE_DIRECTLY (309).


async def message_id(stage: SimStage) -> str:
    """Send a message, and return its offset id."""
    runtime = stage.world.runtime("10.0.9.5")
    async with Producer("ids", stage.namesrv, runtime=runtime, profile=stage.profile) as producer:
        return (await producer.send(Message(TOPIC, b"that one"))).offset_msg_id


# A listener's return value or exception, the result that the client reports for it, and its remark.
RESULTS = (
    (ConsumeConcurrentlyStatus.CONSUME_SUCCESS, CMResult.CR_SUCCESS, None),
    (ConsumeConcurrentlyStatus.RECONSUME_LATER, CMResult.CR_LATER, None),
    (None, CMResult.CR_RETURN_NULL, None),
    (ValueError("no"), CMResult.CR_THROW_EXCEPTION, "ValueError, no"),
)


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize(("returned", "result", "remark"), RESULTS)
@played()
async def test_consume_message_directly_returns_the_listeners_result(
    stage: SimStage,
    returned: ConsumeConcurrentlyStatus | Exception | None,
    result: CMResult,
    remark: str | None,
    plain: bool,
) -> None:
    await stage.create_topic(TOPIC, 1)
    bodies = []

    def listener(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus | None:
        bodies.append(messages[0].body)
        # The first call is the ordinary delivery.
        if len(bodies) == 1:
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS
        if isinstance(returned, Exception):
            raise returned
        return returned

    async def slow_listener(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus | None:
        await stage.world.sleep(0.25)
        return listener(messages)

    async with new_consumer(stage, listener=listener if plain else slow_listener) as consumer:
        await stage.world.sleep(5)
        wanted = await message_id(stage)
        await stage.world.sleep(30)
        assert stage.stored_offset(Q0, GROUP) == 1
        admin = await stage.admin()
        answer = await admin.groups.consume_message_directly(GROUP, consumer.client_id, wanted)
        assert (answer.consume_result, answer.remark, answer.order) == (result, remark, False)
        assert answer.spent_time_mills == (0 if plain else 250)
        assert bodies == [b"that one"] * 2
        # The direct call is not a delivery: no message is retried, and no offset moves.
        await stage.world.sleep(30)
        assert (stage.stored_offset(Q0, GROUP), len(bodies)) == (1, 2)


@played()
async def test_query_msg_by_id_passes_messages_to_a_listener_and_prints_its_results(stage: SimStage) -> None:
    await stage.create_topic(TOPIC, 1)
    async with new_consumer(stage) as consumer:
        await stage.world.sleep(5)
        wanted = await message_id(stage)
        await stage.world.sleep(30)
        line = f"queryMsgById -i {wanted},{wanted} -g {GROUP} -d {consumer.client_id}"
        result = (
            "ConsumeMessageDirectlyResult [order=false, autoCommit=true, consumeResult=CR_SUCCESS,"
            " remark=null, spentTimeMills=0]"
        )
        assert await stage.run(line) == [result, result]
        assert stage.consumed == [(Q0, 0)] * 3
        with pytest.raises(ClientError, match="-g and -d go together"):
            await stage.run(f"queryMsgById -i {wanted} -g {GROUP}")


@played()
async def test_a_slow_listener_fails_with_207_and_goes_on(stage: SimStage) -> None:
    await stage.create_topic(TOPIC, 1)
    ended = []

    async def listener(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        await stage.world.sleep(15)
        ended.append(stage.world.now)
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    async with new_consumer(stage, listener=listener) as consumer:
        await stage.world.sleep(5)
        wanted = await message_id(stage)
        await stage.world.sleep(30)
        admin = await stage.admin()
        began = stage.world.now
        with pytest.raises(ResponseError) as refused:
            await admin.groups.consume_message_directly(GROUP, consumer.client_id, wanted)
        assert refused.value.code == ResponseCode.CONSUME_MSG_TIMEOUT
        assert stage.world.now - began == pytest.approx(10, abs=0.2)
        await stage.world.sleep(6)
        assert len(ended) == 2


@played()
async def test_consume_message_directly_is_refused_with_the_reason(stage: SimStage) -> None:
    await stage.create_topic(TOPIC, 1)
    wanted = await message_id(stage)
    nothing_there = wanted[:-2] + "FF"
    runtime = stage.world.runtime("10.0.2.7")
    puller = PullConsumer("pullers", stage.namesrv, runtime=runtime, profile=stage.profile)
    puller.register_topic(TOPIC)
    async with new_consumer(stage) as consumer, puller:
        await stage.world.sleep(5)
        admin = await stage.admin()
        for group, client_id, message, expected in (
            (GROUP, consumer.client_id, "no id", "is not an offset message id"),
            (GROUP, consumer.client_id, nothing_there, "can not find message by the offset"),
            (GROUP, "unknown", wanted, f"The Consumer <{GROUP}> <unknown> not online"),
            ("pullers", puller.client_id, wanted, "has no listener"),
        ):
            with pytest.raises(ResponseError, match=expected) as refused:
                await admin.groups.consume_message_directly(group, client_id, message)
            assert refused.value.code == 1
        info = await admin.groups.get_consumer_running_info("pullers", puller.client_id)
        assert info.properties[InfoProperty.CONSUME_TYPE] == "CONSUME_ACTIVELY"
        assert [item.topic for item in info.subscription_set] == [TOPIC]


# The analysis of running info.


def running_info(topic: str = TOPIC, *, started: int = NOW - 200_000, **queue: Any) -> ConsumerRunningInfo:
    properties: dict[str, str] = {
        InfoProperty.CONSUME_TYPE: "CONSUME_PASSIVELY",
        InfoProperty.CONSUME_ORDERLY: "false",
        InfoProperty.CONSUMER_START_TIMESTAMP: str(started),
    }
    return ConsumerRunningInfo(properties, [SubscriptionData(topic, "*")], {Q0: ProcessQueueInfo(**queue)})


def test_different_subscriptions_are_found_after_two_minutes() -> None:
    settled = {"c1": running_info(), "c2": running_info("Other")}
    assert not have_same_subscriptions(settled, NOW)
    assert have_same_subscriptions({"c1": running_info(), "c2": running_info()}, NOW)
    young = {"c1": running_info(started=NOW - 100_000), "c2": running_info("Other")}
    assert have_same_subscriptions(young, NOW)


def test_queues_without_progress_are_found() -> None:
    blocked = running_info(cached_msg_count=3, last_consume_timestamp=NOW - 61_000)
    (finding,) = find_trouble("c1", blocked, NOW)
    assert finding.startswith("c1 MessageQueue [topic=TopicTest, brokerName=broker-a, queueId=0] ")
    assert finding.endswith("can't consume for a while, maybe blocked, 61000ms")
    recent = running_info(cached_msg_count=3, last_consume_timestamp=NOW - 59_000)
    assert find_trouble("c1", recent, NOW) == []
    assert find_trouble("c1", running_info(cached_msg_count=0, last_consume_timestamp=0), NOW) == []
    ordered = running_info(last_lock_timestamp=NOW - 5)
    ordered.properties[InfoProperty.CONSUME_ORDERLY] = "true"
    assert find_trouble("c1", ordered, NOW)[0].endswith("can't lock for a while, 5ms")
    ordered.mq_table[Q0] = ProcessQueueInfo(locked=True, droped=True, try_unlock_times=2)
    assert find_trouble("c1", ordered, NOW)[0].endswith("unlock 2 times, still failed")


@played()
async def test_a_blocked_listener_is_found(stage: SimStage) -> None:
    await stage.create_topic(TOPIC, 1)
    await stage.send(2, TOPIC)
    never_set = asyncio.Event()

    async def stuck(messages: Sequence[MessageExt]) -> None:
        await never_set.wait()

    async with new_consumer(stage, listener=stuck) as consumer:
        await stage.world.sleep(100)
        lines = await stage.run(f"consumerStatus -g {GROUP}")
        assert lines[-1].startswith(f"{consumer.client_id} MessageQueue [topic={TOPIC}")
        assert "maybe blocked" in lines[-1]


def test_formatted_running_info_has_the_figures_of_a_queue() -> None:
    info = running_info(commit_offset=7, cached_msg_count=2, last_pull_timestamp=NOW)
    lines = format_running_info(info)
    (row,) = (line for line in lines if "ProcessQueueInfo [" in line)
    assert row.split()[:3] == [TOPIC, "broker-a", "0"]
    assert "commitOffset=7" in row
    assert "cachedMsgCount=2" in row
    assert "lastPullTimestamp=20231114221320000" in row
