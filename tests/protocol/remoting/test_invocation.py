"""A caller gets its response, or the error that there will be none."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Callable
from typing import Any

import pytest

from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import (
    ClientError,
    ConnectError,
    ConnectionLostError,
    RequestTimeoutError,
    TooManyRequestsError,
)
from rewindmq.protocol.remoting.client import RemotingClient
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.remoting.pending import MAX_OPAQUE, MAX_PENDING, PendingRequests
from rewindmq.protocol.remoting.permits import OnewayPermits
from rewindmq.protocol.remoting.runtime import LoopTimers
from rewindmq.protocol.remoting.server import RemotingServer
from rewindmq.race.sim import World
from tests.protocol.remoting.remoting_stage import RawPeer, RemotingStage

ECHO, HOLD = 10, 11


def echo(connection: Connection, request: RemotingCommand) -> RemotingCommand:
    return RemotingCommand(ResponseCode.SUCCESS, body=request.body)


def hold(connection: Connection, request: RemotingCommand) -> None:
    """Never responds."""


async def test_answers_find_their_requests(stage: RemotingStage) -> None:
    server = await stage.server({ECHO: echo})
    client, address = stage.client(), f"{server.host}:{server.port}"
    bodies = [b"%d" % n for n in range(100)]
    first = await asyncio.gather(*(client.invoke(address, RemotingCommand(ECHO, body=b)) for b in bodies))
    # The connection exists now, so no task runs in between.
    again = await asyncio.gather(*(client.invoke(address, RemotingCommand(ECHO, body=b)) for b in bodies))
    assert [answer.body for answer in first] == [answer.body for answer in again] == bodies
    assert len(server.connections) == len(client.connections) == 1


async def test_a_response_code_is_returned_not_raised(stage: RemotingStage) -> None:
    server = await stage.server({})
    answer = await stage.client().invoke(f"{server.host}:{server.port}", RemotingCommand(77))
    assert answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED


async def test_connection_loss_fails_all_pending_requests_at_once(stage: RemotingStage) -> None:
    async def talk(peer: RawPeer) -> None:
        peer.answer(await peer.receive())
        for _ in range(3):
            await peer.receive()

    address = await stage.raw_server(talk)
    client = stage.client()
    await client.invoke(address, RemotingCommand(ECHO))
    calls = [client.invoke(address, RemotingCommand(ECHO), timeout=3600.0) for _ in range(3)]
    async with asyncio.timeout(60):
        results = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(result) for result in results] == [ConnectionLostError] * 3
    assert str(results[0]).startswith(f"connection to {address} lost: ")


async def test_a_late_response_is_ignored(stage: RemotingStage, caplog: pytest.LogCaptureFixture) -> None:
    async def talk(peer: RawPeer) -> None:
        peer.answer(await peer.receive())
        late = await peer.receive()
        second = await peer.receive()
        peer.answer(late)
        peer.answer(second, body=b"in time")
        await peer.receive()

    address = await stage.raw_server(talk)
    client = stage.client()
    # After the connection is made, only the response can be late.
    await client.invoke(address, RemotingCommand(ECHO))
    with pytest.raises(RequestTimeoutError, match=f"no answer from {address} within .* ms"):
        await client.invoke(address, RemotingCommand(ECHO), timeout=0.05)
    with caplog.at_level(logging.DEBUG, "rewindmq"):
        answer = await client.invoke(address, RemotingCommand(ECHO), timeout=60.0)
    assert answer.body == b"in time"
    assert "without a pending request" in caplog.text


def test_each_request_has_its_own_deadline() -> None:
    world = World()

    async def main() -> list[tuple[float, float]]:
        server_runtime, client_runtime = world.runtime("server"), world.runtime("client")
        server = RemotingServer(server_runtime, {ECHO: echo, HOLD: hold})
        await server.start("server", 10911)
        client = RemotingClient(client_runtime)
        await client.invoke("server:10911", RemotingCommand(ECHO))

        async def timed(timeout: float) -> tuple[float, float]:
            start = world.now
            with pytest.raises(RequestTimeoutError):
                await client.invoke("server:10911", RemotingCommand(HOLD), timeout)
            return timeout, world.now - start

        waits = await asyncio.gather(*(timed(t) for t in (30.0, 3.0, 0.2, 5.0, 5.02)))
        await client.close()
        await server.close()
        return waits

    for timeout, waited in world.run(main()):
        assert timeout - 0.01 <= waited <= timeout + 0.06


async def test_opaque_numbers_start_at_1_wrap_and_skip_those_in_use() -> None:
    pending = PendingRequests(asyncio.get_running_loop(), LoopTimers(), "peer")
    futures = []
    for expected in (1, 2, 3):
        assert pending.next_opaque() == expected
        futures.append(pending.add(expected, 60.0))
    pending.complete(RemotingCommand(0, opaque=2, flag=1))
    pending.opaque = MAX_OPAQUE - 1
    assert [pending.next_opaque() for _ in range(3)] == [MAX_OPAQUE, 2, 4]
    pending.fail_all(ConnectionLostError, "test over")
    assert [type(f.exception()) for f in (futures[0], futures[2])] == [ConnectionLostError] * 2


async def test_no_more_than_65535_requests_wait_on_one_connection(stage: RemotingStage) -> None:
    server = await stage.server({ECHO: echo, HOLD: hold})
    client, address = stage.client(), f"{server.host}:{server.port}"
    await client.invoke(address, RemotingCommand(ECHO))
    calls = [client.invoke(address, RemotingCommand(HOLD)) for _ in range(MAX_PENDING)]
    with pytest.raises(TooManyRequestsError, match="65535 requests"):
        await client.invoke(address, RemotingCommand(HOLD))
    await client.close()
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert {type(result) for result in results} == {ConnectionLostError}


async def test_oneway_permits_are_handed_on_in_order_and_bounded() -> None:
    permits = OnewayPermits(LoopTimers(), 1)
    await permits.acquire(0.0)
    with pytest.raises(TooManyRequestsError, match="no oneway permit within"):
        await permits.acquire(0.01)
    order: list[str] = []

    async def take(name: str) -> None:
        await permits.acquire(60.0)
        order.append(name)

    async with asyncio.TaskGroup() as group:
        first, gives_up, last = (group.create_task(take(name)) for name in ("first", "gives up", "last"))
        await asyncio.sleep(0)
        gives_up.cancel()
        permits.release(1)
        await first
        permits.release(1)
        await last
    assert (order, permits.free) == (["first", "last"], 0)


async def test_a_permit_given_to_a_cancelled_request_is_not_lost() -> None:
    permits = OnewayPermits(LoopTimers(), 0)
    waiter = asyncio.ensure_future(permits.acquire(60.0))
    await asyncio.sleep(0)
    permits.release(1)
    waiter.cancel()
    await asyncio.wait([waiter])
    assert permits.free == 1


async def test_oneway_requests_give_their_permits_back(stage: RemotingStage) -> None:
    seen: list[object] = []
    server = await stage.server({ECHO: echo, HOLD: lambda c, r: seen.append(r.body)})
    client, address = stage.client(), f"{server.host}:{server.port}"
    for n in range(3):
        await client.invoke_oneway(address, RemotingCommand(HOLD, body=b"%d" % n))
    await client.invoke(address, RemotingCommand(ECHO))
    assert seen == [b"0", b"1", b"2"]
    assert client.permits.free == 65_535


async def test_concurrent_first_requests_share_one_attempt_to_connect(stage: RemotingStage) -> None:
    server = await stage.server({ECHO: echo})
    client, address = stage.client(), f"{server.host}:{server.port}"
    await asyncio.gather(*(client.invoke(address, RemotingCommand(ECHO)) for _ in range(20)))
    assert len(server.connections) == 1


async def test_after_a_loss_the_next_request_connects_again(stage: RemotingStage) -> None:
    server = await stage.server({ECHO: echo})
    client, address = stage.client(), f"{server.host}:{server.port}"
    await client.invoke(address, RemotingCommand(ECHO))
    next(iter(server.connections)).close()
    await stage.eventually(lambda: not client.connections)
    assert (await client.invoke(address, RemotingCommand(ECHO, body=b"again"))).body == b"again"


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("127.0.0.1:1", "Connection refused"),
        ("127.0.0.1", "'127.0.0.1' is not of the form host:port"),
        ("127.0.0.1:x", "'127.0.0.1:x' is not of the form host:port"),
        ("127.0.0.1:70000", "'127.0.0.1:70000' is not of the form host:port"),
    ],
)
async def test_a_failed_connect_says_where_and_why(stage: RemotingStage, address: str, why: str) -> None:
    client = stage.client()
    for request in (
        client.invoke(address, RemotingCommand(1)),
        client.invoke_oneway(address, RemotingCommand(1)),
    ):
        with pytest.raises(ConnectError) as caught:
            await request
        assert str(caught.value) == f"connect to {address} failed: {why}"


class BlackHole:
    """A network where nothing ever comes back."""

    async def connect(self, *_: Any) -> Any:
        await asyncio.get_running_loop().create_future()

    async def listen(self, *_: Any) -> Any:
        raise OSError


class ResettingNetwork:
    """A network that loses connections before their requester learns that they were made."""

    async def connect(self, factory: Callable[[], asyncio.Protocol], *_: Any) -> Any:
        protocol = factory()
        transport = LostTransport()
        protocol.connection_made(transport)
        protocol.connection_lost(ConnectionResetError())
        return transport, protocol


class LostTransport(asyncio.Transport):
    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...


async def test_a_connection_lost_before_its_dialler_heard_of_it_is_forgotten(stage: Any) -> None:
    network: Any = ResettingNetwork()
    lost: list[Connection] = []
    client = RemotingClient(
        dataclasses.replace(stage.runtime, network=network),
        on_close=lambda connection, _: lost.append(connection),
    )
    with pytest.raises(ConnectionLostError):
        await client.invoke("127.0.0.1:1", RemotingCommand(ECHO))
    assert len(lost) == 1
    assert not client.connections
    assert not client._dialled
    assert client.ready_connection("127.0.0.1:1") is None
    await client.close()


def test_connecting_takes_3_seconds_at_most() -> None:
    world = World()

    async def main() -> list[tuple[float, str]]:
        client = RemotingClient(dataclasses.replace(world.runtime(), network=BlackHole()))
        outcomes = []
        for timeout in (10.0, 1.0):
            try:
                await client.invoke("10.0.0.9:9876", RemotingCommand(1), timeout)
            except (ConnectError, RequestTimeoutError) as error:
                outcomes.append((round(world.now, 3), str(error)))
        await client.close()
        return outcomes

    assert world.run(main()) == [
        (3.0, "connect to 10.0.0.9:9876 failed: no connection within 3000 ms"),
        (4.0, "not connected to 10.0.0.9:9876 within 1000 ms"),
    ]


async def test_a_closed_client_refuses_and_ends_what_was_in_progress(stage: RemotingStage) -> None:
    server = await stage.server({ECHO: echo, HOLD: hold})
    client, address = stage.client(), f"{server.host}:{server.port}"
    await client.invoke(address, RemotingCommand(ECHO))
    connection = next(iter(client.connections))
    waiting = client.invoke(address, RemotingCommand(HOLD), 3600.0)
    connecting = client.invoke("127.0.0.1:1", RemotingCommand(HOLD), 3600.0)
    await client.close()
    await client.close()
    with pytest.raises(ConnectionLostError, match="the client shuts down"):
        await waiting
    with pytest.raises((ClientError, ConnectError)):
        await connecting
    with pytest.raises(ClientError, match="closed"):
        await client.invoke(address, RemotingCommand(ECHO))
    with pytest.raises(ConnectionLostError, match="closed"):
        await connection.invoke(RemotingCommand(ECHO), 1.0)
    with pytest.raises(ConnectionLostError, match="closed"):
        connection.send_oneway(RemotingCommand(ECHO))
    with pytest.raises(ConnectionLostError, match="closed"):
        await connection.invoke_oneway(RemotingCommand(ECHO), 1.0)
    assert client.permits.free == 65_535
