"""The listening side of the remoting protocol (``NettyRemotingServer``)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from rewindmq.protocol.command import SerializeType
from rewindmq.protocol.remoting.accept.limit import ConnectionLimit
from rewindmq.protocol.remoting.connection import Connection, Handler
from rewindmq.protocol.remoting.endpoint import IDLE_SECONDS, Endpoint
from rewindmq.protocol.remoting.runtime import Listener, Runtime
from rewindmq.protocol.remoting.state import CloseReason
from rewindmq.protocol.remoting.traffic.held_bytes import Traffic


class RemotingServer(Endpoint):
    """Accepts connections and passes their requests to handlers.

    Args:
        handlers: request code to handler; other codes get REQUEST_CODE_NOT_SUPPORTED (3).
        idle_seconds: protocol seconds of silence after which a connection is closed (120, as
            ``NettyServerConfig``).
        limit: counts the connections of all servers that share it; None accepts every connection.
        on_open: called with every accepted connection, before ``limit`` refuses it.
        on_close: called with every closed connection and the reason, after its pending requests have failed.
        traffic: the limits for all connections, which servers of one process share.
    """

    def __init__(
        self,
        runtime: Runtime,
        handlers: Mapping[int, Handler],
        *,
        idle_seconds: float = IDLE_SECONDS,
        limit: ConnectionLimit | None = None,
        on_open: Callable[[Connection], None] | None = None,
        on_close: Callable[[Connection, CloseReason], None] | None = None,
        traffic: Traffic | None = None,
    ) -> None:
        super().__init__(runtime, handlers, idle_seconds, on_close, traffic)
        self._limit = limit
        self._on_open = on_open
        self._admitted: set[Connection] = set()
        self._listener: Listener | None = None
        self._address = ("", 0)

    @property
    def host(self) -> str:
        """The bound host; "" before ``start``."""
        return self._address[0]

    @property
    def port(self) -> int:
        """The bound port; 0 before ``start``."""
        return self._address[1]

    async def start(self, host: str, port: int) -> None:
        """Bind and serve; port 0 means any free port.

        Raises:
            OSError: the address cannot be bound; ``strerror`` tells the user the address and the reason.
        """
        assert self._listener is None, "already started"
        try:
            self._listener = await self.runtime.network.listen(self._accept, host, port)
        except OSError as error:
            # Each event loop words this error differently, some without the address. A name that does not
            # resolve gives a negative number, which ``os.strerror`` does not know.
            number = error.errno or 0
            reason = os.strerror(number) if number > 0 else error.strerror or str(error)
            raise OSError(error.errno, f"cannot listen on {host}:{port}: {reason}") from None
        self._address = (self._listener.host, self._listener.port)

    async def close(self, grace_seconds: float = 3.0) -> None:
        """Stop listening, wait for responses in flight, close every connection. Safe to call again.

        Args:
            grace_seconds: seconds (not scaled) after which unsent responses are dropped.
        """
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.close()
        await self._close_connections(grace_seconds)

    def connection_opened(self, connection: Connection) -> None:
        super().connection_opened(connection)
        if self._on_open is not None:
            self._on_open(connection)
        if self._limit is None:
            return
        if self._limit.admit(connection.remote_address):
            self._admitted.add(connection)
        else:
            connection.abort(CloseReason.LIMIT)

    def connection_closed(self, connection: Connection, reason: CloseReason) -> None:
        if self._limit is not None and connection in self._admitted:
            self._admitted.discard(connection)
            self._limit.release(connection.remote_address)
        super().connection_closed(connection, reason)

    def _accept(self) -> Connection:
        # Every peer reads JSON. Its heartbeat's type replaces this default for later requests to the peer.
        return Connection(self, SerializeType.JSON, accepted=True)
