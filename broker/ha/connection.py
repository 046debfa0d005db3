"""A slave's connection at its master (4.9.4 ``HAConnection``).

Changed: the master refuses a slave that asks for a position outside the log, with one log line. 4.9.4 keeps
such a slave waiting or, once its own log has grown as far, sends data that does not follow the slave's.
The master also closes a connection without a first report, of a stranger (``access.Standing``), and one that
reports more than it was sent.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final, Protocol, cast

from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.ha.access import Standing
from rewindmq.broker.ha.transfer_rate import TransferRate
from rewindmq.broker.store.store import MessageStore
from rewindmq.protocol.body.ha import HAConnectionRuntimeInfo
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
# Seconds, not scaled, within which a slave must report; 4.9.4's slave reports 5 s after connecting.
FIRST_REPORT_SECONDS: Final = 10.0
# Look-ups in a row, every 10 s, that do not find a slave before its reports no longer count. Brokers
# register every 30 s, so a name server that has just started may not know a slave yet.
_MISSES: Final = 4


class ReplicationMaster(Protocol):
    """The interface of the master for a slave's connection."""

    runtime: Runtime
    config: BrokerConfig

    def admit(self, slave: SlaveConnection) -> MessageStore | None:
        """Return the store whose log to send; None if the connection must be closed."""

    def on_first_report(self, slave: SlaveConnection) -> None:
        """Begin, now or later, a connection that has reported, or close it."""

    def note(self, position: int) -> None:
        """Record that a slave has the log up to this position."""

    def forget(self, slave: SlaveConnection) -> None:
        """Remove a closed connection."""


class SlaveConnection(asyncio.Protocol):
    """Sends the log from the slave's first reported position on, and records its later reports.

    Attributes:
        address: of the slave, ``host:port``.
        has_reported: True after the first report.
        is_following: True once the master sends the log.
        is_judged: True once the name servers have been asked about the connection.
        counts: True if sends under SYNC_MASTER wait for this connection's reports.
    """

    def __init__(self, master: ReplicationMaster) -> None:
        self._master = master
        self._runtime = master.runtime
        self._config = master.config
        self._decoder = ReportDecoder()
        self._store: MessageStore | None = None
        self._transport: asyncio.Transport | None = None
        self._reported = 0
        self._next = 0
        self._read_at = self._written_at = 0.0
        self._is_paused = False
        self._timer: Cancellable | None = None
        self._misses = 0
        self._rate = TransferRate()
        self.address = "unknown"
        self.has_reported = False
        self.is_following = False
        self.is_judged = False
        self.counts = False

    @property
    def may_yield(self) -> bool:
        """True if a newer connection may take this one's place; one that waits for its judgement may not."""
        return not self.counts and (self.is_judged or not self.has_reported)

    # Called by the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=_UNSENT_BYTES)
        self.address = format_address(transport.get_extra_info("peername"))
        self._store = self._master.admit(self)
        if self._store is None:
            self._transport.close()
            return
        self._timer = self._runtime.timers.call_timeout(FIRST_REPORT_SECONDS, self._on_silence)

    def data_received(self, data: bytes) -> None:
        if self._store is None:
            return
        try:
            position = self._decoder.receive(data)
        except FrameError as error:
            self.close(str(error))
            return
        if position is not None:
            self._read_at = self._runtime.clock.monotonic()
            self._take(self._store, position)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.is_following:
            _log.info("slave %s disconnected", self.address)
        self._release()

    def pause_writing(self) -> None:
        self._is_paused = True

    def resume_writing(self) -> None:
        self._is_paused = False
        self.pump()

    # Called by the master.

    def settle(self, standing: Standing) -> None:
        """Apply what a look-up has found; a closed connection ignores it."""
        if self._store is None:
            return
        was_judged, self.is_judged = self.is_judged, True
        if standing is Standing.SLAVE:
            self._count()
        elif self.counts:
            self._misses += 1
            if self._misses >= _MISSES:
                self.counts = False
                _log.warning("slave %s is no longer registered: its reports do not count", self.address)
        elif standing is Standing.STRANGER and not self.is_following:
            self.close("no slave of this broker is registered there; haAllowedAddresses can allow it")
        else:
            self.begin()
            if not was_judged:
                _log.warning(
                    "%s reads the log, but its reports do not count: it is no registered slave, and"
                    " haAllowedAddresses is not set",
                    self.address,
                )

    def replace(self) -> None:
        """Stop counting, because a newer connection of the same slave counts."""
        if self.counts:
            self.counts = False
            _log.info("slave %s has a newer connection: reports of this one do not count", self.address)

    def begin(self) -> None:
        """Send the log from the reported position on."""
        store = self._store
        if store is None or self.is_following:
            return
        # A slave without a log gets the newest segment and what follows.
        self._next = self._reported or store.last_segment_base
        self.is_following = True
        self._written_at = self._runtime.clock.monotonic()
        _log.info(
            "slave %s has the log up to %d and gets it from %d on", self.address, self._reported, self._next
        )
        self._look_later(_LOOK_SECONDS)
        self.pump()

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

    def runtime_info(self, end: int) -> HAConnectionRuntimeInfo:
        """Return the state of the connection.

        Args:
            end: of the master's log.
        """
        reported = self._reported if self.has_reported else -1
        behind = end - reported
        return HAConnectionRuntimeInfo(
            self.address,
            slave_ack_offset=reported,
            diff=behind,
            in_sync=self.counts and behind < self._config.ha_slave_fallbehind_max,
            transferred_byte_in_second=self._rate.last_second(self._runtime.clock.monotonic()),
            transfer_from_where=self._next if self.is_following else -1,
        )

    def close(self, reason: str) -> None:
        """Close the connection."""
        if self._store is not None:
            _log.warning("slave %s: connection closed: %s", self.address, reason)
        self._release()
        if self._transport is not None:
            self._transport.close()

    def _take(self, store: MessageStore, position: int) -> None:
        if position > store.max_commit_log_offset:
            self.close(
                f"its log ends at {position}, the master's already at {store.max_commit_log_offset}:"
                " the master has lost the later messages, and the slave's store cannot follow it any more"
            )
        elif self.is_following and position > self._next:
            self.close(f"it reports {position}, but was sent the log up to {self._next} only")
        elif self.has_reported:
            self._reported = position
            if self.counts:
                self._master.note(position)
        else:
            self._reported = position
            self.has_reported = True
            self._cancel_timer()
            self._master.on_first_report(self)

    def _count(self) -> None:
        self._misses = 0
        self.begin()
        if self.is_following and not self.counts:
            self.counts = True
            self._master.note(self._reported)

    def _on_silence(self) -> None:
        self._timer = None
        self.close(f"no report within {FIRST_REPORT_SECONDS:.0f} s")

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look_later(self, seconds: float) -> None:
        self._cancel_timer()
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
        if now - self._written_at > self._config.ha_send_heartbeat_interval / 1_000:
            self._write(transport, b"")
        if self._timer is None:
            self._look_later(_LOOK_SECONDS)

    def _write(self, transport: asyncio.Transport, data: bytes) -> None:
        frame = encode_transfer(self._next, data)
        transport.write(frame)
        self._next += len(data)
        self._written_at = self._runtime.clock.monotonic()
        self._rate.add(len(frame), self._written_at)

    def _release(self) -> None:
        self._cancel_timer()
        self._store = None
        self.is_following = self.counts = False
        self._master.forget(self)
