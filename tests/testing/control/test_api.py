"""The control port at a running cluster: members, topics, rules, links, snapshots, and the end of a test."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

import pytest
import pytest_asyncio

from rewindmq import LocalCluster, Message, Producer
from rewindmq.cluster.async_cluster import AsyncLocalCluster
from rewindmq.cluster.up.members import Members
from rewindmq.testing.control.http_server import MAX_CONNECTIONS
from rewindmq.testing.control.port import ControlPort
from tests.testing.control.http_client import HttpClient

NOTHING_TO_UNDO: Final = {
    "complaints": [],
    "holding": [],
    "restored": [],
    "full_disks": [],
    "ahead_seconds": 0.0,
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(brokers=1, time_scale=0.05) as cluster:
        yield cluster


@pytest.fixture
def members(cluster: LocalCluster) -> Members:
    return Members(AsyncLocalCluster(cluster))


@pytest_asyncio.fixture
async def port(cluster: LocalCluster, members: Members) -> AsyncIterator[HttpClient]:
    async with ControlPort(0, 0).beside(cluster, members) as entrances:
        token = (cluster.directory / "control.token").read_text().strip()
        yield HttpClient(entrances.control, token)


async def done(port: HttpClient, path: str, **body: object) -> Any:
    """POST, and return the value of a response that must be 200."""
    response = await port.post(path, **body)
    assert response.status == 200, response
    return response.value


async def refused(port: HttpClient, status: int, path: str, **body: object) -> str:
    """POST, and return the sentence of a refusal."""
    response = await port.post(path, **body)
    assert response.status == status, response
    return response.error


async def wired_producer(port: HttpClient, cluster: LocalCluster, client: str) -> Producer:
    """A producer that rules call ``client``."""
    address = (await done(port, "/v1/clients", name=client))["namesrv"]
    return Producer("shop", address, **{**cluster.client_options, "retry_times_when_send_failed": 0})


async def test_a_member_is_paused_and_continues_at_the_end(port: HttpClient) -> None:
    assert (await done(port, "/v1/members/broker-a/pause"))["state"] == "paused"
    assert (await port.get("/v1/health")).value == {
        "healthy": False,
        "members": {"namesrv": "running", "broker-a": "paused"},
    }
    assert "paused already" in await refused(port, 409, "/v1/members/broker-a/pause")
    assert (await done(port, "/v1/settle"))["restored"] == ["broker-a"]
    assert (await port.get("/v1/health")).value["healthy"] is True


async def test_a_held_request_is_met_and_released(cluster: LocalCluster, port: HttpClient) -> None:
    await done(port, "/v1/topics", name="held", queues=1)
    async with await wired_producer(port, cluster, "web") as producer:
        rule = await done(port, "/v1/rules", on="SEND_MESSAGE_V2", do="hold", topic="held", client="web")
        path = f"/v1/rules/{rule['rule']}"
        sending = asyncio.create_task(producer.send(Message("held", b"x"), timeout=60))
        frame = await done(port, f"{path}/met", timeout=60)
        assert (frame["name"], frame["source"], frame["fields"]["topic"]) == (
            "SEND_MESSAGE_V2",
            "web",
            "held",
        )
        shown = (await port.get(path)).value
        assert (shown["count"], shown["in_force"], shown["held"]) == (1, True, [frame])
        assert not sending.done()
        assert (await done(port, f"{path}/release"))["in_force"] is False
        await sending
        assert "were released" in await refused(port, 400, f"{path}/release")
    assert await done(port, "/v1/settle") == NOTHING_TO_UNDO


async def test_a_hold_that_nothing_meets_fails_the_wait_and_the_test(
    cluster: LocalCluster, port: HttpClient
) -> None:
    await done(port, "/v1/topics", name="unmet", queues=1)
    rule = await done(port, "/v1/rules", on="SEND_MESSAGE_V2", do="hold", topic="other")
    async with await wired_producer(port, cluster, "web") as producer:
        await producer.send(Message("unmet", b"x"))
    late = await refused(port, 504, f"/v1/rules/{rule['rule']}/met", timeout=0.01)
    assert "0 of 1 SEND_MESSAGE_V2 frames were caught within 0.01 s" in late
    assert "client web, server broker-a, group shop, topic unmet" in late
    (complaint,) = (await done(port, "/v1/settle"))["complaints"]
    assert complaint.startswith("rmq.on('SEND_MESSAGE_V2', topic='other').hold(): nothing met it; passed:")
    assert (await port.get("/v1/rules")).value == {"rules": []}


async def test_a_failed_request_and_a_removed_rule(cluster: LocalCluster, port: HttpClient) -> None:
    await done(port, "/v1/topics", name="failed", queues=1)
    async with await wired_producer(port, cluster, "web") as producer:
        await done(port, "/v1/rules", on=310, do="fail", code="SYSTEM_BUSY", remark="too many", times=1)
        with pytest.raises(Exception, match="too many"):
            await producer.send(Message("failed", b"x"))
        await producer.send(Message("failed", b"x"))
    unmet = await done(port, "/v1/rules", on="PULL_MESSAGE", do="drop")
    path = f"/v1/rules/{unmet['rule']}"
    assert (await port.delete(path)).value == {"removed": unmet["text"]}
    assert (await port.delete(path)).status == 404
    assert (await done(port, "/v1/settle"))["complaints"] == []


async def test_a_partition_holds_a_send_until_it_is_healed(cluster: LocalCluster, port: HttpClient) -> None:
    await done(port, "/v1/topics", name="cut", queues=1)
    async with await wired_producer(port, cluster, "web") as producer:
        await producer.send(Message("cut", b"1"))
        link = await done(port, "/v1/links", do="partition", server="broker-a", client="web")
        assert link["in_force"]
        sending = asyncio.create_task(producer.send(Message("cut", b"2"), timeout=60))
        assert (await done(port, "/v1/heal", server="broker-a"))["links"][0]["in_force"] is False
        await sending
        slow = await done(port, "/v1/links", do="slow_link", server="namesrv", latency=0.1)
        assert (await port.delete(f"/v1/links/{slow['link']}")).status == 200
    assert (await done(port, "/v1/settle"))["complaints"] == []


@pytest.mark.slow
async def test_a_member_is_killed_and_brought_back_at_the_end(
    cluster: LocalCluster, port: HttpClient
) -> None:
    assert (await done(port, "/v1/members/broker-a/kill"))["state"] == "ended"
    assert (await done(port, "/v1/settle"))["restored"] == ["broker-a"]
    assert (await port.get("/v1/health")).value["healthy"] is True


@pytest.mark.slow
async def test_a_snapshot_is_restored(cluster: LocalCluster, port: HttpClient) -> None:
    assert await done(port, "/v1/snapshots", name="empty") == {"name": "empty"}
    await done(port, "/v1/topics", name="later")
    assert await done(port, "/v1/snapshots/empty/restore") == {"name": "empty"}
    assert (await port.get("/v1/snapshots")).value["snapshots"] == ["empty"]
    async with cluster.admin() as admin:
        with pytest.raises(Exception, match="later"):
            await admin.topics.examine_topic_route_info("later")
    assert "snapshots: empty" in await refused(port, 404, "/v1/snapshots/other/restore")


@pytest.mark.parametrize(
    ("path", "body", "status", "sentence"),
    [
        ("/v1/rules", {}, 400, "missing required field `on`"),
        ("/v1/rules", {"on": "PULL", "do": "hold"}, 400, "near it: PULL_MESSAGE"),
        ("/v1/rules", {"on": "x" * 60_000, "do": "hold"}, 400, f"'{'x' * 29}… is not a request of RocketMQ;"),
        ("/v1/rules", {"on": "PULL_MESSAGE", "do": "halt"}, 400, "'halt'"),
        ("/v1/rules", {"on": "PULL_MESSAGE", "do": "hold", "grup": "g"}, 400, "unknown field `grup`"),
        ("/v1/rules", {"on": "PULL_MESSAGE", "do": "hold", "queue": 0}, 400, "needs a topic"),
        ("/v1/rules", {"on": "PULL_MESSAGE", "do": "hold", "seconds": 1}, 400, "belongs to delay"),
        ("/v1/rules", {"on": "PULL_MESSAGE", "do": "delay"}, 400, 'needs "seconds"'),
        ("/v1/rules", {"on": "PULL_MESSAGE", "do": "fail"}, 400, 'needs "code"'),
        ("/v1/rules", {"on": "PULL_MESSAGE", "do": "fail", "code": "NO"}, 400, "not a response code"),
        ("/v1/rules", {"on": "PULL_MESSAGE", "do": "drop", "server": "broker-z"}, 400, "namesrv, broker-a"),
        ("/v1/rules", {"on": 11, "do": "fail", "code": 10**15}, 400, f"1{'0' * 15} is not a response code"),
        ("/v1/rules/7/met", {}, 404, "there is no rule '7'; rules: none"),
        ("/v1/rules/x/met", {}, 404, "there is no rule 'x'"),
        ("/v1/rule", {}, 404, "paths: /v1/health"),
        ("/v2/rules", {}, 404, "paths: /v1/health"),
        (f"/v1/{'x' * 9_000}", {}, 404, "paths: /v1/health"),
        ("/v1/cluster", {}, 405, "send GET to /v1/cluster"),
        (f"/v1/members/{'x' * 300}/kill", {}, 404, "paths: /v1/health"),
        ("/v1/members/broker-z/kill", {}, 404, "members: namesrv, broker-a"),
        ("/v1/members/broker-a/stop", {}, 404, "actions: kill, restart, pause, resume"),
        ("/v1/members/broker-a/kill", {"now": 1}, 400, "unknown field `now`"),
        ("/v1/topics", {"name": "a b"}, 400, "cannot be a topic"),
        ("/v1/topics", {"name": "TBW102"}, 400, "of the brokers themselves"),
        ("/v1/topics", {"name": "a", "queues": 0}, 400, "$.queues"),
        ("/v1/clients", {"name": "a/b"}, 400, "$.name"),
        ("/v1/links", {"do": "partition", "server": "broker-a", "latency": 1}, 400, "belong to slow_link"),
        ("/v1/links", {"do": "slow_link", "server": "broker-a"}, 400, "needs latency"),
        ("/v1/links", {"do": "slow_link", "server": "broker-a", "bytes_per_second": 0.9}, 400, ">= 1"),
        ("/v1/heal", {}, 400, "no link is cut or slow"),
        ("/v1/snapshots", {"name": "../x"}, 409, "../x"),
        ("/v1/snapshots", {"name": "before-travel"}, 400, "choose another name"),
        ("/v1/snapshots/x/save", {"file": "x.tar"}, 404, "there is no snapshot 'x'"),
        ("/v1/snapshots/x/load", {"file": "x.tar"}, 404, "there is no file x.tar in"),
        ("/v1/snapshots/x/load", {}, 400, "missing required field `file`"),
        ("/v1/snapshots/x/delete", {}, 404, "actions: restore, save, load"),
        ("/v1/disk_full", {}, 400, "missing required field `broker`"),
        ("/v1/disk_full", {"broker": "namesrv"}, 409, "only a master's disk can be full: broker-a"),
        ("/v1/disk_full", {"broker": "broker-a", "full": "yes"}, 400, "$.full"),
        ("/v1/travel", {}, 400, "missing required field `seconds`"),
        ("/v1/travel", {"seconds": 0}, 400, "must be more than 0"),
        ("/v1/travel", {"seconds": -1}, 400, "the way back is the end of the test"),
        ("/v1/travel", {"seconds": 10**9}, 400, "is ten years"),
        ("/v1/travel", {"seconds": 10**400}, 400, "the body is wrong"),
    ],
)
async def test_a_wrong_request_gets_a_sentence_that_helps(
    port: HttpClient, path: str, body: dict[str, object], status: int, sentence: str
) -> None:
    assert sentence in await refused(port, status, path, **body)


@pytest.mark.parametrize("body", [b"{", b"[]", b"\xff", b'{"on": "\xff"}', b"[" * 60_000, b"null"])
async def test_a_body_that_is_no_object_is_refused(port: HttpClient, body: bytes) -> None:
    response = await port.send("POST", "/v1/rules", body)
    assert (response.status, "the body is wrong" in response.error) == (400, True)


async def test_a_rule_that_is_kept_is_stopped_and_its_wait_ends(port: HttpClient) -> None:
    rule = await done(port, "/v1/rules", on="PULL_MESSAGE", do="drop", times=None, optional=True)
    path = f"/v1/rules/{rule['rule']}"
    waiting = asyncio.create_task(port.post(f"{path}/met", timeout=60))
    assert (await done(port, f"{path}/stop"))["in_force"] is False
    assert (await waiting).status == 504
    assert "actions: met, release, drop_held, stop" in await refused(port, 404, f"{path}/end")
    assert (await done(port, "/v1/settle"))["complaints"] == []


async def test_a_rule_that_comes_while_a_test_ends_belongs_to_the_next_test(
    port: HttpClient, members: Members
) -> None:
    """Else it would catch what the clients of the ending test send while the servers are put back."""
    await done(port, "/v1/rules", on="PULL_MESSAGE", do="drop", optional=True)
    async with members.exclusively():
        ending = asyncio.create_task(done(port, "/v1/settle"))
        while (await port.get("/v1/rules")).value["rules"]:
            pass
        bodies = ("rules", {"on": "PULL_MESSAGE", "do": "drop"}), ("links", {"do": "partition"})
        adding = [
            asyncio.create_task(done(port, f"/v1/{path}", server="namesrv", **body)) for path, body in bodies
        ]
        for path, _ in bodies:
            assert (await port.get(f"/v1/{path}")).value == {path: []}
        assert not any(task.done() for task in (ending, *adding))
    assert await ending == NOTHING_TO_UNDO
    assert all([(await task)["in_force"] for task in adding])
    assert len((await done(port, "/v1/settle"))["complaints"]) == 1


async def test_waits_whose_clients_have_left_do_not_block_the_port(port: HttpClient) -> None:
    rule = await done(port, "/v1/rules", on="PULL_MESSAGE", do="drop", optional=True)
    async with contextlib.AsyncExitStack() as clients:
        for _ in range(MAX_CONNECTIONS):
            _, writer = await clients.enter_async_context(port.connected())
            writer.write(port.encode("POST", f"/v1/rules/{rule['rule']}/met", b'{"timeout": 600}'))
        assert (await port.get("/v1/rules")).status == 503
    while (await port.get("/v1/rules")).status == 503:
        pass
    assert await done(port, "/v1/settle") == NOTHING_TO_UNDO
