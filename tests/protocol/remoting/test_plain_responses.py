"""Plain responses (``protocol/remoting/plain_responses.py``) give the header that any response gives."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindmq.protocol.command import FLAG_ONEWAY, FLAG_RESPONSE, RemotingCommand, SerializeType
from rewindmq.protocol.errors import (
    ConnectionLostError,
    HeaderError,
    RequestTimeoutError,
    UnreadableResponseError,
)
from rewindmq.protocol.frame import FrameDecoder, FrameStart, encode_frame
from rewindmq.protocol.header.send import SendMessageRequestHeaderV2, SendMessageResponseHeader
from rewindmq.protocol.remoting import pending as pending_module
from rewindmq.protocol.remoting.client import RemotingClient
from rewindmq.protocol.remoting.connection import Connection, Handler
from rewindmq.protocol.remoting.pending import MAX_OPAQUE
from rewindmq.protocol.remoting.plain_responses import Response, complete_plain
from rewindmq.protocol.remoting.runtime import system_runtime
from tests.protocol.remoting.remoting_stage import RawPeer, RemotingStage
from tests.protocol.remoting.test_writes import RecordingTransport, frames

DECODE = msgspec.msgpack.Decoder(SendMessageResponseHeader, strict=False).decode
OPAQUES = st.sampled_from([1, 127, 128, 255, 256, 65_535, 65_536, 2**31 - 1]) | st.integers(1, 2**31 - 1)


@given(
    opaque=OPAQUES,
    version=st.sampled_from([0, 100, 200, 401, 70_000]),
    properties=st.text(max_size=300),
    body=st.binary(max_size=40),
)
def test_a_frame_start_gives_the_bytes_of_encode_frame(
    opaque: int, version: int, properties: str, body: bytes
) -> None:
    header = SendMessageRequestHeaderV2("g", "t", "d", 4, 0, 0, 1_700_000_000_000, 0, properties)
    command = RemotingCommand(310, header, body, version=version, opaque=opaque)
    start = msgspec.msgpack.encode((310, command.language, version, 0))[:-1]
    start = bytes([0x97]) + start[1:]
    rest = b"\x00\xc0" + msgspec.msgpack.encode(header)
    frame = FrameStart(start).encode(opaque, len(rest), len(body)) + rest + body
    assert frame == encode_frame(command, SerializeType.MSGPACK)


class _Future:
    """The part of a future that ``complete_plain`` uses."""

    def __init__(self) -> None:
        self.header: Any = None

    def done(self) -> bool:
        return self.header is not None

    def set_result(self, header: Any) -> None:
        self.header = header


_EXT: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "msgId": st.text(max_size=40) | st.none(),
        "queueId": st.integers(-1, 3) | st.sampled_from(["2", "x", 2**31, 2**70, 1.5]),
        "queueOffset": st.integers(-1, 2**40) | st.just("77"),
        "MSG_REGION": st.none() | st.text(max_size=5),
        "TRACE_ON": st.booleans(),
        "other": st.binary(max_size=3) | st.lists(st.integers(0, 3), max_size=2),
    },
)
_FRAMES = st.tuples(
    st.sampled_from([0, 0, 0, 1, 300, -1]),
    st.sampled_from([0, 12, 12, 127, 128]),
    st.sampled_from([0, 255, 401, 401, 401, 65_535, 65_536]),
    OPAQUES,
    st.sampled_from([1, 1, 1, 0, 3, 128]),
    st.sampled_from([None, None, None, "remark"]),
    _EXT | st.none() | st.just({f"k{number}": number for number in range(20)}) | st.just([1]),
    st.sampled_from([b"", b"", b"body", bytes(2_000)]),
)


def _header_of(frame: bytes) -> Any:
    """Return the typed header that the general way gives; None if it refuses the response."""
    commands = FrameDecoder().feed(frame)
    if not commands:
        return None
    try:
        return commands[0].decode_header(SendMessageResponseHeader)
    except HeaderError:
        return None


@given(fields=_FRAMES, before=st.binary(max_size=3), cut=st.integers(0, 40) | st.just(0))
def test_a_plain_response_gives_the_same_header(fields: Any, before: bytes, cut: int) -> None:
    *head, ext, body = fields
    try:
        header = msgspec.msgpack.encode((*head, ext))
    except OverflowError:
        return
    frame = (len(header) + 4 + len(body)).to_bytes(4, "big") + b"\x02" + len(header).to_bytes(3, "big")
    frame += header + body
    code, opaque, flag, remark = head[0], head[3], head[4], head[5]
    future: Any = _Future()
    table: dict[int, Any] = {opaque: (future, 0.0, 0.0, DECODE)}
    data = before + frame[: len(frame) - cut]
    end = complete_plain(table, data, len(before))
    if end == len(before):
        assert opaque in table
        assert future.header is None
        return
    assert end == len(data)
    assert not table
    assert not cut
    assert (code, flag, remark, body) == (0, 1, None, b"")
    assert future.header == _header_of(frame)


@pytest.mark.parametrize("opaque", [256, 65_535, 65_536, 2**31 - 1])
def test_the_usual_response_is_plain(opaque: int) -> None:
    header = SendMessageResponseHeader("7F" * 16, 3, 12_345, None, "DefaultRegion", True)
    frame = encode_frame(RemotingCommand(0, header, opaque=opaque, flag=FLAG_RESPONSE), SerializeType.MSGPACK)
    future: Any = _Future()
    assert complete_plain({opaque: (future, 0.0, 0.0, DECODE)}, frame * 2, 0) == len(frame)
    assert future.header == header


_START = FrameStart(msgspec.msgpack.encode((310, 12, 401, 0, 0, 0, 0))[:-4])
_REST = b"\x00\xc0\xc0"


def _invoke(connection: Connection, timeout: float = 3.0) -> asyncio.Future[Response] | None:
    return connection.invoke_encoded(_START, _REST, b"body", timeout, DECODE)


def _connection(handlers: Mapping[int, Handler], opaque: int = 1_000) -> Connection:
    """A client's connection over a transport that keeps what is written; the next opaque has two bytes."""
    client = RemotingClient(system_runtime(), handlers)
    connection = Connection(client, SerializeType.MSGPACK, accepted=False)
    connection.connection_made(RecordingTransport())
    connection._pending.opaque = opaque
    return connection


@given(
    kinds=st.lists(st.sampled_from(["plain", "body", "refused", "ordinary", "request"]), max_size=8),
    cuts=st.lists(st.integers(0, 900), max_size=8),
)
def test_responses_and_requests_are_taken_in_their_order(kinds: list[str], cuts: list[int]) -> None:
    """Plain responses, others, responses to ordinary requests, and the peer's requests, in any pieces."""
    requests: list[int] = []
    done: list[int] = []

    async def main() -> None:
        connection = _connection({77: lambda connection, request: requests.append(request.opaque)})
        stream = b""
        futures: dict[int, Any] = {}
        for number, kind in enumerate(kinds):
            if kind == "request":
                stream += frames(RemotingCommand(77, opaque=number, flag=FLAG_ONEWAY))
                continue
            ordinary = kind == "ordinary"
            future: Any = connection.invoke(RemotingCommand(1), 3.0) if ordinary else _invoke(connection)
            future.add_done_callback(lambda ended, number=number: done.append(number))
            futures[number] = future
            response = RemotingCommand(
                int(kind == "refused"),
                SendMessageResponseHeader(kind, 0, number),
                b"body" if kind == "body" else None,
                opaque=connection._pending.opaque,
                flag=FLAG_RESPONSE,
            )
            stream += frames(response)
        edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
        for start, end in itertools.pairwise(edges):
            connection.data_received(stream[start:end])
        for number, future in futures.items():
            result = await future
            if isinstance(result, RemotingCommand):
                # A plain response in pieces becomes a command, too.
                assert kinds[number] != "plain" or cuts
                result = result.decode_header(SendMessageResponseHeader)
            else:
                assert kinds[number] == "plain"
            assert (result.msg_id, result.queue_offset) == (kinds[number], number)
        connection.connection_lost(None)

    asyncio.run(main())
    assert requests == [number for number, kind in enumerate(kinds) if kind == "request"]
    assert done == [number for number, kind in enumerate(kinds) if kind != "request"]


async def test_an_encoded_request_is_refused_where_invoke_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = _connection({})
    connection.peer_serialize_type = SerializeType.JSON
    assert _invoke(connection) is None
    connection.peer_serialize_type = SerializeType.MSGPACK
    with monkeypatch.context() as patch:
        patch.setattr(pending_module, "MAX_PENDING", 1)
        waiting = _invoke(connection)
        assert waiting is not None
        assert _invoke(connection) is None
    connection.connection_lost(None)
    assert _invoke(connection) is None
    with pytest.raises(ConnectionLostError):
        await waiting


async def test_an_encoded_request_skips_opaques_in_use_and_wraps() -> None:
    connection = _connection({}, opaque=MAX_OPAQUE - 1)
    futures = [_invoke(connection) for _ in range(3)]
    connection._pending.opaque = MAX_OPAQUE - 1
    futures.append(_invoke(connection))
    await asyncio.sleep(0)
    transport = connection._transport
    assert isinstance(transport, RecordingTransport)
    (written,) = transport.writes
    assert [(request.code, request.opaque, request.body) for request in written] == [
        (310, opaque, b"body") for opaque in (MAX_OPAQUE, 1, 2, 3)
    ]
    connection.connection_lost(None)
    for future in futures:
        assert future is not None
        with pytest.raises(ConnectionLostError):
            await future


async def test_an_encoded_request_times_out(stage: RemotingStage) -> None:
    async def talk(peer: RawPeer) -> None:
        peer.answer(await peer.receive())
        await peer.receive_if_any()
        await peer.receive_if_any()

    address = await stage.raw_server(talk)
    client = stage.client()
    await client.invoke(address, RemotingCommand(1))
    connection = client.ready_connection(address)
    assert connection is not None
    future = _invoke(connection, timeout=0.01)
    assert future is not None
    with pytest.raises(RequestTimeoutError, match=r"no answer from .* within 10 ms"):
        await future
    assert len(connection._pending) == 0


async def test_nothing_is_taken_after_an_invalid_frame(stage: RemotingStage) -> None:
    async def talk(peer: RawPeer) -> None:
        peer.answer(await peer.receive())
        first, second = await peer.receive(), await peer.receive()
        stored = [
            RemotingCommand(0, SendMessageResponseHeader("id", 0, 7), opaque=each.opaque, flag=FLAG_RESPONSE)
            for each in (first, second)
        ]
        unknown_type = b"\x00\x00\x00\x08\x09\x00\x00\x04abcd"
        peer.writer.write(frames(stored[0]) + unknown_type + frames(stored[1]))
        await peer.receive_if_any()

    address = await stage.raw_server(talk)
    client = stage.client()
    await client.invoke(address, RemotingCommand(1))
    connection = client.ready_connection(address)
    assert connection is not None
    connection._pending.opaque = 1_000
    before, after = _invoke(connection), _invoke(connection)
    assert before is not None
    assert after is not None
    assert await before == SendMessageResponseHeader("id", 0, 7)
    with pytest.raises(UnreadableResponseError, match="unknown serialize type 9"):
        await after
