"""A name server limits its connections as a broker does."""

from __future__ import annotations

import asyncio
import contextlib

from rewindmq.protocol.code import ResponseCode
from tests.support.process import TIMEOUT
from tests.support.stage import ServerStage


async def test_a_connection_beyond_the_share_of_its_address_is_closed(stage: ServerStage) -> None:
    namesrv = await stage.start_namesrv(server_max_connections=2, server_max_connections_per_address=1)
    peer = stage.peer()
    assert (await peer.ask(999)).code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
    host, _, port = namesrv.address.rpartition(":")
    async with asyncio.timeout(TIMEOUT):
        reader, writer = await asyncio.open_connection(host, int(port))
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read(1) == b""
        writer.close()
    assert (await peer.ask(999)).code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
