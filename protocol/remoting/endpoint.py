"""The state that all connections of one server or client share."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence

from rewindmq.protocol.remoting.connection import Connection, Handler
from rewindmq.protocol.remoting.permits import OnewayPermits
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.protocol.remoting.speedups import FrameKernel
from rewindmq.protocol.remoting.state import CloseReason
from rewindmq.protocol.remoting.traffic.held_bytes import Traffic

logger = logging.getLogger(__name__)

# NettyServerConfig.serverChannelMaxIdleTimeSeconds, NettyClientConfig.clientChannelMaxIdleTimeSeconds.
IDLE_SECONDS = 120.0


class Endpoint:
    """Base of ``RemotingServer`` and ``RemotingClient``: handler table and open connections.

    Attributes:
        runtime: clock, timers, network, threads and randomness; read by the connections.
        handlers: request code to handler; read for every request, so it may grow while running.
        idle_seconds: protocol seconds without a byte in either direction after which a connection is closed.
        permits: the oneway permits shared by all connections.
        traffic: the limits for all accepted connections.
        tasks: running handler tasks, in order of arrival.
        frame_kernels: answer some of the peers' frames before they are decoded; empty in pure Python.
    """

    def __init__(
        self,
        runtime: Runtime,
        handlers: Mapping[int, Handler],
        idle_seconds: float,
        on_close: Callable[[Connection, CloseReason], None] | None,
        traffic: Traffic | None = None,
    ) -> None:
        self.runtime = runtime
        self.handlers = handlers
        self.idle_seconds = idle_seconds
        self.traffic = Traffic() if traffic is None else traffic
        self.permits = OnewayPermits(runtime.timers)
        # Insertion order, not a set: under virtual time the same seed must give the same schedule.
        self.tasks: dict[asyncio.Task[None], None] = {}
        self.frame_kernels: Sequence[FrameKernel] = ()
        self._connections: dict[Connection, None] = {}
        self._on_close = on_close
        self._closed = False
        self._all_gone: asyncio.Future[None] | None = None

    @property
    def connections(self) -> Collection[Connection]:
        """A snapshot of the open connections, oldest first."""
        return tuple(self._connections)

    def connection_opened(self, connection: Connection) -> None:
        """Register a connection that has its transport."""
        self._connections[connection] = None
        if self._closed:
            connection.abort()

    def connection_closed(self, connection: Connection, reason: CloseReason) -> None:
        """Unregister a connection whose transport is closed; called once."""
        self._connections.pop(connection, None)
        if self._on_close is not None:
            try:
                self._on_close(connection, reason)
            except Exception:
                logger.exception("on_close of %s failed", connection)
        if not self._connections and self._all_gone is not None and not self._all_gone.done():
            self._all_gone.set_result(None)

    async def _close_connections(self, grace_seconds: float) -> None:
        """Wait for the responses in flight, then end every connection and task."""
        self._closed = True
        for connection in self.connections:
            connection.finish()
        if self._connections:
            timer = self.runtime.timers.call_timeout(grace_seconds, self._abort_connections)
            try:
                await self._wait_all_gone()
            finally:
                timer.cancel()
        if self.tasks:
            await asyncio.wait(list(self.tasks), timeout=grace_seconds)

    async def _wait_all_gone(self) -> None:
        if self._all_gone is None:
            self._all_gone = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._all_gone)

    def _abort_connections(self) -> None:
        for connection in self.connections:
            connection.abort()
