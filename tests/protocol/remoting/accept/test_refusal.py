"""A server closes the connections beyond its limit, and accepts others when some are gone."""

from __future__ import annotations

import asyncio

from rewindmq.protocol.remoting.accept.limit import ConnectionLimit
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.remoting.runtime import system_runtime
from rewindmq.protocol.remoting.server import RemotingServer
from rewindmq.protocol.remoting.state import CloseReason
from tests.support.process import TIMEOUT


async def test_two_servers_share_a_limit_and_a_closed_connection_makes_room() -> None:
    runtime = system_runtime()
    limit = ConnectionLimit(2, 2, runtime.clock.monotonic)
    ended: asyncio.Queue[CloseReason] = asyncio.Queue()

    def on_close(connection: Connection, reason: CloseReason) -> None:
        ended.put_nowait(reason)

    servers = [RemotingServer(runtime, {}, limit=limit, on_close=on_close) for _ in range(2)]
    async with asyncio.timeout(TIMEOUT):
        for server in servers:
            await server.start("127.0.0.1", 0)
        first = await asyncio.open_connection("127.0.0.1", servers[0].port)
        second = await asyncio.open_connection("127.0.0.1", servers[1].port)
        refused = await asyncio.open_connection("127.0.0.1", servers[0].port)
        assert await ended.get() is CloseReason.LIMIT
        assert limit.count == 2
        first[1].close()
        assert await ended.get() is CloseReason.PEER
        assert limit.count == 1
        third = await asyncio.open_connection("127.0.0.1", servers[1].port)
        refused_again = await asyncio.open_connection("127.0.0.1", servers[1].port)
        assert await ended.get() is CloseReason.LIMIT
        for server in servers:
            await server.close()
        assert limit.count == 0
        for _, writer in (second, refused, third, refused_again):
            writer.close()
    runtime.workers.close()
