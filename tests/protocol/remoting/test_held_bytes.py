"""Unfinished frames and unread responses: a limit in time, and a limit in bytes for all connections."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import pytest
import uvloop

from rewindmq.protocol.command import RemotingCommand, SerializeType
from rewindmq.protocol.frame import FrameDecoder, encode_frame
from rewindmq.protocol.remoting.client import RemotingClient
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.remoting.runtime import system_runtime
from rewindmq.protocol.remoting.server import RemotingServer
from rewindmq.protocol.remoting.state import CloseReason
from rewindmq.protocol.remoting.traffic.held_bytes import HeldBytes, Traffic
from rewindmq.race.sim import World
from tests.protocol.remoting.remoting_stage import RawPeer, RemotingStage

ECHO, BIG = 10, 11
KIB = 1_024
REPLY = bytes(256 * KIB)
LOOPS = pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop])


def echo(connection: Connection, request: RemotingCommand) -> RemotingCommand:
    return RemotingCommand(0, body=request.body)


def big(connection: Connection, request: RemotingCommand) -> RemotingCommand:
    return RemotingCommand(0, body=REPLY)


def frame(size: int) -> bytes:
    return encode_frame(RemotingCommand(ECHO, body=bytes(size)), SerializeType.MSGPACK)


class Dripping(asyncio.Protocol):
    """A peer in a ``World`` that sends what the test passes, and notes when it is closed."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.closed_at: float | None = None
        self.received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed_at = self.world.now


class Holder:
    """A connection as ``HeldBytes`` sees it."""

    def __init__(self, name: str) -> None:
        self.remote_address = name
        self.reasons: list[CloseReason] = []

    def abort(self, reason: CloseReason) -> None:
        self.reasons.append(reason)


async def dripping(world: World, server: RemotingServer) -> Dripping:
    peer = Dripping(world)
    await world.runtime("attacker").network.connect(lambda: peer, server.host, server.port)
    return peer


async def served(world: World, traffic: Traffic) -> tuple[RemotingServer, list[CloseReason]]:
    reasons: list[CloseReason] = []
    server = RemotingServer(
        world.runtime("server"),
        {ECHO: echo, BIG: big},
        on_close=lambda connection, reason: reasons.append(reason),
        traffic=traffic,
    )
    await server.start("server", 10911)
    return server, reasons


def test_one_byte_at_a_time_does_not_keep_a_connection(world: World) -> None:
    async def main() -> None:
        traffic = Traffic(frame_seconds=60.0)
        server, reasons = await served(world, traffic)
        peer = await dripping(world, server)
        began = world.now
        for byte in frame(100):
            if peer.closed_at is not None:
                break
            peer.transport.write(bytes([byte]))
            await world.sleep(50)
        assert reasons == [CloseReason.SLOW_FRAME]
        assert peer.closed_at is not None
        assert peer.closed_at - began == pytest.approx(60.0, abs=0.1)
        assert traffic.unfinished.total == 0
        await server.close()

    world.run(main())


def test_a_frame_that_ends_in_time_is_served_and_the_next_has_the_whole_time(world: World) -> None:
    async def main() -> None:
        traffic = Traffic(frame_seconds=60.0)
        server, reasons = await served(world, traffic)
        peer = await dripping(world, server)
        data = frame(100)
        for _ in range(3):
            peer.transport.write(data[:50])
            await world.sleep(59)
            assert traffic.unfinished.total == 50
            peer.transport.write(data[50:])
            await world.sleep(1)
        assert traffic.unfinished.total == 0
        assert len(FrameDecoder().feed(peer.received)) == 3
        assert (reasons, peer.closed_at) == ([], None)
        peer.transport.close()
        await server.close()

    world.run(main())


def test_a_frame_that_begins_in_the_read_that_ended_another_has_a_deadline_of_its_own(world: World) -> None:
    async def main() -> None:
        traffic = Traffic(frame_seconds=60.0)
        server, reasons = await served(world, traffic)
        peer = await dripping(world, server)
        data = frame(100)
        peer.transport.write(data[:50])
        for _ in range(4):
            await world.sleep(40)
            peer.transport.write(data[50:] + data[:50])
        await world.sleep(59)
        assert reasons == []
        await world.sleep(2)
        assert reasons == [CloseReason.SLOW_FRAME]
        await server.close()

    world.run(main())


def test_no_time_passes_for_a_frame_while_the_server_does_not_read(world: World) -> None:
    async def main() -> None:
        server = RemotingServer(
            world.runtime("server"), {BIG: big}, idle_seconds=1_000.0, traffic=Traffic(frame_seconds=60.0)
        )
        await server.start("server", 10911)
        peer = await dripping(world, server)
        peer.transport.pause_reading()
        request = encode_frame(RemotingCommand(BIG), SerializeType.MSGPACK)
        peer.transport.write(request + request[:10])
        await world.sleep(200)
        peer.transport.resume_reading()
        await world.sleep(59)
        peer.transport.write(request[10:])
        await world.sleep(1)
        assert peer.closed_at is None
        assert len(peer.received) > 2 * len(REPLY)
        peer.transport.close()
        await server.close()

    world.run(main())


def test_above_the_limit_the_oldest_unfinished_frames_go_and_others_are_served(world: World) -> None:
    async def main() -> None:
        half = frame(64 * KIB)[: 32 * KIB]
        traffic = Traffic(max_unfinished_bytes=4 * len(half))
        server, reasons = await served(world, traffic)
        stalled = []
        for _ in range(4):
            stalled.append(await dripping(world, server))
            stalled[-1].transport.write(half)
            await world.sleep(1)
        assert traffic.unfinished.total == traffic.unfinished.limit
        assert reasons == []
        # One byte beyond, from a peer that completes its frames.
        honest = await dripping(world, server)
        request = frame(10)
        honest.transport.write(request[:1])
        await world.sleep(1)
        assert reasons == [CloseReason.SLOW_FRAME]
        assert stalled[0].closed_at is not None
        honest.transport.write(request[1:])
        client = RemotingClient(world.runtime("client"))
        await client.invoke("server:10911", RemotingCommand(ECHO, body=bytes(100 * KIB)))
        assert len(FrameDecoder().feed(honest.received)) == 1
        assert traffic.unfinished.total == 3 * len(half)
        for peer in stalled[1:]:
            peer.transport.close()
        await world.sleep(1)
        assert traffic.unfinished.total == 0
        honest.transport.close()
        await client.close()
        await server.close()

    world.run(main())


def test_a_connection_keeps_its_age_until_it_holds_nothing() -> None:
    held = HeldBytes("bytes", 10, CloseReason.OVERFLOW)
    old, young = Holder("old"), Holder("young")
    held.hold(old, 1)
    held.hold(young, 5)
    held.hold(old, 5)
    assert (held.total, old.reasons, young.reasons) == (10, [], [])
    held.hold(young, 6)
    assert (held.total, old.reasons, young.reasons) == (6, [CloseReason.OVERFLOW], [])
    held.hold(old, 4)
    held.release(young)
    held.hold(young, 7)
    assert (old.reasons, young.reasons) == ([CloseReason.OVERFLOW] * 2, [])
    held.release(young)
    held.release(young)
    assert held.total == 0


def test_a_connection_that_holds_too_much_alone_is_closed() -> None:
    held = HeldBytes("bytes", 10, CloseReason.OVERFLOW)
    holder = Holder("alone")
    held.hold(holder, 11)
    assert (held.total, holder.reasons) == (0, [CloseReason.OVERFLOW])


def test_many_short_pieces_of_a_frame_take_little_more_than_its_bytes() -> None:
    data = frame(100_000)
    decoder = FrameDecoder()
    commands: list[RemotingCommand] = []
    most = 0
    for start in range(0, len(data), 2):
        commands += decoder.feed(data[start : start + 2])
        most = max(most, len(decoder._chunks))
    assert [command.body for command in commands] == [bytes(100_000)]
    # 50,000 pieces came, each of which would take some 40 bytes more than its two.
    assert most < 500
    assert decoder.buffered == 0


def test_above_the_limit_the_connection_that_does_not_read_for_longest_is_closed(world: World) -> None:
    async def main() -> None:
        traffic = Traffic(max_unread_bytes=3 * len(REPLY))
        server, reasons = await served(world, traffic)
        request = encode_frame(RemotingCommand(BIG), SerializeType.MSGPACK)
        deaf = []
        for _ in range(3):
            deaf.append(await dripping(world, server))
            deaf[-1].transport.pause_reading()
            deaf[-1].transport.write(request)
            await world.sleep(1)
            assert len(reasons) == (len(deaf) == 3)
        assert reasons == [CloseReason.OVERFLOW]
        assert deaf[0].closed_at is not None
        client = RemotingClient(world.runtime("client"))
        answer = await client.invoke("server:10911", RemotingCommand(ECHO, body=b"served"))
        assert answer.body == b"served"
        # The others may still read.
        deaf[1].transport.resume_reading()
        await world.sleep(1)
        assert len(FrameDecoder().feed(deaf[1].received)) == 1
        assert traffic.unread.total == pytest.approx(len(REPLY), rel=0.01)
        deaf[2].transport.abort()
        await world.sleep(1)
        assert traffic.unread.total == 0
        deaf[1].transport.close()
        await client.close()
        await server.close()

    world.run(main())


@LOOPS
def test_a_response_above_the_limit_for_all_closes_its_connection_only(
    loop_factory: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def main() -> None:
        traffic = Traffic(max_unread_bytes=64 * KIB)
        server = RemotingServer(
            system_runtime(),
            {ECHO: echo, BIG: lambda connection, request: RemotingCommand(0, body=bytes(12 << 20))},
            traffic=traffic,
        )
        await server.start("127.0.0.1", 0)
        deaf, reader = await raw(server), await raw(server)
        deaf.send(RemotingCommand(BIG))
        await RemotingStage.eventually(lambda: len(server.connections) == 1)
        assert traffic.unread.total == 0
        reader.send(RemotingCommand(ECHO, body=b"served"))
        assert (await reader.receive()).body == b"served"
        for peer in (deaf, reader):
            await peer.close()
        await server.close()

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(main())


async def raw(server: RemotingServer) -> RawPeer:
    """A peer for which the kernel buffers little."""
    connected = socket.create_connection((server.host, server.port), 60)
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * KIB)
    connected.setblocking(False)
    return RawPeer(*await asyncio.open_connection(sock=connected, limit=KIB))
