"""Every command of ``rewindmq admin`` at a RocketMQ broker works, or reports an unsupported request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import pytest

from rewindmq import (
    AdminClient,
    ConsumeConcurrentlyStatus,
    ConsumeFromWhere,
    Message,
    MessageExt,
    Producer,
    PushConsumer,
    SendResult,
    TopicConfig,
)
from rewindmq.client.admin.commands.table import COMMANDS
from tools.interop.store_chain import PROFILES
from tools.interop.store_command import CommandLine
from tools.interop.store_mixed import CLUSTER, ROCKETMQ_BROKER, ROCKETMQ_NAMESRV, MixedClusters, is_chosen
from tools.interop.store_view import consumed, wait_dispatched

TOPIC, GROUP, GONE = "ruled", "ruled-readers", "ruled-gone"
QUEUES, COUNT = 2, 6
SECONDS = 300.0


@dataclass
class Place:
    """A topic at a RocketMQ broker, its messages, and a consumer that has consumed them."""

    release: str
    broker: str
    sent: list[SendResult]
    client_id: str
    tool: CommandLine


@asynccontextmanager
async def place_at(
    release: str, clusters: MixedClusters, capsys: pytest.CaptureFixture[str]
) -> AsyncIterator[Place]:
    cluster = clusters.get(release, ROCKETMQ_NAMESRV)
    namesrv, broker = cluster.namesrv_address, cluster.rocketmq.address
    async with AdminClient(namesrv) as admin:
        for topic in (TOPIC, GONE):
            config = TopicConfig(topic_name=topic, read_queue_nums=QUEUES, write_queue_nums=QUEUES)
            await admin.topics.create_and_update_topic_config(broker, config)
        async with asyncio.timeout(SECONDS):
            while not {TOPIC, GONE} <= {*await admin.topics.fetch_all_topic_list()}:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
    async with Producer("ruled-producer", namesrv, enable_msg_trace=True) as producer:
        queues = sorted(await producer.fetch_publish_message_queues(TOPIC))
        sent = [
            await producer.send(Message(TOPIC, b"body %d" % number, "TagA", f"key-{number}"), queue=queue)
            for number in range(COUNT)
            for queue in queues
        ]
    read = asyncio.Event()
    consumer = PushConsumer(GROUP, namesrv, consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)
    bodies: set[tuple[int, int]] = set()

    async def listen(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        bodies.update((message.queue_id, message.queue_offset) for message in messages)
        if len(bodies) >= len(sent):
            read.set()
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    consumer.subscribe(TOPIC)
    consumer.register_message_listener(listen)
    async with consumer:
        await asyncio.wait_for(read.wait(), SECONDS)
        async with asyncio.timeout(SECONDS):
            # The listener may not have returned from the last message yet.
            while await asyncio.to_thread(consumed, [broker], TOPIC, GROUP) < len(sent):
                await consumer.persist_offsets()
                await asyncio.sleep(0.1)
        await asyncio.to_thread(wait_dispatched, broker)
        yield Place(release, broker, sent, consumer.config.client_id, CommandLine(namesrv, capsys))


# Command, options, and a word of its output. The order matters: the last commands delete.
# {id} is the first message's unique id, {offset_id} its offset id, {client} the consumer's id.
WORKING: Final = (
    ("clusterList", "", ROCKETMQ_BROKER),
    ("clusterList", "-m", ROCKETMQ_BROKER),
    ("brokerStatus", "-b {broker}", "bootTimestamp"),
    ("statsAll", "", TOPIC),
    ("statsAll", f"-a -t {TOPIC}", "#OutMsg24Hour"),
    ("topicList", "", TOPIC),
    ("topicList", "-c", CLUSTER),
    ("topicRoute", f"-t {TOPIC}", ROCKETMQ_BROKER),
    ("topicStatus", f"-t {TOPIC}", ROCKETMQ_BROKER),
    ("updateTopic", f"-c {CLUSTER} -t {GONE} -r 3 -w 3", "readQueueNums=3"),
    ("updateTopicPerm", "-b {broker} -t " + GONE + " -p 4", "success"),
    ("updateSubGroup", "-b {broker} -g ruled-set -r 2", "success"),
    ("getConsumerConfig", "-g ruled-set", ROCKETMQ_BROKER),
    ("consumerProgress", f"-g {GROUP}", TOPIC),
    ("consumerProgress", "", GROUP),
    ("consumerConnection", f"-g {GROUP}", "{client}"),
    ("consumerStatus", f"-g {GROUP}", "{client}"),
    ("consumerStatus", f"-g {GROUP} -i {{client}}", TOPIC),
    ("getConsumerStatus", f"-g {GROUP} -t {TOPIC}", "{client}"),
    ("queryMsgByKey", f"-t {TOPIC} -k key-0", "{id}"),
    ("queryMsgByUniqueKey", f"-t {TOPIC} -i {{id}}", "{id}"),
    ("queryMsgById", "-i {offset_id}", "{id}"),
    ("queryMsgById", f"-i {{offset_id}} -g {GROUP} -d {{client}}", "CR_SUCCESS"),
    ("queryMsgByOffset", f"-t {TOPIC} -b {ROCKETMQ_BROKER} -i 0 -o 1", "key-1"),
    ("queryMsgTraceById", "-i {id}", "ruled-producer"),
    ("cloneGroupOffset", f"-s {GROUP} -d ruled-copy -t {TOPIC}", "ruled-copy"),
    ("resetOffsetByTime", f"-g {GROUP} -t {TOPIC} -s 0 --preview", f"Redelivered: {QUEUES * COUNT}"),
    ("resetOffsetByTime", f"-g {GROUP} -t {TOPIC} -s -1", ROCKETMQ_BROKER),
    ("skipAccumulatedMessage", f"-g {GROUP} -t {TOPIC}", ROCKETMQ_BROKER),
    ("getBrokerConfig", "-b {broker}", "brokerName"),
    ("updateBrokerConfig", "-b {broker} -k maxMessageSize -v 4194303", "success"),
    ("wipeWritePerm", f"-b {ROCKETMQ_BROKER}", "OK"),
    ("addWritePerm", f"-b {ROCKETMQ_BROKER}", "OK"),
    ("cleanExpiredCQ", "-b {broker}", "removed"),
    ("cleanUnusedTopic", "-b {broker}", "removed"),
    ("deleteExpiredCommitLog", "-b {broker}", "expired files"),
    ("deleteSubGroup", "-b {broker} -g ruled-set", "success"),
    ("deleteTopic", f"-c {CLUSTER} -t {GONE}", "success"),
)
# Commands whose requests only a RewindMQ broker serves.
REFUSED: Final = (
    ("fencedCommits", f"-g {GROUP}"),
    ("resetOffsetByTime", f"-g {GROUP} -t {TOPIC} -s 0 --mode fenced"),
)


_OTHER_RELEASE = pytest.mark.interop(full_only="requests are the same for both releases")
of_each_release = pytest.mark.parametrize(
    "release",
    [
        pytest.param(release, marks=() if is_chosen(release, ROCKETMQ_NAMESRV) else _OTHER_RELEASE)
        for release in PROFILES
    ],
)


# 4.x has no such request; tests/interop/test_mqadmin.py plays it at 5.5.0.
ONLY_5: Final = ("setConsumeMode",)


def test_every_command_is_tested() -> None:
    tried = {name for name, *_ in (*WORKING, *REFUSED)} | {*ONLY_5}
    assert tried == {command.name for command in COMMANDS}


@of_each_release
async def test_every_command_works_at_a_rocketmq_broker(
    release: str, mixed_clusters: MixedClusters, capsys: pytest.CaptureFixture[str]
) -> None:
    failures = []
    async with place_at(release, mixed_clusters, capsys) as place:
        words = {
            "broker": place.broker,
            "id": place.sent[0].msg_id,
            "offset_id": place.sent[0].offset_msg_id,
            "client": place.client_id,
        }
        for name, options, expected in WORKING:
            arguments = options.format(**words).split()
            ran = await place.tool.admin(name, *arguments)
            if ran.code or ran.errors or expected.format(**words) not in ran.output:
                failures.append(f"{name} {options}: {ran.code} {ran.errors}{ran.output[-300:]}")
    assert "\n".join(failures) == ""


@of_each_release
async def test_a_request_that_rocketmq_does_not_serve_is_reported_in_one_line(
    release: str, mixed_clusters: MixedClusters, capsys: pytest.CaptureFixture[str]
) -> None:
    async with place_at(release, mixed_clusters, capsys) as place:
        for name, options in REFUSED:
            ran = await place.tool.admin(name, *options.split())
            assert ran.code == 1, (name, ran)
            (line,) = ran.errors.splitlines()
            assert ROCKETMQ_BROKER in line or place.broker in line, line
