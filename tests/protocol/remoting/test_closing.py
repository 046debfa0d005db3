"""How connections end: silence, shutdown, loss."""

from __future__ import annotations

import asyncio
import gc

import pytest

from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import ConnectionLostError
from rewindmq.protocol.remoting.client import RemotingClient
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.remoting.server import RemotingServer
from rewindmq.protocol.remoting.state import CloseReason
from rewindmq.race.sim import World
from tests.protocol.remoting.remoting_stage import RemotingStage

ECHO, SLOW = 10, 11


def echo(connection: Connection, request: RemotingCommand) -> RemotingCommand:
    return RemotingCommand(0, body=request.body)


class Gate:
    """A handler that responds when the test sets its event."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.open = asyncio.Event()
        self.cancelled = False

    async def handle(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        self.entered.set()
        try:
            await self.open.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        return RemotingCommand(0, body=b"at last")


def test_a_silent_connection_is_closed_at_120_seconds(world: World) -> None:
    closed: list[tuple[float, CloseReason]] = []

    async def main() -> None:
        server = RemotingServer(
            world.runtime("server"),
            {ECHO: echo},
            on_close=lambda connection, reason: closed.append((world.now, reason)),
        )
        await server.start("server", 10911)
        client = RemotingClient(world.runtime("client"), idle_seconds=1e9)
        for pause in (0.0, 119.0, 119.0):
            await world.sleep(pause)
            await client.invoke("server:10911", RemotingCommand(ECHO))
        last_traffic = world.now
        await world.sleep(500)
        ((moment, reason),) = closed
        assert reason is CloseReason.IDLE
        assert moment - last_traffic == pytest.approx(120.0, abs=0.01)
        await client.close()
        await server.close()

    world.run(main())


def test_traffic_from_either_end_keeps_a_connection(world: World) -> None:
    async def main() -> None:
        held: list[tuple[Connection, RemotingCommand]] = []
        server = RemotingServer(world.runtime("server"), {SLOW: lambda c, r: held.append((c, r))})
        await server.start("server", 10911)
        client = RemotingClient(world.runtime("client"))
        waiting = client.invoke("server:10911", RemotingCommand(SLOW), 300.0)
        for _ in range(2):
            await world.sleep(80)
            held[0][0].send_oneway(RemotingCommand(40))
        await world.sleep(80)
        held[0][0].reply(held[0][1], RemotingCommand(0))
        await waiting
        assert world.now == pytest.approx(240.0, abs=0.01)
        await client.close()
        await server.close()

    world.run(main())


async def test_a_closing_server_lets_the_answers_in_flight_leave(stage: RemotingStage) -> None:
    gate = Gate()
    server = await stage.server({ECHO: echo, SLOW: gate.handle})
    client, address = stage.client(), f"{server.host}:{server.port}"
    await client.invoke(address, RemotingCommand(ECHO))
    call = client.invoke(address, RemotingCommand(SLOW))
    await gate.entered.wait()
    closing = asyncio.ensure_future(server.close(5.0))
    await asyncio.sleep(0)
    gate.open.set()
    assert (await call).body == b"at last"
    await closing
    assert not server.connections
    with pytest.raises(OSError, match=r"\d"):
        await asyncio.open_connection(server.host, server.port)


async def test_a_closing_server_takes_no_new_requests(stage: RemotingStage) -> None:
    gate = Gate()
    seen: list[int] = []
    server = await stage.server({ECHO: lambda c, r: seen.append(r.opaque), SLOW: gate.handle})
    peer = await stage.raw(server)
    peer.send(RemotingCommand(SLOW, opaque=1))
    await gate.entered.wait()
    closing = asyncio.ensure_future(server.close(5.0))
    await asyncio.sleep(0)
    peer.send(RemotingCommand(ECHO, opaque=2))
    await peer.writer.drain()
    gate.open.set()
    assert (await peer.receive()).opaque == 1
    assert await peer.receive_if_any() is None
    await closing
    assert seen == []


async def test_what_does_not_leave_in_the_grace_time_is_cancelled(stage: RemotingStage) -> None:
    gate = Gate()
    server = await stage.server({SLOW: gate.handle})
    client = stage.client()
    call = client.invoke(f"{server.host}:{server.port}", RemotingCommand(SLOW))
    await gate.entered.wait()
    await server.close(0.01)
    with pytest.raises(ConnectionLostError):
        await call
    assert gate.cancelled
    assert not server.tasks
    await server.close(0.01)


async def test_a_handler_is_cancelled_when_its_requester_is_gone(stage: RemotingStage) -> None:
    gate = Gate()
    server = await stage.server({SLOW: gate.handle})
    peer = await stage.raw(server)
    peer.send(RemotingCommand(SLOW))
    await gate.entered.wait()
    await peer.close()
    await stage.eventually(lambda: not server.tasks)
    assert gate.cancelled


async def test_answering_a_connection_that_is_gone_does_nothing(stage: RemotingStage) -> None:
    held: list[tuple[Connection, RemotingCommand]] = []
    server = await stage.server({SLOW: lambda c, r: held.append((c, r))})
    peer = await stage.raw(server)
    peer.send(RemotingCommand(SLOW, opaque=1))
    await stage.eventually(lambda: bool(held))
    await peer.close()
    connection, request = held[0]
    await stage.eventually(lambda: connection.is_closed)
    connection.reply(request, RemotingCommand(0))
    with pytest.raises(ConnectionLostError):
        connection.send_oneway(RemotingCommand(40))


async def test_a_failing_on_close_does_not_stop_the_server(
    stage: RemotingStage, caplog: pytest.LogCaptureFixture
) -> None:
    def on_close(connection: Connection, reason: CloseReason) -> None:
        raise ValueError("from the callback")

    server = await stage.server({ECHO: echo}, on_close=on_close)
    peer = await stage.raw(server)
    peer.send(RemotingCommand(ECHO))
    await peer.receive()
    await peer.close()
    await stage.eventually(lambda: not server.connections)
    assert "on_close of <Connection" in caplog.text
    other = await stage.raw(server)
    other.send(RemotingCommand(ECHO, body=b"alive"))
    assert (await other.receive()).body == b"alive"


async def test_a_port_in_use_is_an_os_error(stage: RemotingStage) -> None:
    server = await stage.server({})
    second = RemotingServer(stage.runtime, {})
    with pytest.raises(OSError, match=r"(?i)address already in use"):
        await second.start(server.host, server.port)
    await second.close()


def test_a_handler_may_close_its_connection(world: World) -> None:
    def leave(connection: Connection, request: RemotingCommand) -> RemotingCommand:
        connection.close("had enough")
        return RemotingCommand(0)

    async def main() -> None:
        server = RemotingServer(world.runtime("server"), {ECHO: leave})
        await server.start("server", 10911)
        client = RemotingClient(world.runtime("client"))
        with pytest.raises(ConnectionLostError):
            await client.invoke("server:10911", RemotingCommand(ECHO))
        await client.close()
        await server.close()

    world.run(main())


@pytest.mark.parametrize("sent", [b"", b"\0" * 64, b"\0\0\1\0\0\0\0\x10"], ids=["nothing", "bad", "half"])
async def test_a_closed_connection_is_freed_without_the_garbage_collector(
    stage: RemotingStage, sent: bytes
) -> None:
    """A hostile peer opens thousands of connections before a collection runs."""
    ended = asyncio.Event()
    server = await stage.server({}, on_close=lambda connection, reason: ended.set())

    def is_freed() -> bool:
        return not any(type(each) is Connection and each._endpoint is server for each in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        peer = await stage.raw(server)
        peer.writer.write(sent)
        await stage.eventually(lambda: ended.is_set() or len(server.connections) == 1)
        await peer.close()
        await ended.wait()
        await stage.eventually(is_freed)
    finally:
        gc.enable()
