"""Bytes pass through the proxy on real sockets."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any, cast

import pytest

from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import FLAG_ONEWAY, RemotingCommand, SerializeType
from rewindmq.protocol.frame import encode_frame
from rewindmq.protocol.limits import MAX_FRAME_BYTES
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.remoting.runtime import Listener, Network
from rewindmq.race.history import Lab
from rewindmq.race.proxy import lane
from rewindmq.race.proxy.frame_proxy import FrameProxy
from rewindmq.race.proxy.pattern import FramePattern
from tests.race.proxy.venue import COMMIT, PATIENCE, Venue, commit


async def echo_server(exits: AsyncExitStack, talk: Any) -> str:
    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.CancelledError, ConnectionError):
            await talk(reader, writer)
        writer.transport.abort()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    exits.callback(server.close)
    host, port = server.sockets[0].getsockname()
    return f"{host}:{port}"


async def connect(exits: AsyncExitStack, address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))

    async def close() -> None:
        writer.transport.abort()
        await asyncio.wait([asyncio.ensure_future(writer.wait_closed())])

    exits.push_async_callback(close)
    return reader, writer


async def test_bytes_that_are_no_frames_pass_and_a_half_closed_client_gets_its_response() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        data = await reader.read(-1)
        writer.write(b"you said " + data)
        await writer.drain()
        writer.close()

    async with AsyncExitStack() as exits:
        venue = Venue(None, exits)
        address = await echo_server(exits, talk)
        proxy = await venue.proxy(address)
        for data in (b"GET / HTTP/1.1\r\n\r\n", b"\0\0\0\x03abc", b"\0\0\1\0 incomplete", b""):
            reader, writer = await connect(exits, proxy.address)
            writer.write(data)
            writer.write_eof()
            assert await reader.read(-1) == b"you said " + data
        assert len(venue.history) == 0


async def test_the_largest_frame_passes_in_both_directions() -> None:
    async with AsyncExitStack() as exits:
        venue = Venue(None, exits)

        def echo(connection: Connection, request: RemotingCommand) -> RemotingCommand:
            return RemotingCommand(ResponseCode.SUCCESS, body=request.body)

        # The body of a send has no limit below that of the frame.
        proxy = await venue.proxy(await venue.server({RequestCode.SEND_MESSAGE: echo}))
        client = venue.client(serialize_type=SerializeType.JSON)
        body = bytes(MAX_FRAME_BYTES - 400)
        command = RemotingCommand(RequestCode.SEND_MESSAGE, body=body)
        response = await client.invoke(proxy.address, command, PATIENCE)
        assert response.body == body


class _Reading:
    """Transport that sets an event when its owner stops reading from it."""

    def __init__(self, transport: asyncio.Transport, has_paused: asyncio.Event) -> None:
        self._transport = transport
        self._has_paused = has_paused

    def pause_reading(self) -> None:
        self._transport.pause_reading()
        self._has_paused.set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class WatchedNetwork:
    """Real sockets; ``has_paused`` is set when an accepted connection is no longer read."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self.has_paused = asyncio.Event()
        self.connect = network.connect

    async def listen(self, factory: Callable[[], asyncio.Protocol], host: str, port: int) -> Listener:
        def watched() -> asyncio.Protocol:
            protocol = factory()
            begin = protocol.connection_made

            def connection_made(transport: asyncio.BaseTransport) -> None:
                reading = _Reading(cast("asyncio.Transport", transport), self.has_paused)
                begin(cast("asyncio.Transport", reading))

            protocol.connection_made = connection_made  # type: ignore[method-assign]
            return protocol

        return await self._network.listen(watched, host, port)


# At 50 kB each, these frames do not fit into the kernel's buffers between the two ends.
MAX_UNREAD_FRAMES = 4_000


async def send_until_unread(writer: asyncio.StreamWriter, frame: bytes, network: WatchedNetwork) -> int:
    """Write frames until the proxy stops reading; return their number."""
    network.has_paused.clear()
    for count in range(1, MAX_UNREAD_FRAMES + 1):
        writer.write(frame)
        await asyncio.sleep(0)
        if network.has_paused.is_set():
            return count
    raise AssertionError(f"the proxy goes on reading after {MAX_UNREAD_FRAMES} frames")


async def test_a_paused_reader_and_held_frames_both_stop_the_sender(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lane, "MAX_KEPT_BYTES", 100_000)
    received = 0
    may_read = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal received
        await may_read.wait()
        while data := await reader.read(1 << 20):
            received += len(data)

    async with AsyncExitStack() as exits:
        venue = Venue(None, exits)
        runtime, _ = venue.place()
        network = WatchedNetwork(runtime.network)
        upstream = await echo_server(exits, talk)
        watched = replace(runtime, network=network)
        proxy = FrameProxy(watched, upstream, venue.record, client_name="consumer-A")
        exits.push_async_callback(proxy.close)
        await proxy.start()
        _, writer = await connect(exits, proxy.address)
        command = commit(1)
        command.flag = FLAG_ONEWAY
        command.body = bytes(50_000)
        frame = encode_frame(command, SerializeType.JSON)
        writer.write(frame)
        # The proxy reads nothing before it has a connection to the server.
        await venue.until(lambda: venue.frames(Lab.FRAME_ARRIVED, COMMIT))
        count = 1 + await send_until_unread(writer, frame, network)
        may_read.set()
        await venue.until(lambda: received == count * len(frame))
        hold = proxy.hold(FramePattern(COMMIT, count=None))
        count += await send_until_unread(writer, frame, network)
        # The proxy also keeps the bytes that one read brings beyond the limit.
        assert 2 <= hold.caught < 20
        hold.release()
        await venue.until(lambda: received == count * len(frame))
