"""Back-pressure: a peer that does not read costs bounded memory, and loses nothing when it reads again."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Collection

import pytest
import uvloop

from rewindmq.protocol.command import RemotingCommand, SerializeType
from rewindmq.protocol.errors import ConnectionLostError, TooManyRequestsError
from rewindmq.protocol.frame import encode_frame
from rewindmq.protocol.remoting.client import RemotingClient
from rewindmq.protocol.remoting.connection import Connection, Handler
from rewindmq.protocol.remoting.runtime import system_runtime
from rewindmq.protocol.remoting.server import RemotingServer
from rewindmq.protocol.remoting.state import CloseReason
from rewindmq.protocol.remoting.stream import MAX_UNSENT_BYTES, MAX_WRITE_BYTES
from rewindmq.race.sim import World
from tests.protocol.remoting.remoting_stage import RawPeer, RemotingStage

PULL, ECHO = 11, 10
REPLY = bytes(256 << 10)
REQUESTS = 400  # 100 MiB of responses: more than any kernel buffers for a socket


def pulling_handler(handled: list[int]) -> Handler:
    def pull(connection: Connection, request: RemotingCommand) -> RemotingCommand:
        handled.append(request.opaque)
        return RemotingCommand(0, body=REPLY)

    return pull


def test_requests_of_a_peer_that_does_not_read_wait_under_virtual_time(world: World) -> None:
    handled: list[int] = []

    class Deaf(asyncio.Protocol):
        """Sends many requests at once, and reads nothing until the test says so."""

        def __init__(self) -> None:
            self.received = 0
            self.transport: asyncio.Transport | None = None

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            assert isinstance(transport, asyncio.Transport)
            self.transport = transport
            transport.pause_reading()
            frames = (
                encode_frame(RemotingCommand(PULL, opaque=n), SerializeType.MSGPACK) for n in range(REQUESTS)
            )
            transport.write(b"".join(frames))

        def data_received(self, data: bytes) -> None:
            self.received += len(data)

    async def main() -> None:
        server = RemotingServer(world.runtime("server"), {PULL: pulling_handler(handled)})
        await server.start("server", 10911)
        runtime = world.runtime("client")
        peer = Deaf()
        await runtime.network.connect(lambda: peer, "server", 10911)
        assert peer.transport is not None
        await world.sleep(60)
        # One read had all requests, but only those below the mark, and the one that exceeded it, ran.
        assert 0 < len(handled) <= MAX_WRITE_BYTES // len(REPLY) + 1
        peer.transport.resume_reading()
        await world.sleep(60)
        assert handled == list(range(REQUESTS))
        assert peer.received > REQUESTS * len(REPLY)
        peer.transport.close()
        await server.close()

    world.run(main())


@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_requests_of_a_peer_that_does_not_read_wait_on_real_sockets(
    loop_factory: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    handled: list[int] = []

    async def main() -> None:
        server = RemotingServer(system_runtime(), {PULL: pulling_handler(handled)})
        await server.start("127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(server.host, server.port, limit=1024)
        for n in range(REQUESTS):
            writer.write(encode_frame(RemotingCommand(PULL, opaque=n), SerializeType.MSGPACK))
        (connection,) = await connections_of(server)
        await until(lambda: connection._reading_paused and connection._writing_paused)
        assert 0 < len(handled) < REQUESTS
        seen = []
        for _ in range(REQUESTS):
            (length,) = struct.unpack(">I", await reader.readexactly(4))
            seen.append(len(await reader.readexactly(length)))
        assert min(seen) > len(REPLY)
        assert handled == list(range(REQUESTS))
        writer.close()
        await writer.wait_closed()
        await server.close()

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(main())


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.001)


async def connections_of(server: RemotingServer) -> Collection[Connection]:
    await until(lambda: bool(server.connections))
    return server.connections


class DeafServer:
    """Accepts, responds to one request, and reads nothing more until the test is over."""

    def __init__(self) -> None:
        self.over = asyncio.Event()

    async def talk(self, peer: RawPeer) -> None:
        peer.answer(await peer.receive())
        transport = peer.writer.transport
        assert isinstance(transport, asyncio.ReadTransport)
        transport.pause_reading()
        await self.over.wait()


async def connected(stage: RemotingStage, client: RemotingClient) -> tuple[DeafServer, Connection]:
    deaf = DeafServer()
    address = await stage.raw_server(deaf.talk)
    await client.invoke(address, RemotingCommand(ECHO))
    return deaf, next(iter(client.connections))


async def test_a_oneway_request_waits_for_room_and_gives_up_in_time(stage: RemotingStage) -> None:
    client = stage.client()
    deaf, connection = await connected(stage, client)

    async def send_many() -> None:
        for _ in range(200):
            await connection.invoke_oneway(RemotingCommand(ECHO, body=bytes(1 << 20)), 0.05)
            # Let the transport find out how much the kernel takes.
            await asyncio.sleep(0)

    with pytest.raises(TooManyRequestsError, match="did not read"):
        await send_many()
    # A request that was accepted and not yet sent keeps its permit.
    assert client.permits.free < 65_535
    waiting = asyncio.ensure_future(connection.drain(60.0))
    await asyncio.sleep(0)
    connection.close()
    with pytest.raises(ConnectionLostError):
        await waiting
    assert client.permits.free == 65_535
    deaf.over.set()


async def test_requests_are_refused_while_64_mib_are_unsent(stage: RemotingStage) -> None:
    client = stage.client()
    deaf, connection = await connected(stage, client)
    body = bytes(8 << 20)
    calls = []
    for _ in range(MAX_UNSENT_BYTES // len(body) + 8):
        calls.append(connection.invoke(RemotingCommand(ECHO, body=body), 60.0))
        await asyncio.sleep(0)
    with pytest.raises(TooManyRequestsError, match="does not read"):
        await calls[-1]
    assert not connection.is_closed
    connection.close()
    await asyncio.gather(*calls, return_exceptions=True)
    deaf.over.set()


async def test_a_peer_that_never_reads_what_it_is_sent_is_dropped(stage: RemotingStage) -> None:
    reasons: list[CloseReason] = []
    client = stage.client(on_close=lambda connection, reason: reasons.append(reason))
    deaf, connection = await connected(stage, client)

    async def push_many() -> None:
        for _ in range(MAX_UNSENT_BYTES // (8 << 20) + 8):
            connection.send_oneway(RemotingCommand(ECHO, body=bytes(8 << 20)))
            await asyncio.sleep(0)

    with pytest.raises(ConnectionLostError):
        await push_many()
    await stage.eventually(lambda: bool(reasons))
    assert reasons == [CloseReason.OVERFLOW]
    deaf.over.set()
