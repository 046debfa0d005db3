"""Responses of a server: order, serialization type, errors, limits."""

from __future__ import annotations

import asyncio
import logging

import pytest

from rewindmq.protocol.body.route import BrokerData, TopicRouteData
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.codec.request_limits import request_limit
from rewindmq.protocol.command import FLAG_ONEWAY, RemotingCommand, SerializeType
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.limits import MAX_FRAME_BYTES
from rewindmq.protocol.remoting.connection import Connection, Handler
from rewindmq.protocol.remoting.dispatch import MAX_REQUEST_BYTES_IN_PROGRESS, MAX_REQUESTS_IN_PROGRESS
from tests.protocol.remoting.remoting_stage import RemotingStage

ECHO, HOLD, RELEASE, REFUSE, CRASH, LATER, LATER_CRASH, CANCELLED = range(10, 18)


def echo(connection: Connection, request: RemotingCommand) -> RemotingCommand:
    return RemotingCommand(ResponseCode.SUCCESS, body=request.body)


class Held:
    """Handlers that suspend requests, and let them go in reverse order."""

    def __init__(self) -> None:
        self.requests: list[tuple[Connection, RemotingCommand]] = []

    def hold(self, connection: Connection, request: RemotingCommand) -> None:
        self.requests.append((connection, request))

    def release(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        while self.requests:
            owner, held = self.requests.pop()
            owner.reply(held, RemotingCommand(0, body=held.body))
        return RemotingCommand(0, body=b"released")


def refuse(connection: Connection, request: RemotingCommand) -> RemotingCommand:
    raise RequestError(ResponseCode.TOPIC_NOT_EXIST, "no such topic")


def crash(connection: Connection, request: RemotingCommand) -> RemotingCommand:
    raise KeyError("inside")


async def later(connection: Connection, request: RemotingCommand) -> RemotingCommand:
    await asyncio.sleep(0)
    return RemotingCommand(0, body=request.body)


async def later_crash(connection: Connection, request: RemotingCommand) -> RemotingCommand:
    await asyncio.sleep(0)
    raise RequestError(ResponseCode.NO_PERMISSION, "not allowed")


def cancelled(connection: Connection, request: RemotingCommand) -> asyncio.Future[RemotingCommand]:
    future: asyncio.Future[RemotingCommand] = asyncio.get_running_loop().create_future()
    future.cancel()
    return future


HANDLERS: dict[int, Handler] = {
    ECHO: echo,
    REFUSE: refuse,
    CRASH: crash,
    LATER: later,
    LATER_CRASH: later_crash,
    CANCELLED: cancelled,
}


async def test_a_suspended_request_holds_nothing_back_and_answers_come_in_any_order(
    stage: RemotingStage,
) -> None:
    held = Held()
    server = await stage.server({ECHO: echo, HOLD: held.hold, RELEASE: held.release})
    peer = await stage.raw(server)
    peer.send(
        RemotingCommand(HOLD, opaque=1, body=b"first"),
        RemotingCommand(HOLD, opaque=2, body=b"second"),
        RemotingCommand(ECHO, opaque=3, body=b"third"),
    )
    answer = await peer.receive()
    assert (answer.opaque, answer.body) == (3, b"third")
    peer.send(RemotingCommand(RELEASE, opaque=4))
    rest = [await peer.receive() for _ in range(3)]
    assert [(a.opaque, a.body) for a in rest] == [(2, b"second"), (1, b"first"), (4, b"released")]


@pytest.mark.parametrize("serialize_type", list(SerializeType))
async def test_an_unknown_code_returns_3_in_the_serialization_type_of_the_request(
    stage: RemotingStage, serialize_type: SerializeType
) -> None:
    peer = await stage.raw(await stage.server({}))
    peer.send(RemotingCommand(9999, opaque=-7), serialize_type=serialize_type)
    answer = await peer.receive()
    assert answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
    assert answer.remark == " request type 9999 not supported"
    assert (answer.opaque, answer.flag, answer.serialize_type) == (-7, 1, serialize_type)


@pytest.mark.parametrize("serialize_type", list(SerializeType))
@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (REFUSE, (ResponseCode.TOPIC_NOT_EXIST, "no such topic")),
        (CRASH, (ResponseCode.SYSTEM_ERROR, "KeyError: 'inside'")),
        (LATER_CRASH, (ResponseCode.NO_PERMISSION, "not allowed")),
        (CANCELLED, (ResponseCode.SYSTEM_ERROR, "CancelledError: ")),
    ],
)
async def test_a_handler_that_fails_gives_a_response_with_code_and_remark(
    stage: RemotingStage, serialize_type: SerializeType, code: int, expected: tuple[int, str]
) -> None:
    peer = await stage.raw(await stage.server(HANDLERS))
    peer.send(
        RemotingCommand(code, opaque=5),
        RemotingCommand(LATER, opaque=6, body=b"ok"),
        serialize_type=serialize_type,
    )
    answers = {answer.opaque: answer for answer in [await peer.receive(), await peer.receive()]}
    assert (answers[5].code, answers[5].remark, answers[5].serialize_type) == (*expected, serialize_type)
    assert answers[6].body == b"ok"


async def test_an_unforeseen_error_is_logged_with_its_request_code(
    stage: RemotingStage, caplog: pytest.LogCaptureFixture
) -> None:
    client = stage.client()
    server = await stage.server(HANDLERS)
    with caplog.at_level(logging.ERROR):
        await client.invoke(f"{server.host}:{server.port}", RemotingCommand(CRASH))
    assert [record.getMessage() for record in caplog.records] == [f"request code {CRASH} failed"]


async def test_a_oneway_request_is_never_answered_whatever_happens(stage: RemotingStage) -> None:
    held = Held()
    server = await stage.server({**HANDLERS, HOLD: held.hold, RELEASE: held.release})
    peer = await stage.raw(server)
    codes = [ECHO, HOLD, REFUSE, CRASH, LATER, LATER_CRASH, CANCELLED, 9999]
    peer.send(*(RemotingCommand(code, opaque=code, flag=FLAG_ONEWAY) for code in codes))
    peer.send(RemotingCommand(RELEASE, opaque=1))
    assert (await peer.receive()).opaque == 1
    # Tasks that started before this one would have responded by now.
    peer.send(RemotingCommand(LATER, opaque=2))
    assert (await peer.receive()).opaque == 2


@pytest.mark.parametrize(
    ("version", "ext", "broker_ids"),
    [
        (401, None, b'{"0":"h:1"}'),
        (399, None, b'{0:"h:1"}'),
        (1, {"acceptStandardJsonOnly": "true"}, b'{"0":"h:1"}'),
    ],
)
async def test_strict_json_is_for_requesters_that_announce_it(
    stage: RemotingStage, version: int, ext: dict[str, str] | None, broker_ids: bytes
) -> None:
    broker = BrokerData(cluster="C", broker_name="b", broker_addrs={0: "h:1"})
    route = TopicRouteData(broker_datas=[broker], queue_datas=[])
    server = await stage.server({105: lambda connection, request: RemotingCommand(0, body=route)})
    peer = await stage.raw(server)
    peer.send(
        RemotingCommand(105, opaque=1, version=version, ext_fields=ext), serialize_type=SerializeType.JSON
    )
    body = (await peer.receive()).body
    assert isinstance(body, bytes)
    assert b'"brokerAddrs":' + broker_ids in body


async def test_an_answer_too_large_for_a_frame_becomes_code_1(stage: RemotingStage) -> None:
    server = await stage.server({ECHO: lambda c, r: RemotingCommand(0, body=bytes(MAX_FRAME_BYTES))})
    peer = await stage.raw(server)
    peer.send(RemotingCommand(ECHO, opaque=1))
    answer = await peer.receive()
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert (answer.remark or "").startswith("FrameError: frame of 16777")


async def test_requests_beyond_the_limit_return_system_busy(stage: RemotingStage) -> None:
    held = Held()
    server = await stage.server({ECHO: echo, HOLD: held.hold})
    peer = await stage.raw(server)
    peer.send(*(RemotingCommand(HOLD, opaque=n) for n in range(MAX_REQUESTS_IN_PROGRESS)))
    peer.send(RemotingCommand(HOLD, opaque=-1))
    answer = await peer.receive()
    assert (answer.opaque, answer.code) == (-1, ResponseCode.SYSTEM_BUSY)
    assert answer.remark == "[OVERLOAD]system busy, start flow control for a while"
    held.release(*held.requests[0])
    assert [(await peer.receive()).code for _ in range(MAX_REQUESTS_IN_PROGRESS)].count(0) == 10_000
    peer.send(RemotingCommand(ECHO, opaque=1))
    assert (await peer.receive()).code == ResponseCode.SUCCESS


async def test_a_request_is_refused_while_the_ones_in_progress_have_too_many_bytes(
    stage: RemotingStage,
) -> None:
    gate = asyncio.Event()

    async def wait(connection: Connection, request: RemotingCommand) -> RemotingCommand:
        await gate.wait()
        return RemotingCommand(0)

    held = RequestCode.SEND_BATCH_MESSAGE
    server = await stage.server({ECHO: echo, held: wait})
    peer, other = await stage.raw(server), await stage.raw(server)
    part = bytes(8 << 20)
    count = MAX_REQUEST_BYTES_IN_PROGRESS // len(part)
    peer.send(*(RemotingCommand(held, opaque=n, body=part) for n in range(count)))
    peer.send(RemotingCommand(held, opaque=-1))
    answer = await peer.receive()
    assert (answer.opaque, answer.code) == (-1, ResponseCode.SYSTEM_BUSY)
    other.send(RemotingCommand(ECHO, body=b"served"))
    assert (await other.receive()).body == b"served"
    gate.set()
    assert {(await peer.receive()).code for _ in range(count)} == {ResponseCode.SUCCESS}
    peer.send(RemotingCommand(ECHO, opaque=1))
    assert (await peer.receive()).code == ResponseCode.SUCCESS


async def test_requests_that_a_task_leaves_for_a_later_answer_count_until_then(stage: RemotingStage) -> None:
    held = Held()

    async def leave(connection: Connection, request: RemotingCommand) -> None:
        held.hold(connection, request)

    server = await stage.server({ECHO: echo, HOLD: leave})
    peer = await stage.raw(server)
    peer.send(*(RemotingCommand(HOLD, opaque=n) for n in range(MAX_REQUESTS_IN_PROGRESS)))
    await stage.eventually(lambda: len(held.requests) == MAX_REQUESTS_IN_PROGRESS)
    peer.send(RemotingCommand(ECHO, opaque=-1))
    assert (await peer.receive()).code == ResponseCode.SYSTEM_BUSY
    held.release(*held.requests[0])
    assert {(await peer.receive()).code for _ in range(MAX_REQUESTS_IN_PROGRESS)} == {0}
    peer.send(RemotingCommand(ECHO, opaque=1))
    assert (await peer.receive()).code == ResponseCode.SUCCESS


@pytest.mark.parametrize("serialize_type", list(SerializeType))
async def test_a_server_calls_its_client_in_the_serialization_type_of_the_latest_heartbeat(
    stage: RemotingStage, serialize_type: SerializeType
) -> None:
    connections: list[Connection] = []

    def heartbeat(connection: Connection, request: RemotingCommand) -> RemotingCommand:
        connection.peer_serialize_type = request.serialize_type
        connections.append(connection)
        return RemotingCommand(0)

    seen: list[RemotingCommand] = []

    def notified(connection: Connection, request: RemotingCommand) -> RemotingCommand:
        seen.append(request)
        return RemotingCommand(0, body=b"noted")

    server = await stage.server({34: heartbeat})
    client = stage.client(handlers={40: notified, 307: notified}, serialize_type=serialize_type)
    await client.invoke(f"{server.host}:{server.port}", RemotingCommand(34))
    connections[0].send_oneway(RemotingCommand(40))
    answer = await connections[0].invoke(RemotingCommand(307), 3.0)
    assert answer.body == b"noted"
    assert [(r.code, r.is_oneway, r.serialize_type) for r in seen] == [
        (40, True, serialize_type),
        (307, False, serialize_type),
    ]
    # ali-ons takes opaque 0 for "unset" (docs/spec/protocol.md T12).
    assert all(request.opaque >= 1 for request in seen)


@pytest.mark.parametrize("code", [RequestCode.HEART_BEAT, RequestCode.UPDATE_BROKER_CONFIG])
async def test_a_body_above_the_limit_of_its_code_is_refused_before_the_handler(
    stage: RemotingStage, code: RequestCode
) -> None:
    server = await stage.server({code: echo})
    client = stage.client()
    limit = request_limit(code).body_bytes
    address = f"127.0.0.1:{server.port}"
    at_the_limit = await client.invoke(address, RemotingCommand(code, body=bytes(limit)))
    assert (at_the_limit.code, at_the_limit.body) == (ResponseCode.SUCCESS, bytes(limit))
    refused = await client.invoke(address, RemotingCommand(code, body=bytes(limit + 1)))
    assert (refused.code, refused.body) == (ResponseCode.SYSTEM_ERROR, None)
    assert refused.remark == (
        f"the body of {code.name} ({code:d}) has {limit + 1} bytes, at most {limit} are allowed"
    )
    assert (await client.invoke(address, RemotingCommand(code, body=b"alive"))).body == b"alive"
