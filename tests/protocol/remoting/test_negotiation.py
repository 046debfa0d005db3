"""The serialization type of a client at an unknown address (docs/spec/protocol.md 2.4)."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
from collections.abc import Callable
from typing import Any

import pytest

from rewindmq.protocol.command import RemotingCommand, SerializeType
from rewindmq.protocol.errors import ConnectionLostError, RequestTimeoutError
from rewindmq.protocol.remoting.client import RemotingClient
from rewindmq.protocol.remoting.connection import Connection, Handler
from rewindmq.protocol.remoting.runtime import Listener, Network, system_runtime
from rewindmq.protocol.remoting.server import RemotingServer
from rewindmq.race.sim import World
from tests.protocol.remoting.remoting_stage import RawPeer, RemotingStage

ECHO = 10
GREETING = 11


class JavaPeer:
    """Closes the connection at MSGPACK without a response, and responds to other types, as RocketMQ does."""

    def __init__(self) -> None:
        self.heard: list[SerializeType] = []
        self.understood: list[int] = []
        self.connections = 0

    async def talk(self, peer: RawPeer) -> None:
        self.connections += 1
        while (request := await peer.receive_if_any()) is not None:
            self.heard.append(request.serialize_type)
            if request.serialize_type is SerializeType.MSGPACK:
                return
            self.understood.append(request.code)
            if not request.is_oneway:
                peer.answer(request, body=b"understood")


async def test_a_peer_that_closes_on_msgpack_is_spoken_to_in_json_from_then_on(stage: RemotingStage) -> None:
    java = JavaPeer()
    address = await stage.raw_server(java.talk)
    client = stage.client()
    calls = [client.invoke(address, RemotingCommand(ECHO)) for _ in range(3)]
    assert [answer.body for answer in await asyncio.gather(*calls)] == [b"understood"] * 3
    assert (await client.invoke(address, RemotingCommand(ECHO))).body == b"understood"
    next(iter(client.connections)).close()
    await stage.eventually(lambda: not client.connections)
    assert (await client.invoke(address, RemotingCommand(ECHO))).body == b"understood"
    assert java.heard.count(SerializeType.MSGPACK) == 1
    assert java.connections == 3


class OneConnection:
    """A network on which the first connection comes about, and no later one."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._is_used = False

    async def connect(self, factory: Callable[[], asyncio.Protocol], host: str, port: int) -> Any:
        if self._is_used:
            await asyncio.get_running_loop().create_future()
        self._is_used = True
        return await self._network.connect(factory, host, port)

    async def listen(self, factory: Callable[[], asyncio.Protocol], host: str, port: int) -> Listener:
        return await self._network.listen(factory, host, port)


async def test_a_request_that_a_peer_got_in_msgpack_and_not_again_in_json_counts_as_sent(
    stage: RemotingStage,
) -> None:
    address = await stage.raw_server(JavaPeer().talk)
    runtime = system_runtime()
    client = RemotingClient(dataclasses.replace(runtime, network=OneConnection(runtime.network)))
    # NotConnectedError would say that it was not sent.
    with pytest.raises(ConnectionLostError):
        await client.invoke(address, RemotingCommand(ECHO), 0.5)
    await client.close()


async def test_oneway_requests_wait_until_a_greeting_has_found_out(stage: RemotingStage) -> None:
    java = JavaPeer()
    address = await stage.raw_server(java.talk)
    client = stage.client(greeting=lambda: RemotingCommand(GREETING))
    await asyncio.gather(*(client.invoke_oneway(address, RemotingCommand(ECHO)) for _ in range(3)))
    await client.invoke_oneway(address, RemotingCommand(ECHO))
    await stage.eventually(lambda: len(java.understood) >= 5)
    assert java.understood == [GREETING, ECHO, ECHO, ECHO, ECHO]


async def test_with_a_fixed_serialization_type_there_is_no_greeting(stage: RemotingStage) -> None:
    java = JavaPeer()
    address = await stage.raw_server(java.talk)
    client = stage.client(serialize_type=SerializeType.ROCKETMQ, greeting=lambda: RemotingCommand(GREETING))
    await client.invoke_oneway(address, RemotingCommand(ECHO))
    await client.invoke(address, RemotingCommand(ECHO))
    assert java.understood == [ECHO, ECHO]


async def test_a_oneway_request_waits_for_an_unanswered_greeting_up_to_its_timeout(
    stage: RemotingStage,
) -> None:
    async def say_nothing(peer: RawPeer) -> None:
        while await peer.receive_if_any() is not None:
            pass

    address = await stage.raw_server(say_nothing)
    client = stage.client(greeting=lambda: RemotingCommand(GREETING))
    with pytest.raises(RequestTimeoutError, match="within 50 ms"):
        await client.invoke_oneway(address, RemotingCommand(ECHO), 0.05)


def test_a_oneway_request_waits_for_a_greeting_up_to_its_own_timeout(world: World) -> None:
    heard: list[int] = []

    def answer_the_second(connection: Connection, request: RemotingCommand) -> RemotingCommand | None:
        heard.append(request.code)
        return RemotingCommand(0) if heard.count(GREETING) == 2 else None

    def take(connection: Connection, request: RemotingCommand) -> None:
        heard.append(request.code)

    async def main() -> None:
        handlers: dict[int, Handler] = {GREETING: answer_the_second, ECHO: take}
        server = RemotingServer(world.runtime("server"), handlers)
        await server.start("server", 10911)
        client = RemotingClient(world.runtime("client"), greeting=lambda: RemotingCommand(GREETING))
        hasty = asyncio.ensure_future(client.invoke_oneway("server:10911", RemotingCommand(ECHO), 0.05))
        patient = asyncio.ensure_future(client.invoke_oneway("server:10911", RemotingCommand(ECHO), 10.0))
        with pytest.raises(RequestTimeoutError, match="within 50 ms"):
            await hasty
        await patient
        await world.sleep(1)
        assert heard == [GREETING, GREETING, ECHO]
        await client.close()
        await server.close()

    world.run(main())


async def test_a_greeting_without_a_waiting_request_fails_silently(
    stage: RemotingStage, caplog: pytest.LogCaptureFixture
) -> None:
    greeted = asyncio.Event()

    async def say_nothing(peer: RawPeer) -> None:
        while await peer.receive_if_any() is not None:
            greeted.set()

    address = await stage.raw_server(say_nothing)
    client = stage.client(greeting=lambda: RemotingCommand(GREETING))
    oneway = asyncio.ensure_future(client.invoke_oneway(address, RemotingCommand(ECHO)))
    await greeted.wait()
    oneway.cancel()
    await asyncio.wait((oneway,))
    # The greeting fails with it.
    await client.close()
    del oneway
    gc.collect()
    assert not caplog.records


async def test_without_a_greeting_a_oneway_request_is_enough_to_find_out(stage: RemotingStage) -> None:
    java = JavaPeer()
    address = await stage.raw_server(java.talk)
    client = stage.client()
    await client.invoke_oneway(address, RemotingCommand(ECHO))
    await stage.eventually(lambda: bool(java.heard) and not client.connections)
    await client.invoke(address, RemotingCommand(ECHO))
    assert java.heard == [SerializeType.MSGPACK, SerializeType.JSON]


@pytest.mark.parametrize("serialize_type", list(SerializeType))
async def test_a_fixed_serialization_type_does_not_change(
    stage: RemotingStage, serialize_type: SerializeType
) -> None:
    java = JavaPeer()
    address = await stage.raw_server(java.talk)
    client = stage.client(serialize_type=serialize_type)
    for _ in range(2):
        if serialize_type is SerializeType.MSGPACK:
            with pytest.raises(ConnectionLostError):
                await client.invoke(address, RemotingCommand(ECHO))
        else:
            await client.invoke(address, RemotingCommand(ECHO))
    assert java.heard == [serialize_type, serialize_type]


async def test_a_peer_that_answered_once_is_not_resent_to(stage: RemotingStage) -> None:
    heard: list[SerializeType] = []

    async def talk(peer: RawPeer) -> None:
        first = await peer.receive()
        peer.answer(first)
        heard.append((await peer.receive()).serialize_type)

    address = await stage.raw_server(talk)
    client = stage.client()
    await client.invoke(address, RemotingCommand(ECHO))
    with pytest.raises(ConnectionLostError):
        await client.invoke(address, RemotingCommand(ECHO))
    assert heard == [SerializeType.MSGPACK]


async def test_a_peer_that_answered_on_an_earlier_connection_is_not_resent_to(stage: RemotingStage) -> None:
    """A broker that stored a message and was killed got it a second time, in JSON, after its restart."""
    heard: list[SerializeType] = []

    async def talk(peer: RawPeer) -> None:
        first = await peer.receive()
        heard.append(first.serialize_type)
        if len(heard) == 1:
            peer.answer(first)

    address = await stage.raw_server(talk)
    client = stage.client()
    await client.invoke(address, RemotingCommand(ECHO))
    await stage.eventually(lambda: not client.connections)
    with pytest.raises(ConnectionLostError):
        await client.invoke(address, RemotingCommand(ECHO))
    assert heard == [SerializeType.MSGPACK] * 2
    # Another server may have taken its place.
    with pytest.raises(ConnectionLostError):
        await client.invoke(address, RemotingCommand(ECHO))
    assert heard == [*[SerializeType.MSGPACK] * 3, SerializeType.JSON]


async def test_a_server_that_died_is_not_taken_for_a_json_speaker_for_good(stage: RemotingStage) -> None:
    heard: list[SerializeType] = []

    async def die(peer: RawPeer) -> None:
        heard.append((await peer.receive()).serialize_type)

    address = await stage.raw_server(die)
    client = stage.client()
    for _ in range(2):
        with pytest.raises(ConnectionLostError):
            await client.invoke(address, RemotingCommand(ECHO))
    assert heard == [SerializeType.MSGPACK, SerializeType.JSON] * 2
