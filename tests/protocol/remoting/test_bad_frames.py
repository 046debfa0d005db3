"""Invalid bytes close the sender's connection and affect no other connection.

Specification: docs/spec/protocol.md 1.1.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import ssl
import struct
from collections.abc import Coroutine

import pytest

from rewindmq.protocol.codec.foreign import ANSWERS_HTTP, SPEAKS_GRPC, SPEAKS_HTTP, SPEAKS_TLS
from rewindmq.protocol.command import RemotingCommand, SerializeType
from rewindmq.protocol.errors import UnreadableResponseError
from rewindmq.protocol.frame import encode_frame
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.remoting.state import CloseReason
from rewindmq.protocol.remoting.traffic.repeated_reports import REMEMBERED_ADDRESSES, RepeatedReports
from tests.protocol.remoting.remoting_stage import RawPeer, RemotingStage

ECHO = 10


def echo(connection: Connection, request: RemotingCommand) -> RemotingCommand:
    return RemotingCommand(0, body=request.body)


GARBAGE = {
    "text": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "zeroes": bytes(64),
    "oversized": struct.pack(">II", 16_777_213, 2 << 24 | 10),
    "header longer than frame": struct.pack(">II", 20, 2 << 24 | 100) + bytes(16),
    "unknown codec": struct.pack(">II", 8, 9 << 24 | 4) + b"{}{}",
    "broken json": struct.pack(">II", 8, 4) + b"{]{]",
    "broken msgpack": struct.pack(">II", 8, 2 << 24 | 4) + b"\xc1\xc1\xc1\xc1",
    "tls hello": bytes.fromhex("160301020001000100000000000000"),
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE.keys())
async def test_garbage_closes_its_own_connection_only(
    stage: RemotingStage, garbage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    reasons: list[CloseReason] = []
    server = await stage.server({ECHO: echo}, on_close=lambda connection, reason: reasons.append(reason))
    client, address = stage.client(), f"{server.host}:{server.port}"
    await client.invoke(address, RemotingCommand(ECHO))
    peer = await stage.raw(server)
    good = encode_frame(RemotingCommand(ECHO, opaque=1, body=b"good"), SerializeType.JSON)
    peer.writer.write(good + garbage + good)
    answer = await peer.receive()
    assert (answer.opaque, answer.body) == (1, b"good")
    assert await peer.receive_if_any() is None
    assert (await client.invoke(address, RemotingCommand(ECHO, body=b"alive"))).body == b"alive"
    assert reasons == [CloseReason.BAD_FRAME]
    warnings = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(warnings) == 1
    assert warnings[0].startswith("closing 127.0.0.1:")
    assert "\n" not in warnings[0]


async def test_a_tls_connection_is_closed_with_advice_in_the_log(
    stage: RemotingStage, caplog: pytest.LogCaptureFixture
) -> None:
    server = await stage.server({ECHO: echo})
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with pytest.raises(ConnectionError):
        await asyncio.open_connection(server.host, server.port, ssl=context)
    await stage.eventually(lambda: bool(caplog.records))
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage().endswith(
        ": it speaks TLS, which is not served here; switch it off in the client (Java: -Dtls.enable=false)"
    )


FOREIGN = {
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n": SPEAKS_GRPC,
    b"GET /metrics HTTP/1.1\r\n\r\n": SPEAKS_HTTP,
    b"POST / HTTP/1.1\r\n\r\n": SPEAKS_HTTP,
    b"PUT / HTTP/1.1\r\n\r\n": SPEAKS_HTTP,
    b"HEAD / HTTP/1.1\r\n\r\n": SPEAKS_HTTP,
    b"OPTIONS * HTTP/1.1\r\n\r\n": SPEAKS_HTTP,
    b"\x16\x03\x01\x02\x00": SPEAKS_TLS,
}


@pytest.mark.parametrize(("first", "sentence"), FOREIGN.items())
async def test_a_client_of_another_protocol_is_named_once_in_the_log(
    stage: RemotingStage, first: bytes, sentence: str, caplog: pytest.LogCaptureFixture
) -> None:
    reasons: list[CloseReason] = []
    server = await stage.server({ECHO: echo}, on_close=lambda connection, reason: reasons.append(reason))
    for _ in range(3):
        peer = await stage.raw(server)
        peer.writer.write(first)
        assert await peer.receive_if_any() is None
    assert reasons == [CloseReason.BAD_FRAME] * 3
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage().startswith("closing 127.0.0.1:")
    assert record.getMessage().endswith(f": {sentence}")


async def test_a_client_that_reaches_an_http_server_is_told(stage: RemotingStage) -> None:
    async def talk(peer: RawPeer) -> None:
        await peer.receive()
        peer.writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await peer.receive()

    client = stage.client()
    with pytest.raises(UnreadableResponseError, match=ANSWERS_HTTP):
        await client.invoke(await stage.raw_server(talk), RemotingCommand(ECHO))


def test_an_address_is_reported_again_after_a_minute_and_few_are_remembered() -> None:
    reports = RepeatedReports()
    assert [reports.is_due("a", now) for now in (0.0, 59.9, 60.0, 60.1)] == [True, False, True, False]
    assert reports.is_due("b", 60.1)
    for number in range(REMEMBERED_ADDRESSES - 1):
        assert reports.is_due(f"host-{number}", 61.0)
    # "b" is among the remembered addresses, "a" is not.
    assert not reports.is_due("b", 61.0)
    assert reports.is_due("a", 61.0)


async def test_a_frame_cut_short_is_just_a_connection_that_ends(
    stage: RemotingStage, caplog: pytest.LogCaptureFixture
) -> None:
    reasons: list[CloseReason] = []
    server = await stage.server({ECHO: echo}, on_close=lambda connection, reason: reasons.append(reason))
    peer = await stage.raw(server)
    peer.writer.write(encode_frame(RemotingCommand(ECHO, body=b"whole"), SerializeType.MSGPACK)[:-2])
    peer.writer.write_eof()
    assert await peer.receive_if_any() is None
    await stage.eventually(lambda: bool(reasons))
    assert reasons == [CloseReason.PEER]
    assert not caplog.records


async def test_garbage_from_a_server_fails_the_requests_to_it(stage: RemotingStage) -> None:
    async def talk(peer: RawPeer) -> None:
        await peer.receive()
        peer.writer.write(b"not a frame at all")
        await peer.receive()

    reasons: list[CloseReason] = []
    client = stage.client(on_close=lambda connection, reason: reasons.append(reason))
    address = await stage.raw_server(talk)
    with pytest.raises(UnreadableResponseError, match="bytes exceeds"):
        await client.invoke(address, RemotingCommand(ECHO))
    await stage.eventually(lambda: bool(reasons))
    assert reasons == [CloseReason.BAD_FRAME]


async def test_a_request_before_garbage_in_the_same_read_leaves_no_coroutine(stage: RemotingStage) -> None:
    handled: list[Coroutine[None, None, RemotingCommand]] = []

    async def answer() -> RemotingCommand:
        return RemotingCommand(0)

    def handle(connection: Connection, request: RemotingCommand) -> Coroutine[None, None, RemotingCommand]:
        handled.append(answer())
        return handled[-1]

    server = await stage.server({ECHO: handle})
    peer = await stage.raw(server)
    peer.writer.write(encode_frame(RemotingCommand(ECHO), SerializeType.JSON) + GARBAGE["text"])
    assert await peer.receive_if_any() is None
    assert [inspect.getcoroutinestate(each) for each in handled] == [inspect.CORO_CLOSED]
