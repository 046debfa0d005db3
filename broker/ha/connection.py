"""A slave's connection at its master (4.9.4 ``HAConnection``).

Changed: the master refuses a slave that asks for a position outside the log, with one log line. 4.9.4 keeps
such a slave waiting or, once its own log has grown as far, sends data that does not follow the slave's.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final, Protocol, cast

from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.store.store import MessageStore
from rewindmq.protocol.errors import FrameError
from rewindmq.protocol.ha_frame import ReportDecoder, encode_transfer
from rewindmq.protocol.remoting.address import format_address
from rewindmq.protocol.remoting.runtime import Cancellable, Runtime

_log = logging.getLogger(__name__)

# How often 4.9.4 looks for new data, seconds.
_LOOK_SECONDS: Final = 0.1
_UNSENT_BYTES: Final = 1 << 18
# Bytes sent to one slave in one turn of the event loop.
_TRANSFERS_PER_TURN: Final = 16


class ReplicationMaster(Protocol):
    """The interface of the master for a slave's connection."""

    runtime: Runtime
    config: BrokerConfig

    def admit(self, slave: SlaveConnection) -> MessageStore | None:
        """Return the store whose log to send; None if the connection must be closed."""

    def note(self, position: int) -> None:
        """Record that a slave has the log up to this position."""

    def forget(self, slave: SlaveConnection) -> None:
        """Remove a closed connection."""


class SlaveConnection(asyncio.Protocol):
    """Sends the log from the slave's first reported position on, and records its later reports.

    Attributes:
        address: of the slave, ``host:port``.
        is_following: True after the slave's first report.
    """

    def __init__(self, master: ReplicationMaster) -> None:
        self._master = master
        self._runtime = master.runtime
        self._config = master.config
        self._decoder = ReportDecoder()
        self._store: MessageStore | None = None
        self._transport: asyncio.Transport | None = None
        self._next = 0
        self._read_at = self._written_at = 0.0
        self._is_paused = False
        self._timer: Cancellable | None = None
        self.address = "unknown"
        self.is_following = False

    # Called by the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=_UNSENT_BYTES)
        self.address = format_address(transport.get_extra_info("peername"))
        self._store = self._master.admit(self)
        if self._store is None:
            self._transport.close()
            return
        self._read_at = self._written_at = self._runtime.clock.monotonic()
        self._look_later(_LOOK_SECONDS)
        _log.info("slave %s connected", self.address)

    def data_received(self, data: bytes) -> None:
        if self._store is None:
            return
        self._read_at = self._runtime.clock.monotonic()
        try:
            position = self._decoder.receive(data)
        except FrameError as error:
            self.close(str(error))
            return
        if position is None:
            return
        if position > self._store.max_commit_log_offset:
            self.close(
                f"its log ends at {position}, the master's already at {self._store.max_commit_log_offset}:"
                " the master has lost the later messages, and the slave's store cannot follow it any more"
            )
        elif self.is_following:
            self._master.note(position)
        else:
            self._begin(self._store, position)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._store is not None:
            _log.info("slave %s disconnected", self.address)
        self._release()

    def pause_writing(self) -> None:
        self._is_paused = True

    def resume_writing(self) -> None:
        self._is_paused = False
        self.pump()

    # Called by the master.

    def pump(self) -> None:
        """Send the missing part of the log, as much as the slave accepts now."""
        store, transport = self._store, self._transport
        if store is None or transport is None or not self.is_following:
            return
        if self._next < store.min_commit_log_offset:
            self.close(
                f"it needs the log from {self._next} on, but the master's log begins at"
                f" {store.min_commit_log_offset}: start the slave with an empty store"
            )
            return
        for _ in range(_TRANSFERS_PER_TURN):
            if self._is_paused:
                return
            data = store.log_chunk(self._next, self._config.ha_transfer_batch_size)
            if not data:
                return
            self._write(transport, data)
        self._look_later(0.0)

    def close(self, reason: str) -> None:
        """Close the connection."""
        if self._store is not None:
            _log.warning("slave %s: connection closed: %s", self.address, reason)
        self._release()
        if self._transport is not None:
            self._transport.close()

    def _begin(self, store: MessageStore, position: int) -> None:
        # A slave without a log gets the newest segment and what follows.
        self._next = position or store.last_segment_base
        self.is_following = True
        _log.info("slave %s has the log up to %d and gets it from %d on", self.address, position, self._next)
        self._master.note(position)
        self.pump()

    def _look_later(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._runtime.timers.call_later(seconds, self._look)

    def _look(self) -> None:
        self._timer = None
        transport, now = self._transport, self._runtime.clock.monotonic()
        if now - self._read_at > self._config.ha_housekeeping_interval / 1_000:
            self.close(f"no report for {now - self._read_at:.0f} s")
            return
        self.pump()
        if self._store is None or transport is None:
            return
        if self.is_following and now - self._written_at > self._config.ha_send_heartbeat_interval / 1_000:
            self._write(transport, b"")
        if self._timer is None:
            self._look_later(_LOOK_SECONDS)

    def _write(self, transport: asyncio.Transport, data: bytes) -> None:
        transport.write(encode_transfer(self._next, data))
        self._next += len(data)
        self._written_at = self._runtime.clock.monotonic()

    def _release(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._store = None
        self.is_following = False
        self._master.forget(self)
