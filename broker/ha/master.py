"""The master's side of replication: its slaves and their positions (4.9.4 ``HAService``)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.ha.connection import SlaveConnection
from rewindmq.broker.store.store import MessageStore
from rewindmq.protocol.remoting.runtime import Listener, Runtime

_log = logging.getLogger(__name__)

# RocketMQ has no limit; each connection costs a buffer and ten reads of the log a second.
MAX_SLAVES: Final = 64


class HaMaster:
    """Accepts slaves at ``haListenPort`` and sends them the log.

    Attributes:
        acknowledged: the highest log position that a slave has reported; it never decreases.
        on_acknowledged: called when ``acknowledged`` increases.
    """

    def __init__(self, runtime: Runtime, config: BrokerConfig) -> None:
        self.runtime = runtime
        self.config = config
        self.acknowledged = 0
        self.on_acknowledged: Callable[[], None] = _ignore
        self._slaves: dict[SlaveConnection, None] = {}
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

    def admit(self, slave: SlaveConnection) -> MessageStore | None:
        """Add a connection and return its store; None if the connection must be closed."""
        if self._store is None or len(self._slaves) >= MAX_SLAVES:
            _log.warning("HA connection of %s refused: %d are open", slave.address, len(self._slaves))
            return None
        self._slaves[slave] = None
        return self._store

    def forget(self, slave: SlaveConnection) -> None:
        """Remove a closed connection."""
        self._slaves.pop(slave, None)

    def note(self, position: int) -> None:
        """Record that a slave has the log up to this position."""
        if position > self.acknowledged:
            self.acknowledged = position
            self.on_acknowledged()

    def is_slave_ok(self, position: int) -> bool:
        """Return True if a slave is less than ``haSlaveFallbehindMax`` behind this log position."""
        follows = any(slave.is_following for slave in self._slaves)
        return follows and position - self.acknowledged < self.config.ha_slave_fallbehind_max

    def wake(self) -> None:
        """Send new data to the slaves at once, because a send waits for it."""
        for slave in list(self._slaves):
            slave.pump()

    async def close(self) -> None:
        """Stop accepting and close all connections."""
        self._store = None
        if self._listener is not None:
            self._listener.close()
        for slave in list(self._slaves):
            slave.close("the broker stops")


def _ignore() -> None:
    """Do nothing: without SYNC_MASTER no send waits."""
