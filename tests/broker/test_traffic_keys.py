"""The keys that limit the traffic of all connections, at a broker and at a name server."""

from __future__ import annotations

import asyncio

import pytest

from rewindmq.protocol.command import RemotingCommand, SerializeType
from rewindmq.protocol.frame import encode_frame
from tests.support.fixtures import simulated
from tests.support.stage import SimStage

HALF = encode_frame(RemotingCommand(10, body=bytes(1_000)), SerializeType.MSGPACK)[:500]


class HalfSender(asyncio.Protocol):
    """A peer that sends the first half of a frame."""

    def __init__(self) -> None:
        self.is_closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(HALF)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_closed = True


async def half_sender(stage: SimStage, address: str) -> HalfSender:
    peer = HalfSender()
    host, port = address.rsplit(":", 1)
    await stage.new_runtime().network.connect(lambda: peer, host, int(port))
    return peer


@simulated(brokers=0)
async def test_serverFrameTimeoutMillis_ends_the_wait_for_a_frame(stage: SimStage) -> None:
    await stage.start_namesrv(server_frame_timeout_millis=2_000)
    broker = await stage.start_broker(server_frame_timeout_millis=4_000)
    at_namesrv = await half_sender(stage, stage.namesrv)
    at_broker = await half_sender(stage, broker.address)
    await stage.at(1.9)
    assert (at_namesrv.is_closed, at_broker.is_closed) == (False, False)
    await stage.at(3.9)
    assert (at_namesrv.is_closed, at_broker.is_closed) == (True, False)
    await stage.at(4.1)
    assert (at_namesrv.is_closed, at_broker.is_closed) == (True, True)


@simulated(brokers=0)
async def test_serverMaxUnfinishedFrameBytes_holds_for_both_ports_of_a_broker(stage: SimStage) -> None:
    broker = await stage.start_broker(server_max_unfinished_frame_bytes=2 * len(HALF))
    host, port = broker.address.rsplit(":", 1)
    first = await half_sender(stage, broker.address)
    second = await half_sender(stage, f"{host}:{int(port) - 2}")
    await stage.at(1.0)
    assert (first.is_closed, second.is_closed) == (False, False)
    third = await half_sender(stage, broker.address)
    await stage.at(2.0)
    assert (first.is_closed, second.is_closed, third.is_closed) == (True, False, False)
    (await stage.peer().send()).require_success()


@pytest.mark.parametrize("server", ["broker", "namesrv"])
@simulated(brokers=0)
async def test_serverMaxUnreadBytes_reaches_the_connections(stage: SimStage, server: str) -> None:
    if server == "broker":
        limit = (
            await stage.start_broker(server_max_unread_bytes=99 << 20)
        ).context.endpoints.traffic.unread.limit
    else:
        namesrv = await stage.start_namesrv(server_max_unread_bytes=99 << 20)
        limit = namesrv._server.traffic.unread.limit
    assert limit == 99 << 20
