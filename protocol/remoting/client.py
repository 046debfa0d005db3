"""The client side of the remoting protocol (``NettyRemotingClient``)."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from rewindmq.protocol.command import RemotingCommand, SerializeType
from rewindmq.protocol.errors import (
    ClientError,
    ConnectError,
    ConnectionLostError,
    NotConnectedError,
    RequestTimeoutError,
)
from rewindmq.protocol.remoting.address import parse_address
from rewindmq.protocol.remoting.connecting import connect_within
from rewindmq.protocol.remoting.connection import Connection, Handler
from rewindmq.protocol.remoting.endpoint import IDLE_SECONDS, Endpoint
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.protocol.remoting.state import CloseReason

# NettyClientConfig.connectTimeoutMillis.
CONNECT_TIMEOUT_SECONDS: Final = 3.0
_CLOSE_GRACE_SECONDS: Final = 3.0
_NO_HANDLERS: Final = MappingProxyType[int, Handler]({})


class RemotingClient(Endpoint):
    """Sends requests to any number of servers, over one connection each, opened on first use.

    Serialization type: no peer advertises msgpack (docs/spec/protocol.md 2.4), so the client tries it on the
    first connection to an address. If the peer closes that connection without sending a byte, the client
    assumes JSON and sends the waiting requests again in JSON. The loss of a oneway request would go
    unnoticed. Before the client sends a oneway request to a peer that has not sent anything yet, it therefore
    sends a ``greeting`` and waits for the response. The client drops the assumption of JSON if the peer does
    not respond in JSON either, or if connecting fails: a RewindMQ server that was only stopping when the
    client tried msgpack does not count as a JSON peer for ever. A request to an address that has answered in
    msgpack before is not sent again: the peer may have carried it out.

    Args:
        handlers: request code to handler, for requests the servers send.
        serialize_type: use this type for every address; None negotiates as described.
        greeting: creates a request that every peer answers and that changes nothing. Without a greeting, the
            first request to a peer that does not know msgpack is lost if it is oneway.
        connect_timeout: seconds, not scaled.
        idle_seconds: protocol seconds of silence after which a connection is closed (120, as
            ``NettyClientConfig``).
        on_close: called with every closed connection and the reason, after its pending requests have failed.
    """

    def __init__(
        self,
        runtime: Runtime,
        handlers: Mapping[int, Handler] = _NO_HANDLERS,
        *,
        serialize_type: SerializeType | None = None,
        greeting: Callable[[], RemotingCommand] | None = None,
        connect_timeout: float = CONNECT_TIMEOUT_SECONDS,
        idle_seconds: float = IDLE_SECONDS,
        on_close: Callable[[Connection, CloseReason], None] | None = None,
    ) -> None:
        super().__init__(runtime, handlers, idle_seconds, on_close)
        self._fixed_type = serialize_type
        self._greeting = greeting
        self._connect_timeout = connect_timeout
        self._by_address: dict[str, Connection] = {}
        self._dialled: dict[Connection, str] = {}
        self._connecting: dict[str, asyncio.Task[Connection]] = {}
        self._json_addresses: set[str] = set()
        # Peers that have answered in msgpack.
        self._msgpack_addresses: set[str] = set()
        self._slow_calls: dict[asyncio.Task[RemotingCommand], None] = {}
        self._greetings: dict[str, asyncio.Future[RemotingCommand]] = {}

    def invoke(
        self, address: str, command: RemotingCommand, timeout: float = 3.0
    ) -> asyncio.Future[RemotingCommand]:
        """Send a request to ``host:port``; the future gives the response, whatever its code.

        Args:
            timeout: seconds for connecting and the request together; not scaled.

        Raises (through the future):
            ConnectError: ``connect to <address> failed: <why>``.
            ConnectionLostError, UnreadableResponseError: as ``Connection.invoke``.
            RequestTimeoutError: no response in time; NotConnectedError: not even a connection.
            TooManyRequestsError: see ``Connection.invoke``.
            ClientError: this client is closed.
        """
        connection = self.ready_connection(address)
        if connection is not None:
            return connection.invoke(command, timeout)
        call = asyncio.get_running_loop().create_task(self._invoke(address, command, timeout))
        self._slow_calls[call] = None
        call.add_done_callback(self._forget_call)
        return call

    def ready_connection(self, address: str) -> Connection | None:
        """Return the open connection to a peer whose serialization type is certain; None if there is none."""
        connection = self._by_address.get(address)
        if connection is None or not connection.has_received or connection.is_closed:
            return None
        return connection

    async def invoke_oneway(self, address: str, command: RemotingCommand, timeout: float = 3.0) -> None:
        """Send a request without a response; return when the transport has accepted it.

        Raises:
            ConnectError, ConnectionLostError, ClientError: as ``invoke``.
            TooManyRequestsError: no permit or no room in the write buffer within ``timeout``.
            RequestTimeoutError: not connected, or not greeted, within ``timeout``.
        """
        now = asyncio.get_running_loop().time
        deadline = now() + timeout
        if self._greeting is not None and not self._is_understood(address):
            await self._greet(address, self._greeting, timeout)
        connection = await self._connected(address, deadline - now())
        await connection.invoke_oneway(command, deadline - now())

    async def close(self) -> None:
        """Close every connection; calls in progress fail. Safe to call again."""
        self._refuse()
        for connection in self.connections:
            connection.close("the client shuts down")
        await self._close_connections(_CLOSE_GRACE_SECONDS)
        # Their connections are closed, so these calls end too.
        if self._slow_calls:
            await asyncio.wait(list(self._slow_calls))

    def abort(self) -> None:
        """Close at once, without waiting; discard unsent data."""
        self._refuse()
        self._abort_connections()

    def _refuse(self) -> None:
        self._closed = True
        for attempt in self._connecting.values():
            attempt.cancel()

    def connection_closed(self, connection: Connection, reason: CloseReason) -> None:
        address = self._dialled.pop(connection, None)
        if address is not None:
            if self._by_address.get(address) is connection:
                del self._by_address[address]
            if connection.has_received:
                if connection.peer_serialize_type == SerializeType.MSGPACK:
                    self._msgpack_addresses.add(address)
            elif connection.has_sent:
                self._judge_silence(address, connection.peer_serialize_type, reason)
        super().connection_closed(connection, reason)

    def _judge_silence(self, address: str, serialize_type: SerializeType, reason: CloseReason) -> None:
        """Update the assumed type of a peer that closed a connection without sending a byte."""
        if self._fixed_type is not None:
            return
        if serialize_type != SerializeType.MSGPACK:
            self._json_addresses.discard(address)
        elif address in self._msgpack_addresses:
            # It has understood the request, and may have carried it out. Next time it may be another peer.
            self._msgpack_addresses.discard(address)
        elif reason in (CloseReason.PEER, CloseReason.ERROR):
            self._json_addresses.add(address)

    def _is_understood(self, address: str) -> bool:
        """Return whether the serialization type of the next request to ``address`` is certain."""
        if self._fixed_type is not None or address in self._json_addresses:
            return True
        return self.ready_connection(address) is not None

    async def _greet(self, address: str, make: Callable[[], RemotingCommand], timeout: float) -> None:
        """Make the peer respond once; concurrent requests share one greeting.

        Raises:
            RequestTimeoutError: the peer is still silent. Other failures surface in the request that follows.
        """
        now = asyncio.get_running_loop().time
        deadline = now() + timeout
        while (left := deadline - now()) > 0:
            greeting = self._greetings.get(address)
            if greeting is None:
                greeting = self._greetings[address] = self.invoke(address, make(), left)
                greeting.add_done_callback(lambda ended: self._forget_greeting(address, ended))
            done, _ = await asyncio.wait((greeting,), timeout=left)
            # A cancelled greeting may belong to a request with a shorter timeout.
            if done and not isinstance(greeting.exception(), RequestTimeoutError):
                return
        raise RequestTimeoutError(f"no response from {address} within {timeout * 1000:.0f} ms")

    async def _invoke(self, address: str, command: RemotingCommand, timeout: float) -> RemotingCommand:
        now = asyncio.get_running_loop().time
        deadline = now() + timeout
        connection = await self._connected(address, timeout)
        try:
            return await connection.invoke(command, deadline - now())
        except ConnectionLostError as error:
            if not self._was_misunderstood(connection, address):
                raise
            lost = error
        try:
            connection = await self._connected(address, deadline - now())
        except (ConnectError, NotConnectedError):
            raise lost from None
        return await connection.invoke(command, deadline - now())

    def _was_misunderstood(self, connection: Connection, address: str) -> bool:
        """Return whether to send a request that was lost with ``connection`` again in JSON."""
        spoke_msgpack = connection.peer_serialize_type == SerializeType.MSGPACK
        return spoke_msgpack and not connection.has_received and address in self._json_addresses

    def _serialize_type(self, address: str) -> SerializeType:
        if self._fixed_type is not None:
            return self._fixed_type
        return SerializeType.JSON if address in self._json_addresses else SerializeType.MSGPACK

    async def _connected(self, address: str, timeout: float) -> Connection:
        """Return the connection to ``address``; concurrent calls share one attempt to connect."""
        if self._closed:
            raise ClientError("this remoting client is closed")
        connection = self._by_address.get(address)
        if connection is not None and not connection.is_closed:
            return connection
        attempt = self._connecting.get(address)
        if attempt is None:
            attempt = asyncio.get_running_loop().create_task(self._connect(address))
            self._connecting[address] = attempt
            attempt.add_done_callback(lambda ended: self._forget_attempt(address, ended))
        done, _ = await asyncio.wait((attempt,), timeout=timeout)
        if not done:
            raise NotConnectedError(f"not connected to {address} within {timeout * 1000:.0f} ms")
        if attempt.cancelled():
            raise ClientError("this remoting client is closed")
        error = attempt.exception()
        if isinstance(error, ConnectError):
            # One error object per caller: a traceback grows with each raise.
            raise ConnectError(str(error))
        return attempt.result()

    async def _connect(self, address: str) -> Connection:
        connection = Connection(self, self._serialize_type(address), accepted=False)
        try:
            host, port = parse_address(address)
            await connect_within(self.runtime, lambda: connection, host, port, self._connect_timeout)
        except (OSError, ValueError) as error:
            self._json_addresses.discard(address)
            raise ConnectError(f"connect to {address} failed: {_why(error)}") from None
        # If the connection is already lost, do not register it: ``connection_closed`` has run and would not
        # remove it again.
        if not connection.is_closed:
            self._dialled[connection] = address
            self._by_address[address] = connection
        return connection

    def _forget_attempt(self, address: str, attempt: asyncio.Task[Connection]) -> None:
        del self._connecting[address]
        if not attempt.cancelled():
            # Mark the error as retrieved: all callers that waited for it may have been cancelled.
            attempt.exception()

    def _forget_greeting(self, address: str, greeting: asyncio.Future[RemotingCommand]) -> None:
        del self._greetings[address]
        if not greeting.cancelled():
            # As above.
            greeting.exception()

    def _forget_call(self, call: asyncio.Task[RemotingCommand]) -> None:
        del self._slow_calls[call]


def _why(error: OSError | ValueError) -> str:
    if isinstance(error, OSError) and error.errno and not isinstance(error, socket.gaierror):
        return os.strerror(error.errno)
    return getattr(error, "strerror", None) or str(error)
