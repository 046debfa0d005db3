"""The lower half of a connection: writes, flow control, idle time-out and closing."""

from __future__ import annotations

import asyncio
import logging
from typing import Final, Protocol, cast

from rewindmq.protocol.errors import ConnectionLostError
from rewindmq.protocol.remoting.address import format_address
from rewindmq.protocol.remoting.permits import OnewayPermits, expire
from rewindmq.protocol.remoting.runtime import Cancellable, Runtime
from rewindmq.protocol.remoting.state import TRANSITIONS, CloseReason, ConnectionState
from rewindmq.protocol.remoting.traffic.held_bytes import Traffic

logger = logging.getLogger(__name__)

# Above this many unsent bytes, the peer's requests and ``drain`` wait. It is also the size at which collected
# frames are written: the event loop sends a larger write at once, and the peer works in parallel. With 1 MiB
# the two ends took turns; 32 KiB gave 75 % more sends per second at 256 in flight (docs/benchmarks.md).
HIGH_WATER_BYTES: Final = 1 << 15
LOW_WATER_BYTES: Final = 1 << 14
# The responses to one read leave in one write up to this size.
MAX_WRITE_BYTES: Final = 1 << 20
# Limit of unsent bytes to one peer: above it, ``invoke`` refuses and other writes close the connection.
MAX_UNSENT_BYTES: Final = 64 << 20
# Seconds that a closed connection may take to send what was written before.
LINGER_SECONDS: Final = 3.0
_IDLE_SLACK_SECONDS: Final = 0.001


class StreamOwner(Protocol):
    """The endpoint of a stream, as the stream uses it.

    Attributes:
        idle_seconds: protocol seconds without a byte in either direction after which the stream is closed.
        permits: the oneway permits of the endpoint.
        traffic: the limits for all accepted connections.
    """

    runtime: Runtime
    idle_seconds: float
    permits: OnewayPermits
    traffic: Traffic


class FrameStream(asyncio.Protocol):
    """Writes frames to a transport and keeps the connection's state; ``Connection`` interprets frames.

    The frames of one read leave in one write, or in several above ``MAX_WRITE_BYTES``. The frames of one turn
    of the event loop leave in one write, or in several above ``HIGH_WATER_BYTES``.

    Attributes:
        remote_address: the peer, ``host:port``.
        local_address: this end, ``host:port``.
        is_closed: whether sending is no longer possible.
        close_reason: why it was closed; None while it is open.
        has_received: at least one byte came from the peer.
        has_sent: at least one byte was written.
    """

    __slots__ = (
        "_accepted",
        "_active_at",
        "_drain_waiters",
        "_endpoint",
        "_flush_due",
        "_gather_bytes",
        "_idle_timer",
        "_linger_timer",
        "_loop",
        "_monotonic",
        "_out",
        "_out_bytes",
        "_reading_paused",
        "_state",
        "_transport",
        "_unsent_permits",
        "_writing_paused",
        "close_reason",
        "has_received",
        "has_sent",
        "is_closed",
        "local_address",
        "remote_address",
    )

    def __init__(self, endpoint: StreamOwner, *, accepted: bool) -> None:
        self._endpoint = endpoint
        # Bound, because each read calls it: ``./scripts/bench --only hot-path``.
        self._monotonic = endpoint.runtime.clock.monotonic
        self._accepted = accepted
        self._state = ConnectionState.CONNECTING
        self._out: list[bytes] = []
        self._out_bytes = 0
        self._flush_due = False
        self._gather_bytes = HIGH_WATER_BYTES
        self._writing_paused = False
        self._reading_paused = False
        self._drain_waiters: list[asyncio.Future[None]] = []
        self._unsent_permits = 0
        self._idle_timer: Cancellable | None = None
        self._linger_timer: Cancellable | None = None
        self.close_reason: CloseReason | None = None
        self.is_closed = True
        self.has_received = False
        self.has_sent = False
        self.remote_address = self.local_address = "unknown"

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.local_address} to {self.remote_address}, {self._state.value}>"

    # Called by the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not inherit from asyncio's.
        self._transport = cast("asyncio.Transport", transport)
        self._loop = asyncio.get_running_loop()
        self._transport.set_write_buffer_limits(high=HIGH_WATER_BYTES, low=LOW_WATER_BYTES)
        self.remote_address = format_address(transport.get_extra_info("peername"))
        self.local_address = format_address(transport.get_extra_info("sockname"))
        self._active_at = self._monotonic()
        idle_seconds = self._endpoint.idle_seconds
        self._idle_timer = self._endpoint.runtime.timers.call_later(idle_seconds, self._check_idle)
        self._enter(ConnectionState.OPEN)
        self.is_closed = False

    def connection_lost(self, exc: Exception | None) -> None:
        self._endpoint.traffic.unread.release(self)
        if self.close_reason is None:
            self.close_reason = CloseReason.PEER if exc is None else CloseReason.ERROR
        self._enter(ConnectionState.CLOSED)
        if self._linger_timer is not None:
            self._linger_timer.cancel()
            self._linger_timer = None
        why = str(self.close_reason)
        self._release(f"{why}: {exc}" if exc is not None else why)

    def pause_writing(self) -> None:
        self._writing_paused = True
        self._count_unread()
        if self._accepted and not self._reading_paused and not self._transport.is_closing():
            self._reading_paused = True
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._writing_paused = False
        self._endpoint.traffic.unread.release(self)
        self._release_permits()
        self._wake_drain_waiters(None)

    # Writing.

    async def drain(self, timeout: float) -> None:
        """Wait until the peer has read enough to write more.

        Raises:
            TooManyRequestsError: the peer did not read enough within ``timeout`` seconds.
            ConnectionLostError: the connection is closed or closes meanwhile.
        """
        text = f"{self.remote_address} did not read for {timeout:g} s"
        deadline = self._loop.time() + timeout
        while self._writing_paused and not self.is_closed:
            waiter = self._loop.create_future()
            self._drain_waiters.append(waiter)
            left = deadline - self._loop.time()
            timer = self._endpoint.runtime.timers.call_timeout(left, expire, waiter, text)
            try:
                await waiter
            finally:
                timer.cancel()
        if self.is_closed:
            raise ConnectionLostError(f"connection to {self.remote_address} is closed")

    def _send(self, frame: bytes) -> None:
        self._out.append(frame)
        self._out_bytes += len(frame)
        if not self._flush_due or self._out_bytes > self._gather_bytes:
            self._flush_or_schedule()

    def _flush_or_schedule(self) -> None:
        """Ensure that the collected frames are written: now if they are many, else at the end of the turn."""
        if self._flush_due:
            self._flush()
        else:
            self._loop.call_soon(self._flush)
        self._flush_due = True

    def _flush(self) -> None:
        self._flush_due = False
        out = self._out
        if not out or self.is_closed:
            return
        data = out[0] if len(out) == 1 else b"".join(out)
        out.clear()
        self._out_bytes = 0
        self._active_at = self._monotonic()
        self.has_sent = True
        self._transport.write(data)
        if not self._writing_paused:
            self._release_permits()

    @property
    def is_reading(self) -> bool:
        """False while the connection does not read, because the peer does not."""
        return not self._reading_paused

    def _is_deaf(self) -> bool:
        """Return whether the unsent bytes exceed the limit of a peer, because this peer does not read.

        Closes the connection whose peer has not read for the longest time if there are too many in all.
        """
        return self._writing_paused and self._count_unread() > MAX_UNSENT_BYTES

    def _count_unread(self) -> int:
        """Return the unsent bytes, and count them for the limit of all accepted connections."""
        unsent = self._out_bytes + self._transport.get_write_buffer_size()
        if self._accepted and self._state is not ConnectionState.CLOSED:
            self._endpoint.traffic.unread.hold(self, unsent)
        return unsent

    def _send_or_drop(self, frame: bytes) -> None:
        """Send a frame that no caller can take back; if the peer does not read, close the connection."""
        is_deaf = self._is_deaf()
        if self.is_closed:
            return
        if is_deaf:
            logger.warning("closing %s: it does not read", self.remote_address)
            self.abort(CloseReason.OVERFLOW)
        else:
            self._send(frame)

    def _release_permits(self) -> None:
        if self._unsent_permits:
            count, self._unsent_permits = self._unsent_permits, 0
            self._endpoint.permits.release(count)

    def _wake_drain_waiters(self, error: str | None) -> None:
        waiters, self._drain_waiters = self._drain_waiters, []
        for waiter in waiters:
            if waiter.done():
                continue
            if error is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(ConnectionLostError(error))

    # Closing.

    def close(self, reason: str = "") -> None:
        """Close now: fail pending requests, cancel handlers, still send what was written."""
        self._shut(CloseReason.LOCAL, reason or str(CloseReason.LOCAL))

    def abort(self, reason: CloseReason = CloseReason.LOCAL) -> None:
        """Close without sending unsent bytes."""
        if self._state is ConnectionState.CONNECTING or self._state is ConnectionState.CLOSED:
            return
        if self._state is not ConnectionState.CLOSING:
            self._out.clear()
            self._shut(reason, str(reason))
        self._transport.abort()

    def _shut(self, reason: CloseReason, why: str) -> None:
        if self._state is not ConnectionState.OPEN and self._state is not ConnectionState.DRAINING:
            return
        self._flush()
        self._enter(ConnectionState.CLOSING)
        self.close_reason = reason
        self._release(why)
        self._transport.close()
        self._linger_timer = self._endpoint.runtime.timers.call_timeout(LINGER_SECONDS, self._transport.abort)

    def _release(self, why: str) -> None:
        """Release the waiting callers and the permits of this connection."""
        self.is_closed = True
        self._out.clear()
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
        self._wake_drain_waiters(f"connection to {self.remote_address} lost: {why}")
        self._release_permits()

    def _check_idle(self) -> None:
        idle_seconds = self._endpoint.idle_seconds
        left = idle_seconds - (self._monotonic() - self._active_at)
        if left <= _IDLE_SLACK_SECONDS:
            self._shut(CloseReason.IDLE, f"no traffic for {idle_seconds:g} s")
        else:
            self._idle_timer = self._endpoint.runtime.timers.call_later(left, self._check_idle)

    def _enter(self, state: ConnectionState) -> None:
        assert state in TRANSITIONS[self._state], f"{self._state} -> {state}"
        self._state = state
