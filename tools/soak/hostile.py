"""The soak's hostile peer: one worker that sends servers what no client should, and never stops.

Every attack is bounded in bytes, connections and time, and goes to the soak's own servers. The names of
groups and topics come from a fixed list, so the servers' tables stop growing once each name was sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final, TypeAlias

from rewindmq.client.admin.admin_client import AdminClient
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.remoting.address import parse_address
from tools.soak.context import WorkerContext
from tools.soak.message import TOPICS
from tools.soak.pauses import pause

# As the report names them.
ATTACKS: Final = (
    "attack: random bytes",
    "attack: wrong lengths",
    "attack: half a frame",
    "attack: a byte at a time",
    "attack: idle connections",
    "attack: answers left unread",
    "attack: heartbeats of many groups",
    "attack: deeply nested bodies",
    "attack: pulls suspended for ever",
    "attack: hostile names",
    "attack: every code with wrong fields",
)
_CONNECT_SECONDS: Final = 5.0
# How long an attack holds what it took.
_HOLD_SECONDS: Final = 1.0
_DRIP_SECONDS: Final = 0.05
_PAUSE_SECONDS: Final = 0.2
_IDLE_CONNECTIONS: Final = 30
_NAMES: Final = 200
# Starts no valid name of a topic or group; also ends lines and moves the cursor of a terminal.
_BAD_NAMES: Final = ("../../../x", "a\nb", "\x1b[2Jx", "x" * 100_000, "", ".", "\u202ex", "%RETRY%" * 30)
_CONTENT_BYTES: Final = 65_536

# Takes a server's address.
Attack: TypeAlias = Callable[[str], Awaitable[None]]


def frame(code: int, fields: dict[str, Any] | None = None, body: bytes = b"") -> bytes:
    """Return a request in JSON, written without the library's checks."""
    header = {"code": code, "language": "JAVA", "version": 433, "opaque": 1, "flag": 0}
    encoded = json.dumps(header | {"extFields": fields or {}}).encode()
    return struct.pack(">ii", 4 + len(encoded) + len(body), len(encoded)) + encoded + body


class HostilePeer:
    """Attacks one server address at a time.

    Args:
        chance: chooses bytes, names and codes.
    """

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        attacks = (
            self._send_garbage,
            self._send_lengths,
            self._send_half,
            self._drip,
            self._idle,
            self._read_nothing,
            self._beat,
            self._nest,
            self._pull_forever,
            self._send_names,
            self._send_codes,
        )
        self.attacks: Final[dict[str, Attack]] = dict(zip(ATTACKS, attacks, strict=True))

    async def _send_garbage(self, address: str) -> None:
        await self._send(address, self._chance.randbytes(_CONTENT_BYTES))

    async def _send_lengths(self, address: str) -> None:
        for length, header in ((0, 0), (-1, 0), (2**31 - 1, 8), (8, 2**24), (3, 0), (100, -1)):
            await self._send(address, struct.pack(">ii", length, header) + bytes(64))

    async def _send_half(self, address: str) -> None:
        await self._send(address, struct.pack(">ii", 4 << 20, 64) + bytes(1 << 20), hold=_HOLD_SECONDS)

    async def _drip(self, address: str) -> None:
        async with _connected(address) as (_, writer):
            for byte in frame(RequestCode.GET_MAX_OFFSET)[:20]:
                writer.write(bytes((byte,)))
                await pause(_DRIP_SECONDS)

    async def _idle(self, address: str) -> None:
        async with contextlib.AsyncExitStack() as exits:
            for _ in range(_IDLE_CONNECTIONS):
                await exits.enter_async_context(_connected(address))
            await pause(_HOLD_SECONDS)

    async def _read_nothing(self, address: str) -> None:
        tables = (
            frame(RequestCode.GET_ALL_TOPIC_CONFIG)
            + frame(RequestCode.GET_BROKER_RUNTIME_INFO)
            + frame(RequestCode.GET_BROKER_CLUSTER_INFO)
        )
        await self._send(address, tables * 200, hold=_HOLD_SECONDS)

    async def _beat(self, address: str) -> None:
        subscription = {"topic": "T", "subString": "*", "tagsSet": ["t" * 100] * 20, "subVersion": 1}
        groups = [
            {
                "groupName": f"HostileGroup{number}",
                "consumeType": "CONSUME_PASSIVELY",
                "messageModel": "CLUSTERING",
                "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
                "unitMode": False,
                "subscriptionDataSet": [subscription | {"topic": f"HostileTopic{number}"}],
            }
            for number in range(_NAMES)
        ]
        client = f"hostile\n\x1b[31m@{self._chance.randrange(8)}"
        body = json.dumps({"clientID": client, "consumerDataSet": groups, "producerDataSet": []}).encode()
        await self._send(address, frame(RequestCode.HEART_BEAT, None, body) * 3, hold=_HOLD_SECONDS)

    async def _nest(self, address: str) -> None:
        for body in (b"[" * _CONTENT_BYTES, b"[[]," * _CONTENT_BYTES, b'{"a":' * _CONTENT_BYTES):
            await self._send(address, frame(RequestCode.HEART_BEAT, None, body))

    async def _pull_forever(self, address: str) -> None:
        fields = {
            "consumerGroup": "HostileGroup0",
            "topic": self._chance.choice(list(TOPICS.values())),
            "queueId": "0",
            "queueOffset": str(2**62),
            "maxMsgNums": str(2**31 - 1),
            # 2: the broker may suspend the pull; 4: the subscription is in the request.
            "sysFlag": "6",
            "commitOffset": "0",
            "suspendTimeoutMillis": str(2**62),
            "subscription": "||".join("t" * 100 for _ in range(100)),
            "subVersion": "1",
        }
        await self._send(address, frame(RequestCode.PULL_MESSAGE, fields) * 200, hold=_HOLD_SECONDS)

    async def _send_names(self, address: str) -> None:
        for name in _BAD_NAMES:
            fields = dict.fromkeys(("queueId", "sysFlag", "bornTimestamp", "flag"), "0")
            fields |= {"producerGroup": name, "topic": name}
            fields |= {"defaultTopic": "TBW102", "defaultTopicQueueNums": "8"}
            await self._send(address, frame(RequestCode.SEND_MESSAGE, fields, b"x"))
            await self._send(address, frame(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": name}))

    async def _send_codes(self, address: str) -> None:
        """Send every code with wrong fields; what a server carries out is not about the soak's names."""
        wrong = {"topic": "HostileTopic0", "group": "HostileGroup0", "queueId": "x", "timestamp": ""}
        codes = [*RequestCode, -1, 9_999, 2**31 - 1]
        self._chance.shuffle(codes)
        await self._send(address, b"".join(frame(int(code), wrong, b"\x00{") for code in codes))

    async def _send(self, address: str, data: bytes, *, hold: float = 0.0) -> None:
        """Send bytes on a new connection, then read to its end, or do not read for ``hold`` seconds."""
        async with _connected(address) as (reader, writer):
            writer.write(data)
            if hold:
                await pause(hold)
                return
            if writer.transport.is_closing():
                return
            writer.write_eof()
            async with asyncio.timeout(_CONNECT_SECONDS):
                while await reader.read(_CONTENT_BYTES):
                    pass


@contextlib.asynccontextmanager
async def _connected(address: str) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    host, port = parse_address(address)
    async with asyncio.timeout(_CONNECT_SECONDS):
        reader, writer = await asyncio.open_connection(host, port)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def attack(context: WorkerContext) -> None:
    """Attack the soak's servers, one after another, until the process must end."""
    addresses = await _addresses(context)
    chance = random.Random(context.namesrv)
    peer = HostilePeer(chance)
    while not context.ending.is_set():
        for name in chance.sample(list(peer.attacks), len(peer.attacks)):
            # A server that was killed refuses connections for a while; a server that closes one is right.
            # uvloop raises RuntimeError for a transport whose socket the server has closed.
            with contextlib.suppress(OSError, RuntimeError, TimeoutError):
                await peer.attacks[name](chance.choice(addresses))
                context.counts[name] += 1
            if not await context.pause(_PAUSE_SECONDS):
                return


async def _addresses(context: WorkerContext) -> list[str]:
    """Return the addresses of the name server and of every master."""
    while True:
        try:
            async with AdminClient(context.namesrv, runtime=context.runtime) as admin:
                info = await admin.brokers.examine_broker_cluster_info()
        except RewindMQError:
            await pause(_PAUSE_SECONDS)
            continue
        brokers = [data.broker_addrs[0] for data in info.broker_addr_table.values()]
        return [context.namesrv, *brokers]
