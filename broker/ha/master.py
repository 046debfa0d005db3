"""The master's end of replication: who follows, and how far (4.9.4 ``HAService``)."""

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

# RocketMQ has no bound; each costs a buffer and a look at the log ten times a second.
MAX_SLAVES: Final = 64


class HaMaster:
    """Accepts slaves at ``haListenPort`` and sends them the log.

    Attributes:
        acknowledged: the log position up to which some slave has everything; it never goes back.
        on_acknowledged: called when that moved on.
    """

    def __init__(self, runtime: Runtime, config: BrokerConfig) -> None:
        self.runtime = runtime
        self.config = config
        self.acknowledged = 0
        self.on_acknowledged: Callable[[], None] = _nobody_waits
        self._slaves: dict[SlaveConnection, None] = {}
        self._listener: Listener | None = None
        self._store: MessageStore | None = None

    @property
    def port(self) -> int:
        """The port bound, 0 without one."""
        return 0 if self._listener is None else self._listener.port

    async def listen(self, host: str, port: int) -> None:
        """Bind; connections are closed at once until ``serve``. OSError when the port is taken."""
        self._listener = await self.runtime.network.listen(self._connection, host, port)

    def serve(self, store: MessageStore) -> None:
        """Send this store's log from now on."""
        self._store = store

    def _connection(self) -> asyncio.Protocol:
        return SlaveConnection(self)

    def admit(self, slave: SlaveConnection) -> MessageStore | None:
        """The log for one more connection; None when it has to be closed."""
        if self._store is None or len(self._slaves) >= MAX_SLAVES:
            _log.warning("HA connection of %s refused: %d are open", slave.address, len(self._slaves))
            return None
        self._slaves[slave] = None
        return self._store

    def forget(self, slave: SlaveConnection) -> None:
        """A connection is gone."""
        self._slaves.pop(slave, None)

    def note(self, position: int) -> None:
        """A slave has everything up to this log position."""
        if position > self.acknowledged:
            self.acknowledged = position
            self.on_acknowledged()

    def is_slave_ok(self, position: int) -> bool:
        """Whether a slave follows, less than ``haSlaveFallbehindMax`` behind this log position."""
        follows = any(slave.is_following for slave in self._slaves)
        return follows and position - self.acknowledged < self.config.ha_slave_fallbehind_max

    def wake(self) -> None:
        """There is something new in the log that should not wait for the next look."""
        for slave in list(self._slaves):
            slave.pump()

    async def close(self) -> None:
        """Stop accepting and close all connections."""
        self._store = None
        if self._listener is not None:
            self._listener.close()
        for slave in list(self._slaves):
            slave.close("the broker stops")


def _nobody_waits() -> None:
    """Without SYNC_MASTER."""
