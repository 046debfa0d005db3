"""QUERY_ASSIGNMENT (400): answers as RocketMQ 5.5.1 gave them, for one topic with four queues."""

from __future__ import annotations

import asyncio
import json

import pytest

from rewindmq.namesrv.config import NamesrvConfig
from rewindmq.namesrv.server import NameServer
from rewindmq.protocol.body.assignment import MessageRequestMode
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand, SerializeType
from rewindmq.protocol.profile import Profile
from tests.support.answers import remark_of
from tests.support.fixtures import played, simulated
from tests.support.peer import Peer
from tests.support.servers import NAMESRV_HOST
from tests.support.stage import SimStage

GROUP = "G"


async def ask(peer: Peer, **changes: object) -> RemotingCommand:
    query: dict[str, object] = {
        "topic": "T",
        "consumerGroup": GROUP,
        "clientId": "c1",
        "strategyName": "AVG",
        "messageModel": "CLUSTERING",
    }
    given = {key: value for key, value in {**query, **changes}.items() if value is not None}
    return await peer.ask(RequestCode.QUERY_ASSIGNMENT, body=json.dumps(given).encode())


async def assigned(peer: Peer, **changes: object) -> list[int] | str | None:
    """Return the queue ids with POP as a list, with PULL as a text; None if the broker cannot tell."""
    response = (await ask(peer, **changes)).require_success()
    assert isinstance(response.body, bytes)
    content = json.loads(response.body)
    if "messageQueueAssignments" not in content:
        assert content == {}
        return None
    assignments = content["messageQueueAssignments"]
    assert all(each["messageQueue"]["brokerName"] == "broker-a" for each in assignments)
    ids = [each["messageQueue"]["queueId"] for each in assignments]
    if {each["mode"] for each in assignments} == {"POP"}:
        return ids
    assert all(each["mode"] == "PULL" for each in assignments)
    return " ".join(map(str, ids))


async def set_mode(peer: Peer, share: int = 0, mode: str = "POP") -> None:
    body = {"topic": "T", "consumerGroup": GROUP, "mode": mode, "popShareQueueNum": share}
    code = RequestCode.SET_MESSAGE_REQUEST_MODE
    (await peer.ask(code, body=json.dumps(body).encode())).require_success()


async def a_group(stage: SimStage, clients: int = 1) -> Peer:
    """Return a peer that asks, after so many consumers of G have announced themselves."""
    peer = stage.peer("admin", serialize_type=SerializeType.JSON)
    await peer.create_topic("T")
    for number in range(1, clients + 1):
        await stage.peer(f"c{number}").heartbeat(GROUP, ("T",))
    return peer


@played(profile=Profile.V53)
async def test_a_group_whose_mode_was_not_set_pulls(stage: SimStage) -> None:
    peer = await a_group(stage, 2)
    assert await assigned(peer) == "0 1"
    assert await assigned(peer, clientId="c2") == "2 3"
    assert await assigned(peer, clientId="c2", strategyName="AVG_BY_CIRCLE") == "1 3"
    assert await assigned(peer, clientId="stranger") == ""
    assert await assigned(peer, messageModel="BROADCASTING") == "0 1 2 3"


@played(profile=Profile.V53)
async def test_every_client_pops_all_queues_if_so_many_share(stage: SimStage) -> None:
    peer = await a_group(stage, 2)
    for share in (0, -1, 1):
        await set_mode(peer, share)
        assert await assigned(peer) == [-1]
        # Also one that the group does not list.
        assert await assigned(peer, clientId="stranger") == [-1]
        assert await assigned(peer, clientId=None) == [-1]
    assert await assigned(peer, strategyName="AVG_BY_CIRCLE") == [-1]
    assert await assigned(peer, messageModel="BROADCASTING") == [0, 1, 2, 3]
    await set_mode(peer, mode="PULL")
    assert await assigned(peer) == "0 1"


@played(profile=Profile.V53)
async def test_clients_share_the_queues_of_those_that_follow(stage: SimStage) -> None:
    peer = await a_group(stage, 3)
    await set_mode(peer, share=1)
    assert [await assigned(peer, clientId=each) for each in ("c1", "c2", "c3")] == [
        [0, 1, 2],
        [2, 3],
        [3, 0, 1],
    ]
    assert await assigned(peer, clientId=None) is None


@played(profile=Profile.V53)
async def test_more_clients_than_queues_get_a_queue_each(stage: SimStage) -> None:
    peer = await a_group(stage, 6)
    await set_mode(peer, share=1)
    found = [await assigned(peer, clientId=f"c{number}") for number in range(1, 7)]
    assert found == [[0], [1], [2], [3], [0], [1]]


@played(profile=Profile.V53)
async def test_the_retry_topic_is_pulled_also_by_a_group_that_pops(stage: SimStage) -> None:
    peer = await a_group(stage)
    await set_mode(peer)
    await peer.create_topic("%RETRY%G", write=1, read=1)
    assert await assigned(peer, topic="%RETRY%G") == "0"


@played(profile=Profile.V53, default_message_request_mode=MessageRequestMode.POP)
async def test_the_key_of_the_broker_sets_the_mode_of_other_groups(stage: SimStage) -> None:
    assert await assigned(await a_group(stage)) == [-1]


@played(profile=Profile.V53, server_load_balancer_enable=False)
async def test_without_the_load_balancer_everybody_gets_all_queues(stage: SimStage) -> None:
    peer = await a_group(stage, 2)
    assert await assigned(peer) == "0 1 2 3"


@pytest.mark.parametrize(
    "changes",
    [
        {"topic": "Unknown"},
        {"topic": "Unknown", "messageModel": "BROADCASTING"},
        {"topic": "%RETRY%Unknown"},
        {"consumerGroup": "Unknown"},
        {"strategyName": "CONSISTENT_HASH"},
        {"strategyName": "MACHINE_ROOM"},
        {"strategyName": None},
        {"clientId": None},
        {"clientId": " "},
    ],
)
@played(profile=Profile.V53)
async def test_the_broker_cannot_tell(stage: SimStage, changes: dict[str, object]) -> None:
    assert await assigned(await a_group(stage), **changes) is None


@pytest.mark.parametrize(
    "changes",
    [{"topic": None}, {"consumerGroup": None}, {"messageModel": None}, {"messageModel": "X"}, {"topic": 1}],
)
@played(profile=Profile.V53)
async def test_a_bad_body_is_refused(stage: SimStage, changes: dict[str, object]) -> None:
    response = await ask(await a_group(stage), **changes)
    assert response.code == ResponseCode.SYSTEM_ERROR
    assert remark_of(response).startswith("QueryAssignmentRequestBody: ")


@played(profile=Profile.V53)
async def test_a_topic_without_readable_queues_assigns_none(stage: SimStage) -> None:
    peer = await a_group(stage)
    await peer.create_topic("T", perm=2)
    assert await assigned(peer) == ""
    await set_mode(peer)
    assert (await ask(peer)).code == ResponseCode.SUCCESS


@played(profile=Profile.V53)
async def test_a_change_of_the_topic_counts_after_half_a_minute(stage: SimStage) -> None:
    peer = await a_group(stage)
    assert await assigned(peer) == "0 1 2 3"
    await peer.create_topic("T", write=6, read=6)
    assert await assigned(peer) == "0 1 2 3"
    await stage.world.sleep(30.1)
    assert await assigned(peer) == "0 1 2 3 4 5"


@played(profile=Profile.V53)
async def test_a_name_server_that_is_gone_leaves_the_queues_as_they_were(stage: SimStage) -> None:
    peer = await a_group(stage)
    assert await assigned(peer) == "0 1 2 3"
    await stage.stop_namesrv()
    await stage.world.sleep(30.1)
    assert await assigned(peer) == "0 1 2 3"
    assert await assigned(peer, topic="Another") is None


@played(profile=Profile.V53)
async def test_all_consumers_wait_once_for_a_silent_name_server(stage: SimStage) -> None:
    peer = await a_group(stage)
    assert await assigned(peer) == "0 1 2 3"
    await stage.world.sleep(30.1)
    stage.world.pause(NAMESRV_HOST)
    began = stage.world.now
    topics = ("T", "T", "A", "B", "C")
    found = await asyncio.gather(*(assigned(peer, topic=topic) for topic in topics))
    assert found == ["0 1 2 3", "0 1 2 3", None, None, None]
    assert stage.world.now - began < 3.1
    # For some seconds the broker answers by what it knows.
    began = stage.world.now
    assert await assigned(peer) == "0 1 2 3"
    assert await assigned(peer, topic="D") is None
    assert stage.world.now - began < 0.1
    stage.world.resume(NAMESRV_HOST)
    await peer.create_topic("D")
    await stage.world.sleep(5.1)
    assert await assigned(peer, topic="D") == "0 1 2 3"


@simulated(profile=Profile.V53)
async def test_a_silent_name_server_is_asked_no_more_while_another_answers(stage: SimStage) -> None:
    silent = NameServer(stage.new_runtime("10.0.9.9"), NamesrvConfig(bind_address="10.0.9.9"))
    stage.at_exit(silent.close)
    await silent.start()
    answering = await stage.start_namesrv()
    await stage.broker.close()
    await stage.start_broker(namesrv_addr=f"{silent.address};{answering.address}")
    peer = await a_group(stage)
    await peer.create_topic("U")
    stage.world.pause("10.0.9.9")
    assert await assigned(peer) == "0 1 2 3"
    began = stage.world.now
    assert await assigned(peer, topic="U") == "0 1 2 3"
    assert stage.world.now - began < 0.1
    stage.world.resume("10.0.9.9")
