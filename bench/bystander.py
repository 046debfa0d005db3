"""How long a bystander waits: a plain request of another connection, while others load a server.

``python -m bench.bystander LOAD HOST:PORT`` is the load, in a process of its own: it prints a line when it
runs, and ends with its standard input.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.socket_sends import running_broker
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand, SerializeType
from rewindmq.protocol.frame import encode_frame

HEARTBEATS: Final = 20
# Of one heartbeat: 473 KB, about as many as a broker accepts.
SUBSCRIPTIONS: Final = 2_400
MEMBERS: Final = 500
CHANGES_PER_SECOND: Final = 53
_RESETS_PER_SECOND: Final = 2
_INTERVAL_SECONDS: Final = 0.003
_GROUP: Final = "members"
_TOPIC: Final = "TBW102"
_LENGTH: Final = struct.Struct(">I")
_NOTIFICATION: Final = b'"code":40,'


@dataclass(frozen=True)
class BystanderWaits:
    """The bystander's waits, in ms, and the load of the machine meanwhile.

    Attributes:
        busy: processors that were busy on average, of all processes of the machine.
    """

    p50: float
    p99: float
    worst: float
    count: int
    busy: float


def frame(code: RequestCode, body: bytes | None = None, **fields: str | int) -> bytes:
    """Return a request as a Java client writes it, with JSON headers."""
    command = RemotingCommand(code, None, body, ext_fields={key: str(each) for key, each in fields.items()})
    return encode_frame(command, SerializeType.JSON)


def heartbeat(client_id: str, group: str, subscriptions: int) -> bytes:
    """Return a HEART_BEAT (34) of one consumer group with so many subscriptions."""
    entry = {"subString": "*", "tagsSet": [], "codeSet": [], "subVersion": 1}
    name = "T{:06}" + "x" * 120
    consumer = {
        "groupName": group,
        "consumeType": "CONSUME_PASSIVELY",
        "messageModel": "CLUSTERING",
        "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
        "subscriptionDataSet": [{**entry, "topic": name.format(number)} for number in range(subscriptions)],
    }
    body = {"clientID": client_id, "consumerDataSet": [consumer], "producerDataSet": []}
    return frame(RequestCode.HEART_BEAT, json.dumps(body, separators=(",", ":")).encode())


class Plain:
    """A connection that repeats GET_MAX_OFFSET (30)."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._frame = frame(RequestCode.GET_MAX_OFFSET, topic=_TOPIC, queueId=0)
        self._file = self._socket.makefile("rb")

    def __call__(self) -> None:
        self._socket.sendall(self._frame)
        (length,) = _LENGTH.unpack(self._file.read(4))
        self._file.read(length)

    def close(self) -> None:
        self._file.close()
        self._socket.close()


class StaticPage:
    """A browser that repeats a small static file of the dashboard."""

    def __init__(self, address: str) -> None:
        self._http = http.client.HTTPConnection(address)

    def __call__(self) -> None:
        self._http.request("GET", "/static/dashboard.css")
        response = self._http.getresponse()
        if response.status != 200:
            raise SystemExit(f"bench: the dashboard answered {response.status}")
        response.read()

    def close(self) -> None:
        self._http.close()


def wait_beside(request: Callable[[], None], seconds: float) -> BystanderWaits:
    """Repeat a request, every few ms, for so many seconds."""
    waits: list[float] = []
    busy, began = _busy_seconds(), time.perf_counter()
    while (now := time.perf_counter()) < began + seconds:
        request()
        waits.append((time.perf_counter() - now) * 1_000)
        time.sleep(_INTERVAL_SECONDS)
    waits.sort()
    busy = (_busy_seconds() - busy) / (time.perf_counter() - began)
    return BystanderWaits(waits[len(waits) // 2], waits[len(waits) * 99 // 100], waits[-1], len(waits), busy)


def _busy_seconds() -> float:
    """Return the seconds for which the machine's processors have worked (Linux)."""
    fields = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def loaded(load: str, address: str) -> Iterator[None]:
    """Run a load in another process."""
    command = [sys.executable, "-m", "bench.bystander", load, address]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            if not process.stdout.readline():
                raise SystemExit(f"bench: the load {load} does not start")
            yield
        finally:
            process.stdin.close()
            process.wait(30)


def beside_broker(load: str, seconds: float) -> BystanderWaits:
    """Return the waits at a new broker with a load."""
    with running_broker(is_pure=False) as (host, port, _):
        address = f"{host}:{port}"
        with loaded(load, address), contextlib.closing(Plain(address)) as plain:
            return wait_beside(plain, seconds)


@contextlib.contextmanager
def running_dashboard(namesrv: str) -> Iterator[str]:
    """Run the dashboard's command; give its address."""
    command = [sys.executable, "-m", "rewindmq", "dashboard", "-n", namesrv, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip().rpartition("/")[2]
        finally:
            process.terminate()
            process.wait(30)


def beside_scrapes(dashboard: str, broker: str, seconds: float) -> tuple[BystanderWaits, BystanderWaits]:
    """Return the waits at the dashboard and at its broker while Prometheus scrapes again and again."""
    with loaded("scrapes", dashboard):
        with contextlib.closing(StaticPage(dashboard)) as page:
            at_dashboard = wait_beside(page, seconds)
        with contextlib.closing(Plain(broker)) as plain:
            return at_dashboard, wait_beside(plain, seconds)


# The loads.


class _Client(asyncio.Protocol):
    """A raw connection; counts the frames that arrive, and asks for the group's consumers when notified."""

    def __init__(self) -> None:
        self._received = bytearray()
        self._arrived = asyncio.Event()
        self.frames = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        received = self._received
        received += data
        position = 0
        is_notified = False
        while len(received) - position >= 4:
            (length,) = _LENGTH.unpack_from(received, position)
            if len(received) - position < 4 + length:
                break
            self.frames += 1
            is_notified |= _NOTIFICATION in received[position + 4 : position + 60]
            position += 4 + length
        del received[:position]
        if is_notified:
            # As RocketMQ's client: one rebalance for all notifications so far.
            self.transport.write(_LIST)
        self._arrived.set()

    async def ask(self, request: bytes) -> None:
        """Send a request, and wait for the next frame."""
        frames = self.frames
        self.transport.write(request)
        while self.frames == frames and not self.transport.is_closing():
            self._arrived.clear()
            await self._arrived.wait()


_LIST: Final = frame(RequestCode.GET_CONSUMER_LIST_BY_GROUP, consumerGroup=_GROUP)


async def _connect(address: str) -> _Client:
    host, _, port = address.rpartition(":")
    _, client = await asyncio.get_running_loop().create_connection(_Client, host, int(port))
    return client


async def _heartbeats(address: str) -> None:
    async def beat(number: int) -> None:
        client = await _connect(address)
        request = heartbeat(f"client-{number}", f"group-{number}", SUBSCRIPTIONS)
        while True:
            await client.ask(request)

    print("running", flush=True)
    await asyncio.gather(*(beat(number) for number in range(HEARTBEATS)))


async def _members(address: str) -> None:
    async def join(number: int) -> _Client:
        client = await _connect(address)
        await client.ask(heartbeat(f"10.0.0.1@{number:04}#123456789", _GROUP, 1))
        return client

    async def reset(client: _Client) -> None:
        request = frame(
            RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, topic=_TOPIC, group=_GROUP, timestamp=0, isForce="true"
        )
        while True:
            client.transport.write(request)
            await asyncio.sleep(1 / _RESETS_PER_SECOND)

    members = [await join(number) for number in range(MEMBERS)]
    resetting = asyncio.ensure_future(reset(await _connect(address)))
    print("running", flush=True)
    began = time.perf_counter()
    for number in range(sys.maxsize):
        await asyncio.sleep(max(0.0, began + number / CHANGES_PER_SECOND - time.perf_counter()))
        place = number // 2 % MEMBERS
        if number % 2:
            members[place] = await join(place)
        else:
            members[place].transport.close()
    await resetting


async def _scrapes(address: str) -> None:
    def scrape() -> None:
        connection = http.client.HTTPConnection(address, timeout=60)
        connection.request("GET", "/metrics")
        connection.getresponse().read()
        connection.close()

    print("running", flush=True)
    while True:
        await asyncio.to_thread(scrape)


_LOADS: Final = {"heartbeats": _heartbeats, "members": _members, "scrapes": _scrapes}


async def _until_input_ends(load: str, address: str) -> None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(sys.stdin, ended.set)
    working = asyncio.ensure_future(_LOADS[load](address))
    await asyncio.wait((working, asyncio.ensure_future(ended.wait())), return_when=asyncio.FIRST_COMPLETED)
    if working.done():
        working.result()
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(_until_input_ends(sys.argv[1], sys.argv[2]))
