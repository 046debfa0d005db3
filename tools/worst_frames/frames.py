"""The parts of a measurement: a hall with a filled server, and the frames that are sent to it."""

from __future__ import annotations

import string
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from itertools import product
from types import MappingProxyType
from typing import Any, Final

from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import Body, CommandHeader, RemotingCommand, SerializeType
from rewindmq.protocol.remoting.client import RemotingClient
from rewindmq.protocol.remoting.connection import Connection, Handler
from rewindmq.protocol.version import MQVersion
from tools.worst_frames.meter import MeteredWorld
from tools.worst_frames.sizes import Sizes

_NEVER: Final = 1e9
SUCCESS: Final = frozenset({ResponseCode.SUCCESS})


class Hall:
    """A simulated world with one server, its tables filled, and clients on hosts of their own.

    Attributes:
        host, address: of the server.
        codes: the request codes that it serves.
        bystander: a cheap request.
        noted: what an earlier step needs later, by name.
    """

    host = "10.0.0.1"
    address: str
    codes: Collection[int]

    def __init__(self, world: MeteredWorld, sizes: Sizes) -> None:
        self.world = world
        self.sizes = sizes
        self.noted: dict[str, Any] = {}
        self._clients: list[RemotingClient] = []

    def bystander(self) -> RemotingCommand:
        raise NotImplementedError

    def connection(self, number: int) -> Connection:
        """Return the server's end of a client's connection, in the order of the first requests."""
        raise NotImplementedError

    def client(self, answers: Mapping[int, Handler] = MappingProxyType({})) -> RemotingClient:
        """Return a new client, on a host of its own."""
        runtime = self.world.runtime(f"10.0.1.{len(self._clients)}")
        client = RemotingClient(runtime, answers, serialize_type=SerializeType.JSON, idle_seconds=_NEVER)
        self._clients.append(client)
        return client

    async def ask(self, client: RemotingClient, command: RemotingCommand) -> RemotingCommand:
        return await client.invoke(self.address, command, _NEVER)

    def ask_nothing(self, client: RemotingClient, command: RemotingCommand) -> None:
        """Send a request whose response does not matter; the client must be connected."""
        client.invoke(self.address, command, _NEVER).cancel()

    async def close(self) -> None:
        for client in self._clients:
            await client.close()


@dataclass(frozen=True, slots=True)
class WorstFrame:
    """One request of the table.

    Attributes:
        text: what is in the frame and in the tables, in a few words.
        make: returns the request; runs before the measurement.
        codes: the response codes that prove that the server did the work.
    """

    code: RequestCode
    text: str
    make: Callable[[Any], Awaitable[RemotingCommand]]
    codes: Collection[int] = SUCCESS


def request(
    code: RequestCode, header: CommandHeader | None = None, body: Body = None, version: int = MQVersion.V4_9_4
) -> RemotingCommand:
    return RemotingCommand(code, header, body, version=version)


def plain(
    code: RequestCode,
    text: str,
    header: Callable[[Sizes], CommandHeader] | None = None,
    body: Callable[[Sizes], Body] | None = None,
    codes: Collection[int] = SUCCESS,
) -> WorstFrame:
    """Return a frame whose header and body depend only on the sizes."""

    async def make(hall: Hall) -> RemotingCommand:
        sizes = hall.sizes
        return request(code, header(sizes) if header else None, body(sizes) if body else None)

    return WorstFrame(code, text, make, codes)


def names(prefix: str, count: int, length: int) -> list[str]:
    """Return ``count`` different names of ``length`` characters."""
    digits = product(string.ascii_letters + string.digits, repeat=4)
    fill = "x" * (length - len(prefix) - 4)
    return [f"{prefix}{fill}{''.join(next(digits))}" for _ in range(count)]
