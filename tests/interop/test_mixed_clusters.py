"""RewindMQ and RocketMQ brokers in one cluster, under either name server, and as each other's slaves."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from rewindmq import (
    AdminClient,
    ConsumeConcurrentlyStatus,
    ConsumeFromWhere,
    Message,
    MessageExt,
    Producer,
    PushConsumer,
    TopicConfig,
)
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.codec import fastjson
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.namesrv import GetRouteInfoRequestHeader
from tools.interop.raw import ask
from tools.interop.store_chain import PROFILES
from tools.interop.store_command import CommandLine
from tools.interop.store_mixed import (
    REWINDMQ_BROKER,
    REWINDMQ_NAMESRV,
    ROCKETMQ_BROKER,
    ROCKETMQ_NAMESRV,
    MixedCluster,
    MixedClusters,
    is_chosen,
)
from tools.interop.store_view import consumed, log_digest, log_end, view_store, wait_dispatched, wait_until

SECONDS = 300.0
COUNT = 40


_OTHER: Final = pytest.mark.interop(full_only="CI has each release and each kind of name server")


def _marks(release: str, kind: str) -> list[pytest.MarkDecorator]:
    return [] if is_chosen(release, kind) else [_OTHER]


@pytest.fixture(
    params=[
        pytest.param((release, kind), id=f"{release} at {kind}", marks=_marks(release, kind))
        for release in PROFILES
        for kind in (ROCKETMQ_NAMESRV, REWINDMQ_NAMESRV)
    ]
)
def mixed(request: pytest.FixtureRequest, mixed_clusters: MixedClusters) -> MixedCluster:
    return mixed_clusters.get(*request.param)


@pytest.fixture(
    params=[pytest.param(release, marks=_marks(release, REWINDMQ_NAMESRV)) for release in PROFILES]
)
def with_slaves(request: pytest.FixtureRequest, mixed_clusters: MixedClusters) -> MixedCluster:
    return mixed_clusters.get(request.param, REWINDMQ_NAMESRV)


async def wait_for(what: str, holds: Callable[[], bool]) -> None:
    await asyncio.to_thread(wait_until, what, holds, SECONDS)


async def make_topic(cluster: MixedCluster, topic: str) -> None:
    """Create a topic at both masters, and wait until its route has both."""
    async with AdminClient(cluster.namesrv_address) as admin:
        config = TopicConfig(topic_name=topic, read_queue_nums=2, write_queue_nums=2)
        for broker in (cluster.rocketmq, cluster.rewindmq):
            await admin.topics.create_and_update_topic_config(broker.address, config)
    await wait_for(
        "both are in the route", lambda: set(route(cluster, topic)) == {ROCKETMQ_BROKER, REWINDMQ_BROKER}
    )


def route(cluster: MixedCluster, topic: str) -> dict[str, dict[str, Any]]:
    """Return the queues of a topic by broker, as a Java client gets them; empty without a route."""
    command = RemotingCommand(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoRequestHeader(topic))
    answer = ask(cluster.namesrv_address, command)
    body = fastjson.loads(answer.body) if isinstance(answer.body, bytes) and not answer.code else {}
    return {queues["brokerName"]: queues for queues in body.get("queueDatas", ())}


def registered(cluster: MixedCluster) -> dict[str, dict[int, str]]:
    """Return broker addresses by broker name and id."""
    answer = ask(cluster.namesrv_address, RemotingCommand(RequestCode.GET_BROKER_CLUSTER_INFO))
    assert isinstance(answer.body, bytes)
    table = fastjson.loads(answer.body)["brokerAddrTable"]
    return {
        name: {int(number): address for number, address in broker["brokerAddrs"].items()}
        for name, broker in table.items()
    }


async def send(cluster: MixedCluster, topic: str, count: int = COUNT) -> Counter[str]:
    """Send messages; return how many went to which broker."""
    async with Producer(f"producer-{topic}", cluster.namesrv_address) as producer:
        results = [
            await producer.send(Message(topic, f"body {number}".encode(), "TagA", f"key-{number}"))
            for number in range(count)
        ]
    assert {result.status for result in results} == {"SEND_OK"}
    return Counter(result.message_queue.broker_name for result in results)


@dataclass
class Consuming:
    """A running consumer of a cluster's topic and the messages that it has received."""

    cluster: MixedCluster
    topic: str
    group: str
    consumer: PushConsumer
    got: list[MessageExt] = field(default_factory=list)

    async def all_given(self, times: int) -> None:
        """Wait until each message was delivered ``times`` times, and all offsets are committed."""

        def holds() -> bool:
            given = Counter(message.body for message in list(self.got))
            return len(given) == COUNT and min(given.values()) >= times

        await wait_for(f"each of {COUNT} messages came {times} times", holds)
        async with asyncio.timeout(SECONDS):
            # The listener may not have returned from the last message yet.
            while not await asyncio.to_thread(self._is_known):
                await self.consumer.persist_offsets()
                await asyncio.sleep(0.1)

    def _is_known(self) -> bool:
        addresses = (self.cluster.rocketmq.address, self.cluster.rewindmq.address)
        return consumed(addresses, self.topic, self.group) == COUNT


@asynccontextmanager
async def consuming(cluster: MixedCluster, topic: str, group: str) -> AsyncIterator[Consuming]:
    consumer = PushConsumer(
        group, cluster.namesrv_address, consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    )
    consuming = Consuming(cluster, topic, group, consumer)

    async def listen(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        consuming.got.extend(messages)
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    consumer.subscribe(topic)
    consumer.register_message_listener(listen)
    async with consumer:
        yield consuming


async def test_a_route_describes_both_kinds_of_broker_alike(mixed: MixedCluster) -> None:
    await make_topic(mixed, "alike")
    queues = route(mixed, "alike")
    assert queues[REWINDMQ_BROKER] | {"brokerName": ROCKETMQ_BROKER} == queues[ROCKETMQ_BROKER]


async def test_clients_send_to_and_consume_from_both_brokers(mixed: MixedCluster) -> None:
    await make_topic(mixed, "both")
    assert await send(mixed, "both") == {ROCKETMQ_BROKER: COUNT // 2, REWINDMQ_BROKER: COUNT // 2}
    async with consuming(mixed, "both", "both-readers") as reader:
        await reader.all_given(1)
        assert Counter(message.broker_name for message in reader.got) == {
            ROCKETMQ_BROKER: COUNT // 2,
            REWINDMQ_BROKER: COUNT // 2,
        }


async def test_a_reset_while_consuming_reaches_both_brokers(
    mixed: MixedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    await make_topic(mixed, "again")
    await send(mixed, "again")
    async with consuming(mixed, "again", "again-readers") as reader:
        await reader.all_given(1)
        output = await CommandLine(mixed.namesrv_address, capsys).done(
            "resetOffsetByTime", "-g", "again-readers", "-t", "again", "-s", "0"
        )
        rows = [line.split() for line in output.splitlines()]
        assert {row[0] for row in rows if row and row[0] in (ROCKETMQ_BROKER, REWINDMQ_BROKER)} == {
            ROCKETMQ_BROKER,
            REWINDMQ_BROKER,
        }
        await reader.all_given(2)


async def test_rewindmq_admin_shows_both_brokers(
    mixed: MixedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    await make_topic(mixed, "shown")
    await send(mixed, "shown")
    await asyncio.to_thread(wait_dispatched, mixed.rocketmq.address)
    tool = CommandLine(mixed.namesrv_address, capsys)
    listed = (await tool.done("clusterList")).split()
    assert {mixed.rocketmq.address, mixed.rewindmq.address, ROCKETMQ_BROKER, REWINDMQ_BROKER} <= {*listed}
    status = [line.split() for line in (await tool.done("topicStatus", "-t", "shown")).splitlines()]
    ends = {(row[0], row[1]): int(row[3]) for row in status if row[0] in (ROCKETMQ_BROKER, REWINDMQ_BROKER)}
    assert ends == {
        (name, str(queue)): COUNT // 4 for name in (ROCKETMQ_BROKER, REWINDMQ_BROKER) for queue in range(2)
    }
    found = [await tool.done("queryMsgByKey", "-t", "shown", "-k", f"key-{number}") for number in range(4)]
    assert all(len(text.splitlines()) == 2 for text in found), found


async def test_a_name_server_forgets_a_stopped_or_killed_rewindmq_broker(mixed: MixedCluster) -> None:
    broker = mixed.start_rewindmq("broker-z")
    try:
        assert registered(mixed)["broker-z"] == {0: broker.address}
        broker.stop()
        assert "broker-z" not in registered(mixed)
        broker.start()
        assert registered(mixed)["broker-z"] == {0: broker.address}
    finally:
        broker.kill()
    await wait_for(
        "the name server noticed the closed connection", lambda: "broker-z" not in registered(mixed)
    )


async def test_masters_and_slaves_of_both_kinds_are_listed(with_slaves: MixedCluster) -> None:
    assert with_slaves.rewindmq_slave is not None
    assert with_slaves.rocketmq_slave is not None
    table = registered(with_slaves)
    assert table[ROCKETMQ_BROKER] == {0: with_slaves.rocketmq.address, 1: with_slaves.rewindmq_slave.address}
    assert table[REWINDMQ_BROKER] == {0: with_slaves.rewindmq.address, 1: with_slaves.rocketmq_slave.address}


@pytest.mark.parametrize("direction", ["RewindMQ follows RocketMQ", "RocketMQ follows RewindMQ"])
async def test_a_slave_copies_every_byte_of_the_log(with_slaves: MixedCluster, direction: str) -> None:
    topic = "copied-" + direction.split()[0]
    await make_topic(with_slaves, topic)
    await send(with_slaves, topic)
    master, slave = (
        (with_slaves.rocketmq, with_slaves.rewindmq_slave)
        if direction.startswith("RewindMQ")
        else (with_slaves.rewindmq, with_slaves.rocketmq_slave)
    )
    assert slave is not None
    end = log_end(master.address)
    await wait_for("the slave's log is as long", lambda: log_end(slave.address) >= end)
    assert log_digest(slave.store_path, end) == log_digest(master.store_path, end)
    await asyncio.to_thread(wait_dispatched, slave.address)

    def has_topic() -> bool:
        return topic in view_store(slave.address, slave.store_path).topics

    await wait_for("the slave has its master's topics", has_topic)
    at_master = view_store(master.address, master.store_path)
    at_slave = view_store(slave.address, slave.store_path)
    for queue in ((topic, 0), (topic, 1)):
        assert at_slave.bounds[queue] == at_master.bounds[queue] == (0, COUNT // 4)
        assert at_slave.records[queue] == at_master.records[queue]
        assert isinstance(at_slave.records[queue], bytes)
