"""Texts of hostile peers in the output of ``rewindmq admin``: one row each, nothing that moves a cursor."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Coroutine

import pytest

from rewindmq import LocalCluster
from rewindmq.protocol.body import RemotingBody
from rewindmq.protocol.body.cluster import ClusterInfo
from rewindmq.protocol.body.route import BrokerData, QueueData, TopicRouteData
from rewindmq.protocol.body.topic_list import TopicList
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.send import SendMessageResponseHeader
from rewindmq.protocol.remoting.connection import Connection, Handler
from rewindmq.protocol.remoting.runtime import Runtime, system_runtime
from rewindmq.protocol.remoting.server import RemotingServer
from tests.client.admin.test_cli import Done, admin
from tests.support.peer import Peer

EVIL = "a\nFORGED row\r\x1b[2J\x1b]0;owned\x07\u202egnp\x9b31m\x85\u2028\x7fz"
SHOWN = r"a\nFORGED row\r\x1b[2J\x1b]0;owned\x07\u202egnp\x9b31m\x85\u2028\x7fz"
GOOD = "harmless"

Ask = Callable[..., Coroutine[None, None, Done]]


def assert_harmless(done: Done) -> None:
    for text in (done.stdout, done.stderr):
        assert all(character.isprintable() or character in "\n\t" for character in text), ascii(text)
        assert not re.search(r"^FORGED", text, re.MULTILINE)


@pytest.fixture
async def cluster() -> AsyncIterator[LocalCluster]:
    cluster = LocalCluster(brokers=1, time_scale=0.05)
    async with cluster:
        yield cluster


async def outputs_of_a_client(text: str, number: int, cluster: LocalCluster) -> dict[str, Done]:
    """Connect a consumer with a text in all that it says, and run the commands that show it."""
    topic, group = f"Topic{number}", f"group{number}"

    def refuse(connection: Connection, request: RemotingCommand) -> RemotingCommand:
        raise RequestError(ResponseCode.SYSTEM_ERROR, f"remark {text}")

    runtime = system_runtime()
    peer = Peer(
        runtime,
        cluster.brokers["broker-a"].address,
        client_id=text,
        answers={
            RequestCode.GET_CONSUMER_RUNNING_INFO: refuse,
            RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT: refuse,
        },
    )
    try:
        # The trace of the key and of the properties, which queries by key and by id print.
        properties = {"KEYS": f"key{number}", "TAGS": text, "any": text}
        sent = (await peer.send(topic, text.encode(), properties=properties)).require_success()
        (await peer.heartbeat(group, [topic], expression=text)).require_success()
        (await peer.commit(0, topic, 0, group)).require_success()
        lines = [
            f"consumerConnection -g {group}",
            f"consumerConnection -g {group} --json",
            f"consumerProgress -g {group}",
            f"consumerStatus -g {group}",
            f"getConsumerStatus -g {group} -t {topic}",
            f"topicStatus -t {topic}",
            f"topicRoute -t {topic}",
            f"queryMsgByKey -t {topic} -k key{number}",
            f"queryMsgById -i {sent.decode_header(SendMessageResponseHeader).msg_id}",
        ]
        words = {line: line.split() for line in lines}
        words["consumerStatus -i"] = ["consumerStatus", "-g", group, "-i", text]
        return {
            re.sub(r"\d| -i.*", "", name): await asyncio.to_thread(
                admin, *words[name], namesrv=cluster.namesrv_address
            )
            for name in words
        }
    finally:
        await peer.client.close()
        runtime.workers.close()


async def test_texts_of_a_client_forge_no_row_and_no_escape_sequence(cluster: LocalCluster) -> None:
    """The client id, expressions, properties, body and remarks of a consumer have control characters.

    Every command prints as many lines as for a harmless consumer.
    """
    harmless = await outputs_of_a_client(GOOD, 1, cluster)
    hostile = await outputs_of_a_client(EVIL, 2, cluster)
    for command, done in hostile.items():
        assert_harmless(done)
        assert done.returncode == harmless[command].returncode, command
        assert done.stdout.count("\n") == harmless[command].stdout.count("\n"), command
        assert done.stderr.count("\n") == harmless[command].stderr.count("\n"), command
    shown = [command for command, done in hostile.items() if SHOWN in done.stdout]
    assert {"consumerConnection -g group", "consumerStatus -g group", "queryMsgById"} <= set(shown)
    failed = {command for command, done in harmless.items() if done.returncode}
    assert failed == {"consumerStatus", "getConsumerStatus -g group -t Topic"}
    assert r"\x1b[2J" in hostile["consumerStatus"].stderr
    broker = cluster.brokers["broker-a"]
    assert f"remark {SHOWN}" in broker.log_path.read_text()
    for process in (cluster.namesrv, broker):
        for line in process.log_path.read_text().split("\n")[:-1]:
            assert re.match(r"\d{4}-\d\d-\d\d [\d:,]{12} [A-Z]+ ", line)
            assert line.isprintable()


async def outputs_of_a_name_server(text: str, runtime: Runtime) -> dict[str, Done]:
    """Answer requests for clusters, topics and routes with a text in every name; no broker is there."""
    brokers = BrokerData(cluster=text, broker_name=text, broker_addrs={0: "127.0.0.1:1"})
    queues = QueueData(broker_name=text, read_queue_nums=1, write_queue_nums=1, perm=6, topic_sys_flag=0)
    bodies: dict[int, RemotingBody] = {
        RequestCode.GET_BROKER_CLUSTER_INFO: ClusterInfo(
            broker_addr_table={text: brokers}, cluster_addr_table={text: {text}}
        ),
        RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: TopicList(topic_list=[text]),
        RequestCode.GET_ROUTEINFO_BY_TOPIC: TopicRouteData(
            queue_datas=[queues], broker_datas=[brokers], order_topic_conf=f"{text}:4"
        ),
    }

    def answering(body: RemotingBody) -> Handler:
        return lambda connection, request: RemotingCommand(ResponseCode.SUCCESS, body=body)

    def refuse(connection: Connection, request: RemotingCommand) -> RemotingCommand:
        raise RequestError(ResponseCode.SYSTEM_ERROR, f"remark {text}")

    handlers: dict[int, Handler] = {code: answering(body) for code, body in bodies.items()}
    handlers[RequestCode.GET_KV_CONFIG] = refuse
    handlers[RequestCode.GET_KVLIST_BY_NAMESPACE] = refuse
    server = RemotingServer(runtime, handlers)
    await server.start("127.0.0.1", 0)
    try:
        lines = ["clusterList", "topicList", "topicList -c", "topicRoute -t T", "topicRoute -t T -l"]
        lines += ["topicStatus -t T", "topicRoute -t T --json"]
        return {
            line: await asyncio.to_thread(admin, *line.split(), namesrv=f"127.0.0.1:{server.port}")
            for line in lines
        }
    finally:
        await server.close()


async def test_names_of_a_name_server_forge_no_row_and_no_escape_sequence() -> None:
    runtime = system_runtime()
    try:
        harmless = await outputs_of_a_name_server(GOOD, runtime)
        hostile = await outputs_of_a_name_server(EVIL, runtime)
    finally:
        runtime.workers.close()
    for command, done in hostile.items():
        assert_harmless(done)
        assert done.returncode == harmless[command].returncode, command
        assert done.stdout.count("\n") == harmless[command].stdout.count("\n"), command
        assert done.stderr.count("\n") == harmless[command].stderr.count("\n"), command
    assert SHOWN in hostile["topicList"].stdout
    assert SHOWN in hostile["topicRoute -t T -l"].stdout
