"""The listening side of the remoting protocol (``NettyRemotingServer``)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from rewindmq.protocol.command import SerializeType
from rewindmq.protocol.remoting.connection import Connection, Handler
from rewindmq.protocol.remoting.endpoint import IDLE_SECONDS, Endpoint
from rewindmq.protocol.remoting.runtime import Listener, Runtime
from rewindmq.protocol.remoting.state import CloseReason


class RemotingServer(Endpoint):
    """Accepts connections and answers their requests from a table of handlers.

    Args:
        handlers: request code to handler; other codes are answered 3.
        idle_seconds: protocol seconds of silence after which a connection is closed (120, as
            ``NettyServerConfig``).
        on_close: told of every connection that went, and why, after its pending requests have failed.
    """

    def __init__(
        self,
        runtime: Runtime,
        handlers: Mapping[int, Handler],
        *,
        idle_seconds: float = IDLE_SECONDS,
        on_close: Callable[[Connection, CloseReason], None] | None = None,
    ) -> None:
        super().__init__(runtime, handlers, idle_seconds, on_close)
        self._listener: Listener | None = None
        self._address = ("", 0)

    @property
    def host(self) -> str:
        """The host as bound; "" before ``start``."""
        return self._address[0]

    @property
    def port(self) -> int:
        """The port as bound; 0 before ``start``."""
        return self._address[1]

    async def start(self, host: str, port: int) -> None:
        """Bind and serve; port 0 takes any free one.

        Raises:
            OSError: the address cannot be bound; ``strerror`` says which and why, for the user.
        """
        assert self._listener is None, "already started"
        try:
            self._listener = await self.runtime.network.listen(self._accept, host, port)
        except OSError as error:
            # Event loops word this differently, some without the address; resolvers' codes are negative.
            number = error.errno or 0
            reason = os.strerror(number) if number > 0 else error.strerror or str(error)
            raise OSError(error.errno, f"cannot listen on {host}:{port}: {reason}") from None
        self._address = (self._listener.host, self._listener.port)

    async def close(self, grace_seconds: float = 3.0) -> None:
        """Stop listening, let the answers in flight leave, close every connection. Safe to call again.

        Args:
            grace_seconds: after so many seconds (not scaled) what has not left is dropped.
        """
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.close()
        await self._close_connections(grace_seconds)

    def _accept(self) -> Connection:
        # Every peer reads JSON; its heartbeat may tell of a better codec.
        return Connection(self, SerializeType.JSON, accepted=True)
