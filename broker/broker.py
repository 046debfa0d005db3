"""The broker: starts and stops the store, its tables and services, and the listening sockets."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Generator
from pathlib import Path
from typing import Final

import msgspec

from rewindmq.broker.background.schedule import Schedule
from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.context import BrokerContext
from rewindmq.broker.endpoints import Endpoints
from rewindmq.broker.ha.master import CHECK_SECONDS, HaMaster
from rewindmq.broker.handlers import HANDLERS, bind_handlers
from rewindmq.broker.state import write_state
from rewindmq.broker.stats.manager import SAMPLE_SECONDS
from rewindmq.broker.store.files.disk import Disk, OsDisk
from rewindmq.broker.wiring import wire
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import ConfigError, RequestError
from rewindmq.protocol.remoting.accept.limit import connection_limit
from rewindmq.protocol.remoting.client import RemotingClient
from rewindmq.protocol.remoting.connection import Connection, Handler
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.protocol.remoting.server import RemotingServer
from rewindmq.protocol.remoting.speedups import FrameKernel
from rewindmq.protocol.remoting.state import CloseReason
from rewindmq.protocol.remoting.traffic.held_bytes import Traffic

_log = logging.getLogger(__name__)

# RocketMQ 4.9.4 BrokerController#initialize, ClientHousekeepingService; seconds.
FIRST_OFFSET_FLUSH_SECONDS: Final = 10.0
CHANNEL_SCAN_SECONDS: Final = 10.0
# What a connection's end counts as, beside CLOSE, in the statistic CHANNEL_ACTIVITY.
_CHANNEL_EVENTS: Final = {CloseReason.ERROR: "EXCEPTION", CloseReason.IDLE: "IDLE"}
_VIP_TRIES: Final = 20
_ANY_ADDRESS: Final = ("0.0.0.0", "::")  # noqa: S104 - recognised, not bound


class Broker:
    """One broker process, or one of several inside a simulation: a master or a slave.

    Args:
        disk: where the store is; None means the operating system's disk.
    """

    def __init__(self, runtime: Runtime, config: BrokerConfig, disk: Disk | None = None) -> None:
        self._runtime = runtime
        # A copy, because some keys change while the broker runs, and other brokers may have the same objects.
        config = msgspec.structs.replace(config, store=msgspec.structs.replace(config.store))
        self._config = config
        self._disk = disk if disk is not None else OsDisk()
        # Until ``start`` has built the services, every request fails with a remark that says so, not with
        # REQUEST_CODE_NOT_SUPPORTED (3).
        self._handlers: dict[int, Handler] = dict.fromkeys(HANDLERS, _refuse_early)
        self._limit = connection_limit(
            runtime.max_connections,
            config.server_max_connections,
            config.server_max_connections_per_address,
            runtime.clock.monotonic,
        )
        self._traffic = Traffic(
            config.server_frame_timeout_millis / 1_000,
            config.server_max_unfinished_frame_bytes,
            config.server_max_unread_bytes,
        )
        self._server = self._new_server()
        self._vip_server = self._new_server()
        self._client = RemotingClient(runtime, greeting=_greet_name_server)
        self._ha_master = HaMaster(runtime, config, self._client)
        self._schedule = Schedule(runtime.timers)
        self._context: BrokerContext | None = None

    @property
    def address(self) -> str:
        """``host:port`` as registered: ``brokerIP1``, else the bound host; valid after ``start``."""
        host = self._config.broker_ip1 or self._server.host
        return f"[{host}]:{self._server.port}" if ":" in host else f"{host}:{self._server.port}"

    @property
    def context(self) -> BrokerContext:
        """State and services; valid after ``start``."""
        assert self._context is not None, "not started"
        return self._context

    async def start(self) -> None:
        """Bind the ports, open the store, serve, and try once to register.

        Raises:
            ConfigError: if there is no address to register.
            OSError: if the port cannot be bound; the disk is untouched then.
            StoreError: if the store cannot be opened; one line that says why.
        """
        config = self._config
        if config.broker_ip1 is None and config.bind_address in _ANY_ADDRESS:
            raise ConfigError(
                f"bindAddress {config.bind_address} is not an address that clients can connect to:"
                " set brokerIP1"
            )
        await self._open_ports()
        if not config.is_slave:
            await self._open_ha_port()
        endpoints = Endpoints(self.address, self._limit, self._traffic, self._client, self._ha_master)
        context = self._context = wire(self._runtime, config, self._disk, endpoints)
        context.pulls.long_polling.start()
        self._begin_schedule(context)
        # The servers have this very table. It loses the requests that the profile's release does not have.
        self._handlers.clear()
        self._handlers.update(bind_handlers(context))
        kernels: tuple[FrameKernel, ...] = (*context.sends.kernels, *context.pulls.kernels)
        self._server.frame_kernels = self._vip_server.frame_kernels = kernels
        await context.background.registration.start()

    async def close(self) -> None:
        """Unregister, send the waiting responses, save everything; safe to call at any time, also twice.

        Raises:
            StoreError: if the disk fails; the next start recovers as after a crash.
        """
        context, self._context = self._context, None
        self._schedule.close()
        if context is not None:
            await context.background.registration.close()
            context.resets.announcer.close()
            if context.pop is not None:
                context.pop.close()
            context.pulls.long_polling.close()
            await context.sends.appender.drain()
        await asyncio.gather(self._server.close(), self._vip_server.close())
        if context is not None:
            context.clients.ids_changed.close()
        await self._ha_master.close()
        await self._client.close()
        if context is not None:
            await _close(context)

    def write_state(self, folder: Path) -> None:
        """Write what a copy of the store needs besides its files; see ``ControlledService``.

        Raises:
            OSError: a file cannot be written.
        """
        write_state(self.context, folder)

    def set_disk_full(self, is_full: bool) -> None:
        """Act as if the disk were full, or no longer; see ``ControlledService``."""
        self.context.background.retention.pretend_disk_full(is_full)

    def clock_changed(self, moved_ms: int) -> None:
        """Do now what is due by the wall clock, which was moved; see ``ControlledService``."""
        self._schedule.clock_changed(moved_ms)

    def _new_server(self) -> RemotingServer:
        return RemotingServer(
            self._runtime,
            self._handlers,
            limit=self._limit,
            on_open=self._connection_opened,
            on_close=self._connection_closed,
            traffic=self._traffic,
        )

    async def _open_ports(self) -> None:
        """Bind the port and, 2 below it, the VIP port, to which clients before 4.5 send.

        Specification: docs/spec/protocol.md 7.6.

        Without a free VIP port the broker starts anyway. If ``listenPort`` is 0, it tries several pairs of
        ports.
        """
        config = self._config
        for tries_left in reversed(range(_VIP_TRIES)):
            await self._server.start(config.bind_address, config.listen_port)
            vip_port = self._server.port - 2
            if vip_port <= 0:
                return
            try:
                await self._vip_server.start(config.bind_address, vip_port)
                return
            except OSError as error:
                if config.listen_port or not tries_left:
                    _log.warning("no VIP channel for clients before 4.5: %s", error.strerror or error)
                    return
            await self._server.close(0)
            self._server = self._new_server()

    async def _open_ha_port(self) -> None:
        """Bind the slaves' port: haListenPort, else ``listenPort`` + 1 (4.9.4 BrokerStartup), or any."""
        config = self._config
        if config.ha_listen_port is not None:
            await self._ha_master.listen(config.bind_address, config.ha_listen_port)
            return
        try:
            await self._ha_master.listen(config.bind_address, config.listen_port and config.listen_port + 1)
        except (OSError, OverflowError):
            await self._ha_master.listen(config.bind_address, 0)

    def _begin_schedule(self, context: BrokerContext) -> None:
        config, every = self._config, self._schedule.every
        flush = context.background.flush
        every(FIRST_OFFSET_FLUSH_SECONDS, config.flush_consumer_offset_interval / 1_000, self._flush_tables)
        every(CHANNEL_SCAN_SECONDS, CHANNEL_SCAN_SECONDS, self._scan_channels)
        every(SAMPLE_SECONDS, SAMPLE_SECONDS, self._sample)
        interval = config.flush_interval_commit_log / 1_000
        every(interval, interval, flush.flush_log)
        thorough = config.flush_consume_queue_thorough_interval / 1_000
        every(thorough, thorough, flush.flush_all)
        if not config.is_slave:
            every(CHECK_SECONDS, CHECK_SECONDS, self._ha_master.check_slaves)
        for service in context.background.services:
            service.begin(self._schedule)

    def _flush_tables(self) -> None:
        self.context.offsets.flush.flush()
        # Retry the topics and groups if their last write failed.
        self.context.tables.flush.begin()

    def _scan_channels(self) -> None:
        now = self._runtime.clock.monotonic()
        clients = self.context.clients
        for channel in (*clients.producers.expire(now), *clients.consumers.expire(now)):
            _log.warning("client %s gone: no heartbeat for 120 s", channel.client_id)
            channel.connection.close("no heartbeat for 120 s")

    def _sample(self) -> Generator[None]:
        clock = self._runtime.clock
        return self.context.stats.sample(clock.now_ms(), clock.monotonic())

    def _connection_opened(self, connection: Connection) -> None:
        if self._context is not None:
            self._context.stats.items.count_channel("CONNECT")

    def _connection_closed(self, connection: Connection, reason: CloseReason) -> None:
        context = self._context
        if context is not None:
            # As RocketMQ's ClientHousekeepingService, each end counts as CLOSE, too.
            context.stats.items.count_channel("CLOSE")
            if reason in _CHANNEL_EVENTS:
                context.stats.items.count_channel(_CHANNEL_EVENTS[reason])
            context.pulls.on_close(connection)
            if context.pop is not None:
                context.pop.on_close(connection)
            context.clients.on_close(connection)
            context.offsets.on_close(connection)


async def _close(context: BrokerContext) -> None:
    """Save everything, when no connection is open.

    Raises:
        StoreError: if the disk fails.
    """
    await context.sends.appender.close()
    await context.background.flush.close()
    for service in reversed(context.background.services):
        await service.close()
    await context.offsets.flush.close()
    await context.tables.flush.close()
    tables = context.tables
    with contextlib.ExitStack() as last:
        last.callback(context.store.close)
        # Save every table, even if saving another fails.
        for table in (tables.topics, tables.groups, tables.request_modes, context.offsets.table):
            last.callback(table.persist)


def _greet_name_server() -> RemotingCommand:
    """Return a small request whose response shows a name server's serialization type.

    The broker's remoting client sends oneway requests only to name servers; see ``RemotingClient``.
    """
    return RemotingCommand(RequestCode.GET_NAMESRV_CONFIG)


def _refuse_early(connection: Connection, request: RemotingCommand) -> RemotingCommand:
    raise RequestError(ResponseCode.SYSTEM_ERROR, "broker unable to service, until it has started")
