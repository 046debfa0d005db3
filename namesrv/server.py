"""The name server: serves its tables on a socket and removes brokers that stop registering."""

from __future__ import annotations

import logging

from rewindmq.namesrv.config import NamesrvConfig
from rewindmq.namesrv.context import NamesrvContext
from rewindmq.namesrv.handlers import bind_handlers
from rewindmq.namesrv.kv_config import KVConfigManager
from rewindmq.namesrv.profile import CONNECTION_IDLE_SECONDS, PROFILES
from rewindmq.namesrv.route_info import RouteInfoManager
from rewindmq.protocol.remoting.accept.limit import connection_limit
from rewindmq.protocol.remoting.address import format_address
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.remoting.runtime import Cancellable, Runtime
from rewindmq.protocol.remoting.server import RemotingServer
from rewindmq.protocol.remoting.state import CloseReason
from rewindmq.protocol.remoting.traffic.held_bytes import Traffic

_log = logging.getLogger(__name__)


class NameServer:
    """One name server process, or one of several inside a simulation.

    The name server removes a broker's routes in three cases (docs/spec/nameserver.md A.3): the broker
    unregisters (UNREGISTER_BROKER, 104); its connection closes or stays silent for 120 s; or a scan finds its
    last registration older than 120 s.

    Raises:
        ConfigError: the KV file exists but cannot be read.
    """

    def __init__(self, runtime: Runtime, config: NamesrvConfig) -> None:
        profile = PROFILES[config.profile.release]
        self._runtime = runtime
        self.context = NamesrvContext(
            config, profile, RouteInfoManager(profile), KVConfigManager(config.kv_config_file), runtime.clock
        )
        self._server = RemotingServer(
            runtime,
            bind_handlers(self.context),
            idle_seconds=CONNECTION_IDLE_SECONDS,
            limit=connection_limit(
                runtime.max_connections,
                config.server_max_connections,
                config.server_max_connections_per_address,
                runtime.clock.monotonic,
            ),
            on_close=self._connection_closed,
            traffic=Traffic(
                config.server_frame_timeout_millis / 1_000,
                config.server_max_unfinished_frame_bytes,
                config.server_max_unread_bytes,
            ),
        )
        interval = config.scan_not_active_broker_interval
        self._scan_seconds = profile.scan_seconds if interval is None else interval / 1_000
        self._scan: Cancellable | None = None

    @property
    def address(self) -> str:
        """The bound address, ``host:port``; valid after ``start``."""
        return format_address((self._server.host, self._server.port))

    async def start(self) -> None:
        """Listen, and begin to scan for silent brokers.

        Raises:
            OSError: the address cannot be bound.
        """
        config = self.context.config
        await self._server.start(config.bind_address, config.listen_port)
        self._scan = self._runtime.timers.call_later(
            self.context.profile.first_scan_seconds, self._scan_brokers
        )

    async def close(self) -> None:
        """Stop serving; safe to call at any time, also twice."""
        if self._scan is not None:
            self._scan.cancel()
            self._scan = None
        await self._server.close()

    def _scan_brokers(self) -> None:
        self._scan = self._runtime.timers.call_later(self._scan_seconds, self._scan_brokers)
        for address, connection in self.context.routes.remove_expired(self._runtime.clock.monotonic()):
            _log.warning("broker %s removed: no registration for too long", address)
            assert isinstance(connection, Connection)
            connection.close("its broker stopped registering")

    def _connection_closed(self, connection: Connection, reason: CloseReason) -> None:
        for address in self.context.routes.remove_connection(connection):
            level = logging.INFO if reason is CloseReason.LOCAL else logging.WARNING
            _log.log(level, "broker %s removed: connection closed (%s)", address, reason)
