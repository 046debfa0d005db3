"""Peer: a connection to one server, which asks and keeps what the server sends by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import MappingProxyType

from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import Body, CommandHeader, ExtValue, RemotingCommand, SerializeType
from rewindmq.protocol.remoting.client import RemotingClient
from rewindmq.protocol.remoting.connection import Connection, Handler
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.protocol.version import CURRENT_VERSION, LanguageCode
from tests.support.asking import NEVER
from tests.support.broker_requests import BrokerRequests
from tests.support.namesrv_requests import NamesrvRequests

# What a broker sends by itself.
_BY_ITSELF = (
    RequestCode.CHECK_TRANSACTION_STATE,
    RequestCode.NOTIFY_CONSUMER_IDS_CHANGED,
    RequestCode.RESET_CONSUMER_CLIENT_OFFSET,
    RequestCode.NOTIFY_QUEUE_RESET,
)


class Peer(BrokerRequests, NamesrvRequests):
    """A client, an administrator or a broker, connected to a broker or a name server.

    Args:
        serialize_type: the codec of its headers; None begins with MessagePack and follows the server.
        version: the ``MQVersion`` ordinal its requests carry.
        answers: handlers for requests of the server; the others are only kept.

    Attributes:
        received: the requests of the server with the second they came at.
    """

    def __init__(
        self,
        runtime: Runtime,
        address: str,
        *,
        serialize_type: SerializeType | None = None,
        client_id: str = "c1",
        version: int = CURRENT_VERSION,
        language: LanguageCode = LanguageCode.JAVA,
        answers: Mapping[int, Handler] = MappingProxyType({}),
    ) -> None:
        kept: dict[int, Handler] = dict.fromkeys(_BY_ITSELF, self._keep)
        # Its own idle timer must not be what closes the connection.
        self.client = RemotingClient(
            runtime, {**kept, **answers}, serialize_type=serialize_type, idle_seconds=NEVER
        )
        self.address = address
        self.client_id = client_id
        self.version = version
        self.language = language
        self.received: list[tuple[float, RemotingCommand]] = []
        self._clock = runtime.clock
        self._came = asyncio.Event()

    def _keep(self, connection: Connection, request: RemotingCommand) -> None:
        self.received.append((self._clock.monotonic(), request))
        self._came.set()

    async def hear(self, code: int) -> RemotingCommand:
        """The first request of a code the server sent, already or next."""
        async with asyncio.timeout(60):
            while not self.count(code):
                self._came.clear()
                await self._came.wait()
        return next(request for _, request in self.received if request.code == code)

    def count(self, code: int) -> int:
        """How many requests of one code the server sent."""
        return sum(request.code == code for _, request in self.received)

    async def ask(
        self,
        code: int,
        header: CommandHeader | None = None,
        body: Body = None,
        *,
        timeout: float = NEVER,
        **fields: ExtValue,
    ) -> RemotingCommand:
        command = RemotingCommand(
            code, header, body, version=self.version, language=self.language, ext_fields=fields or None
        )
        return await self.client.invoke(self.address, command, timeout)
