"""Where a test of the proxy takes place: the simulated world or real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand, SerializeType
from rewindmq.protocol.header.offset import UpdateConsumerOffsetRequestHeader
from rewindmq.protocol.remoting.client import RemotingClient
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.remoting.runtime import Runtime, system_runtime
from rewindmq.protocol.remoting.server import RemotingServer
from rewindmq.race.history import Event, History, Lab
from rewindmq.race.proxy.frame_proxy import FrameProxy
from rewindmq.race.sim import World

CODECS = list(SerializeType)
COMMIT = RequestCode.UPDATE_CONSUMER_OFFSET
PULL = RequestCode.PULL_MESSAGE
NOTICE = RequestCode.RESET_CONSUMER_CLIENT_OFFSET
# Seconds after which a test that hangs fails.
PATIENCE = 60.0
_VIRTUAL_PATIENCE = 600.0


class Venue:
    """A place for a scene: its hosts, and everything that must be closed afterwards."""

    def __init__(self, world: World | None, exits: AsyncExitStack) -> None:
        self._world = world
        self._exits = exits
        self._hosts = 0
        self.is_simulated = world is not None
        self.history = History()
        self._clock = self.place()[0].clock

    def place(self) -> tuple[Runtime, str]:
        """Return the runtime of another process, and the interface to bind."""
        if self._world is None:
            runtime = system_runtime(seed=1, max_workers=2, time_scale=0.05)
            self._exits.callback(runtime.workers.close)
            return runtime, "127.0.0.1"
        self._hosts += 1
        host = f"10.0.0.{self._hosts}"
        return self._world.runtime(host), host

    def record(self, kind: Lab, process: str, details: dict[str, Any]) -> None:
        self.history.add(Event(self._clock.monotonic(), process, kind, details))

    async def server(self, handlers: dict[int, Any]) -> str:
        runtime, host = self.place()
        server = RemotingServer(runtime, handlers)
        await server.start(host, 0)
        self._exits.push_async_callback(server.close, 0.2)
        return f"{server.host}:{server.port}"

    async def proxy(self, upstream: str) -> FrameProxy:
        runtime, host = self.place()
        proxy = FrameProxy(runtime, upstream, self.record, client_name="consumer-A", host=host)
        self._exits.push_async_callback(proxy.close)
        await proxy.start()
        return proxy

    def client(self, **options: Any) -> RemotingClient:
        client = RemotingClient(self.place()[0], **options)
        self._exits.push_async_callback(client.close)
        return client

    def at_end(self, close: Callable[[], Awaitable[None]]) -> None:
        """Call ``close`` when the scene is over."""
        self._exits.push_async_callback(close)

    async def entered(self, context: Any) -> Any:
        return await self._exits.enter_async_context(context)

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait for a condition that no event announces; on sockets for at most a minute."""
        async with asyncio.timeout(PATIENCE if self._world is None else _VIRTUAL_PATIENCE):
            while not condition():
                await self.pause()

    async def pause(self) -> None:
        """Let other tasks run for 2 ms, which are virtual in the simulated world."""
        if self._world is None:
            await asyncio.sleep(0.002)
        else:
            await self._world.sleep(0.002)

    async def round_trip(self, proxy: FrameProxy, offset: int) -> None:
        """Commit an offset over a new connection.

        When the response arrives, the proxy has handled all earlier events of other connections.
        """
        await self.client(serialize_type=SerializeType.JSON).invoke(proxy.address, commit(offset), PATIENCE)

    def frames(self, kind: Lab, code: RequestCode, **wanted: Any) -> list[dict[str, Any]]:
        return [dict(event.details) for event in self.history.of(kind, code=int(code), **wanted)]


Scene = Callable[[Venue], Awaitable[None]]
Play = Callable[[Scene], None]


def commit(offset: int, queue: int = 0) -> RemotingCommand:
    return RemotingCommand(COMMIT, UpdateConsumerOffsetRequestHeader("G", "T", queue, offset))


class Offsets:
    """A server that keeps the offsets of UPDATE_CONSUMER_OFFSET (15), in their order."""

    def __init__(self) -> None:
        self.heard: list[int] = []
        self.connections: list[Connection] = []

    def handlers(self) -> dict[int, Any]:
        return {COMMIT: self._commit}

    def _commit(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        if connection not in self.connections:
            self.connections.append(connection)
        self.heard.append(request.decode_header(UpdateConsumerOffsetRequestHeader).commit_offset)
        return RemotingCommand(ResponseCode.SUCCESS, body=request.body)
