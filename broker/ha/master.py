"""The master's side of replication: its slaves and their positions (4.9.4 ``HAService``)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import Final

from rewindmq.broker.config import BrokerConfig, BrokerRole
from rewindmq.broker.ha.access import (
    MAX_SLAVES,
    HaAccess,
    RegisteredSlave,
    Standing,
    connections_of,
    may_read,
)
from rewindmq.broker.ha.connection import SlaveConnection
from rewindmq.broker.ha.sync_replica import SyncReplica
from rewindmq.broker.store.store import MessageStore
from rewindmq.protocol.body.ha import HARuntimeInfo
from rewindmq.protocol.remoting.client import RemotingClient
from rewindmq.protocol.remoting.runtime import Listener, Runtime
from rewindmq.protocol.remoting.tasks import end_tasks

_log = logging.getLogger(__name__)

CHECK_SECONDS: Final = 10.0
# Between two look-ups, so that connections in quick succession share one.
_PAUSE_SECONDS: Final = 0.05


class HaMaster:
    """Accepts slaves at ``haListenPort`` and sends them the log.

    Args:
        client: asks the name servers for this broker's slaves.

    Attributes:
        acknowledged: the highest log position that a slave has reported; it never decreases.
        sync_replica: the sends that wait for a slave; None except at a SYNC_MASTER.
    """

    def __init__(self, runtime: Runtime, config: BrokerConfig, client: RemotingClient) -> None:
        self.runtime = runtime
        self.config = config
        self.acknowledged = 0
        self.sync_replica: SyncReplica | None = None
        if config.broker_role is BrokerRole.SYNC_MASTER:
            self.sync_replica = SyncReplica(self, runtime.timers, config.slave_timeout / 1_000)
        self._access = HaAccess(config, client)
        # In the order of their connecting.
        self._slaves: dict[SlaveConnection, None] = {}
        # Connections whose standing the next look-up decides.
        self._unchecked: dict[SlaveConnection, None] = {}
        self._checking: asyncio.Task[None] | None = None
        self._listener: Listener | None = None
        self._store: MessageStore | None = None

    @property
    def port(self) -> int:
        """The bound port; 0 before ``listen``."""
        return 0 if self._listener is None else self._listener.port

    async def listen(self, host: str, port: int) -> None:
        """Bind; connections are closed at once until ``serve``. Raise OSError if the port is taken."""
        self._listener = await self.runtime.network.listen(self._connection, host, port)

    def serve(self, store: MessageStore) -> None:
        """Begin to send this store's log to slaves."""
        self._store = store

    def _connection(self) -> asyncio.Protocol:
        return SlaveConnection(self)

    # Called by the connections.

    def admit(self, slave: SlaveConnection) -> MessageStore | None:
        """Add a connection and return its store; None if the connection must be closed."""
        if self._store is None:
            return None
        if self._access.first_standing(slave.address) is Standing.STRANGER:
            _log.warning("HA connection of %s refused: haAllowedAddresses does not allow it", slave.address)
            return None
        if not self._make_room():
            _log.warning("HA connection of %s refused: %d slaves are connected", slave.address, MAX_SLAVES)
            return None
        self._slaves[slave] = None
        return self._store

    def forget(self, slave: SlaveConnection) -> None:
        """Remove a closed connection."""
        self._slaves.pop(slave, None)
        self._unchecked.pop(slave, None)

    def on_first_report(self, slave: SlaveConnection) -> None:
        """Let the connection follow, at once or after the name servers have been asked."""
        if self._access.first_standing(slave.address) is Standing.SLAVE:
            slave.settle(Standing.SLAVE)
        else:
            self._check([slave])

    def note(self, position: int) -> None:
        """Record that a slave has the log up to this position."""
        if position > self.acknowledged:
            self.acknowledged = position
            if self.sync_replica is not None:
                self.sync_replica.on_acknowledged()

    def _make_room(self) -> bool:
        """Close a connection that is no slave's if there are too many; return False if all are slaves'."""
        if len(self._slaves) < MAX_SLAVES:
            return True
        # A connection that waits for its standing may be a slave's.
        others = [slave for slave in self._slaves if slave.may_yield]
        if others:
            # Silent connections first, then the oldest.
            min(others, key=lambda slave: slave.has_reported).close("a newer connection needs its place")
        return bool(others)

    # Called by the broker.

    def check_slaves(self) -> None:
        """Ask the name servers again whether the slaves are still registered."""
        if self._access.asks:
            self._check(slave for slave in self._slaves if slave.is_following)

    def is_slave_ok(self, position: int) -> bool:
        """Return True if a slave is less than ``haSlaveFallbehindMax`` behind this log position."""
        follows = any(slave.counts for slave in self._slaves)
        return follows and position - self.acknowledged < self.config.ha_slave_fallbehind_max

    def runtime_info(self, end: int) -> HARuntimeInfo:
        """Return the state of all connections, in the order of their connecting.

        Args:
            end: of this broker's log.
        """
        connections = [slave.runtime_info(end) for slave in self._slaves]
        return HARuntimeInfo(
            master=True,
            master_commit_log_max_offset=end,
            in_sync_slave_nums=sum(connection.in_sync for connection in connections),
            ha_connection_info=connections,
        )

    def wake(self) -> None:
        """Send new data to the slaves at once, because a send waits for it."""
        for slave in list(self._slaves):
            slave.pump()

    async def close(self) -> None:
        """Stop accepting and close all connections; the sends that still wait get no response."""
        self._store = None
        if self._listener is not None:
            self._listener.close()
        for slave in list(self._slaves):
            slave.close("the broker stops")
        if self._checking is not None:
            await end_tasks({self._checking})
        if self.sync_replica is not None:
            self.sync_replica.close()

    def _check(self, slaves: Iterable[SlaveConnection]) -> None:
        self._unchecked.update(dict.fromkeys(slaves))
        if self._unchecked and (self._checking is None or self._checking.done()):
            self._checking = asyncio.get_running_loop().create_task(self._check_all())

    async def _check_all(self) -> None:
        while self._unchecked:
            # A connection that arrives during the look-up waits for the next one, which sees its slave.
            batch, self._unchecked = self._unchecked, {}
            registered: tuple[RegisteredSlave, ...] = ()
            try:
                registered = await self._access.find_slaves()
            except Exception:
                _log.exception("cannot find the registered slaves")
            self._settle(batch, registered)
            await self.runtime.timers.sleep(_PAUSE_SECONDS)

    def _settle(self, batch: Iterable[SlaveConnection], registered: Sequence[RegisteredSlave]) -> None:
        reported = [slave.address for slave in self._slaves if slave.has_reported]
        found = connections_of(registered, reported)
        for slave in batch:
            if slave.address in found:
                slave.settle(Standing.SLAVE)
            else:
                is_reader = may_read(slave.address, registered)
                slave.settle(Standing.READER if is_reader else Standing.STRANGER)
        # A newer connection counts instead of an older one of a slave that names none.
        unnamed = [slave for slave in registered if slave.ha_client is None]
        for slave in self._slaves:
            if slave.address not in found and any(other.shares_host(slave.address) for other in unnamed):
                slave.replace()
