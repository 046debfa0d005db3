"""Registrations of many brokers with many topics at one name server, and route look-ups from a raw client."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from bench.cluster_start import cpu_seconds
from bench.pipelined_client import PipelinedClient
from rewindmq.protocol.body.route import TopicRouteData
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import RemotingCommand, SerializeType
from rewindmq.protocol.frame import FrameDecoder, encode_frame
from rewindmq.protocol.header.namesrv import GetRouteInfoRequestHeader, RegisterBrokerRequestHeader
from rewindmq.protocol.remoting.address import parse_address
from rewindmq.protocol.version import MQVersion

_LENGTH: Final = struct.Struct(">i")
# Different frames; topics repeat after so many look-ups. A prime walks through all topics.
_FRAMES: Final = 4_096
_STRIDE: Final = 7_919
_IN_FLIGHT: Final = 64
_SECONDS: Final = 60.0
_CHUNK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Fleet:
    """Brokers that register, and their topics.

    Attributes:
        copies: brokers of each topic: those that follow the one with the topic's number.
    """

    brokers: int
    topics: int
    copies: int

    def topics_of(self, broker: int) -> Iterator[str]:
        """Give the names of a broker's topics."""
        for topic in range(self.topics):
            if (broker - topic) % self.brokers < self.copies:
                yield _topic(topic)


@contextmanager
def registered(namesrv: str, fleet: Fleet) -> Iterator[None]:
    """Register the brokers, each over a connection of its own, which stays until the block's end."""
    with contextlib.ExitStack() as stack:
        for broker in range(fleet.brokers):
            connection = stack.enter_context(socket.create_connection(parse_address(namesrv), _SECONDS))
            _ask(connection, _registration(fleet, broker))
        yield


async def looked_up(namesrv: str, pid: int, fleet: Fleet, total: int) -> tuple[float, float]:
    """Look up the routes of ``total`` topics, 64 in flight, over one connection.

    Args:
        pid: the name server's process.

    Returns:
        Look-ups per second, and microseconds of the name server's processor time for each.

    Raises:
        SystemExit: the name server gives the route of fewer brokers than have registered the topic.
    """
    host, port = parse_address(namesrv)
    frames = [_lookup(_topic(number * _STRIDE % fleet.topics)) for number in range(_FRAMES)]
    with socket.create_connection((host, port), _SECONDS) as connection:
        route = decode_body(_ask(connection, frames[0]), TopicRouteData)
    if len(route.broker_datas) != fleet.copies:
        raise SystemExit(f"bench: a route of {len(route.broker_datas)} brokers instead of {fleet.copies}")
    loop = asyncio.get_running_loop()
    _, client = await loop.create_connection(lambda: PipelinedClient(frames), host, port)
    before, started = cpu_seconds(pid), time.perf_counter()
    await client.send(_IN_FLIGHT, total)
    seconds, spent = time.perf_counter() - started, cpu_seconds(pid) - before
    client.close()
    return total / seconds, spent / total * 1e6


def _ask(connection: socket.socket, frame: bytes) -> RemotingCommand:
    connection.sendall(frame)
    decoder = FrameDecoder()
    while data := connection.recv(_CHUNK):
        for answer in decoder.feed(data):
            return answer.require_success()
    raise SystemExit("bench: the name server has closed the connection")


def _topic(number: int) -> str:
    return f"orders-{number:06}"


def _registration(fleet: Fleet, broker: int) -> bytes:
    host = f"10.0.{broker // 250}.{broker % 250}"
    header = RegisterBrokerRequestHeader(
        broker_name=f"broker-{broker:04}",
        broker_addr=f"{host}:10911",
        cluster_name="DefaultCluster",
        ha_server_addr=f"{host}:10912",
        broker_id=0,
        compressed=True,
    )
    body = _body(fleet.topics_of(broker))
    return _frame(RemotingCommand(RequestCode.REGISTER_BROKER, header, version=MQVersion.V4_9_4, body=body))


def _body(topics: Iterable[str]) -> bytes:
    """Return a compressed body; an uncompressed one with 100,000 topics would not fit into a frame."""
    configs = [_block(f"{topic} 8 8 6 SINGLE_TAG".encode()) for topic in topics]
    version = _block(b'{"counter":1,"timestamp":1700000000000}')
    return zlib.compress(b"".join((version, _LENGTH.pack(len(configs)), *configs, _block(b"[]"))), 1)


def _block(data: bytes) -> bytes:
    return _LENGTH.pack(len(data)) + data


def _lookup(topic: str) -> bytes:
    header = GetRouteInfoRequestHeader(topic=topic)
    return _frame(RemotingCommand(RequestCode.GET_ROUTEINFO_BY_TOPIC, header, version=MQVersion.V4_9_4))


def _frame(command: RemotingCommand) -> bytes:
    return encode_frame(command, SerializeType.JSON)
