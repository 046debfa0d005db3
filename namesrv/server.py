"""The name server: serves its tables on a socket and removes brokers that stop registering."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from rewindmq.namesrv.config import NamesrvConfig
from rewindmq.namesrv.context import NamesrvContext
from rewindmq.namesrv.handlers import bind_handlers
from rewindmq.namesrv.kv_config import KVConfigManager
from rewindmq.namesrv.profile import CONNECTION_IDLE_SECONDS, PROFILES
from rewindmq.namesrv.registration_queue import RegistrationQueue
from rewindmq.namesrv.route_info import RouteInfoManager
from rewindmq.protocol.remoting.accept.limit import connection_limit
from rewindmq.protocol.remoting.address import format_address
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.remoting.runtime import Cancellable, Runtime
from rewindmq.protocol.remoting.server import RemotingServer
from rewindmq.protocol.remoting.slices.large_responses import LargeResponses
from rewindmq.protocol.remoting.state import CloseReason
from rewindmq.protocol.remoting.traffic.held_bytes import Traffic

_log = logging.getLogger(__name__)

# Brokers that one connection or scan removes with a log line each.
_LOGGED_BROKERS: Final = 20


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
            config,
            profile,
            RouteInfoManager(profile),
            KVConfigManager(config.kv_config_file, runtime.workers),
            runtime.clock,
            LargeResponses(runtime.timers),
            RegistrationQueue(runtime.workers),
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
        self._sweep: Cancellable | None = None
        self.context.routes.on_leaving = self._begin_sweep

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
        await self.context.kv_configs.close()
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None

    def _scan_brokers(self) -> None:
        self._scan = self._runtime.timers.call_later(self._scan_seconds, self._scan_brokers)
        gone = self.context.routes.remove_expired(self._runtime.clock.monotonic())
        _log_removed(logging.WARNING, [address for address, _ in gone], "no registration for too long")
        for _, connection in gone:
            assert isinstance(connection, Connection)
            connection.close("its broker stopped registering")

    def _connection_closed(self, connection: Connection, reason: CloseReason) -> None:
        gone = self.context.routes.remove_connection(connection)
        level = logging.INFO if reason is CloseReason.LOCAL else logging.WARNING
        _log_removed(level, gone, f"connection closed ({reason})")

    def _begin_sweep(self) -> None:
        """Free the queues of removed brokers, some of them in each turn of the event loop."""
        if self._sweep is None:
            self._sweep = self._runtime.timers.call_later(0, self._sweep_routes)

    def _sweep_routes(self) -> None:
        self._sweep = None
        if not self.context.routes.sweep():
            self._begin_sweep()


def _log_removed(level: int, addresses: Sequence[str], why: str) -> None:
    for address in addresses[:_LOGGED_BROKERS]:
        _log.log(level, "broker %s removed: %s", address, why)
    if len(addresses) > _LOGGED_BROKERS:
        _log.log(level, "%d more brokers removed: %s", len(addresses) - _LOGGED_BROKERS, why)
