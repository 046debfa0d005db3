"""One connection, either end of it: frames in and out, requests, answers, flow control, expiry."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, cast

from rewindmq.protocol.command import FLAG_ONEWAY, FLAG_RESPONSE, RemotingCommand, SerializeType
from rewindmq.protocol.errors import ConnectionLostError, TooManyRequestsError
from rewindmq.protocol.frame import FrameDecoder, encode_frame
from rewindmq.protocol.remoting.address import format_address
from rewindmq.protocol.remoting.dispatch import (
    MAX_REQUESTS_IN_PROGRESS,
    busy,
    encode_reply,
    failure,
    unsupported,
)
from rewindmq.protocol.remoting.pending import MAX_PENDING, PendingRequests
from rewindmq.protocol.remoting.permits import expire
from rewindmq.protocol.remoting.runtime import Cancellable
from rewindmq.protocol.remoting.state import TRANSITIONS, CloseReason, ConnectionState

if TYPE_CHECKING:
    from rewindmq.protocol.remoting.endpoint import Endpoint

logger = logging.getLogger(__name__)

# Unsent bytes above which requests of the peer wait and ``drain`` blocks, and below which they go on.
HIGH_WATER_BYTES: Final = 1 << 20
LOW_WATER_BYTES: Final = 1 << 18
# Unsent bytes towards one peer above which ``invoke`` refuses and anything else closes the connection.
MAX_UNSENT_BYTES: Final = 64 << 20
# How long a closed connection may take to send what was written before, in seconds.
LINGER_SECONDS: Final = 3.0
_IDLE_SLACK_SECONDS: Final = 0.001

Reply = RemotingCommand | Awaitable[RemotingCommand | None] | None


class Connection(asyncio.Protocol):
    """A connection of a ``RemotingServer`` or ``RemotingClient``; compared and hashed by identity.

    Requests of the peer go to the endpoint's handlers as they arrive, answers to the futures of ``invoke``.
    What one read causes to be written leaves in one write; so does what one turn of the event loop causes.

    On the accepting side, requests are held back and reading stops while more than ``HIGH_WATER_BYTES`` wait
    to be sent to the peer. The dialling side goes on reading, or two ends that wait for each other to read
    would wait for ever.

    Attributes:
        remote_address: the peer, ``host:port``.
        local_address: this end, ``host:port``.
        peer_serialize_type: the codec of the requests sent to this peer; answers mirror their request's.
        is_closed: nothing can be sent any more.
        has_received: at least one byte came from the peer.
        has_sent: at least one byte was written.
    """

    __slots__ = (
        "_accepted",
        "_active_at",
        "_backlog",
        "_close_reason",
        "_decoder",
        "_drain_waiters",
        "_endpoint",
        "_flush_due",
        "_handlers",
        "_idle_timer",
        "_linger_timer",
        "_loop",
        "_monotonic",
        "_out",
        "_out_bytes",
        "_pending",
        "_reading_paused",
        "_state",
        "_suspended",
        "_tasks",
        "_transport",
        "_unsent_permits",
        "_writing_paused",
        "has_received",
        "has_sent",
        "is_closed",
        "local_address",
        "peer_serialize_type",
        "remote_address",
    )

    def __init__(self, endpoint: Endpoint, serialize_type: SerializeType, *, accepted: bool) -> None:
        self._endpoint = endpoint
        self._handlers = endpoint.handlers
        self._monotonic = endpoint.runtime.clock.monotonic
        self._accepted = accepted
        self._state = ConnectionState.CONNECTING
        self._close_reason: CloseReason | None = None
        self._decoder = FrameDecoder()
        self._out: list[bytes] = []
        self._out_bytes = 0
        self._flush_due = False
        self._writing_paused = False
        self._reading_paused = False
        self._backlog: deque[RemotingCommand] = deque()
        self._drain_waiters: list[asyncio.Future[None]] = []
        self._unsent_permits = 0
        self._suspended = 0
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._linger_timer: Cancellable | None = None
        self._idle_timer: Cancellable | None = None
        self.peer_serialize_type = serialize_type
        self.is_closed = True
        self.has_received = False
        self.has_sent = False
        self.remote_address = self.local_address = "unknown"

    def __repr__(self) -> str:
        return f"<Connection {self.local_address} to {self.remote_address}, {self._state.value}>"

    # Called by the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        runtime = self._endpoint.runtime
        # uvloop's transports do not inherit from asyncio's.
        self._transport = cast(asyncio.Transport, transport)
        self._loop = asyncio.get_running_loop()
        self._transport.set_write_buffer_limits(high=HIGH_WATER_BYTES, low=LOW_WATER_BYTES)
        self.remote_address = format_address(transport.get_extra_info("peername"))
        self.local_address = format_address(transport.get_extra_info("sockname"))
        self._pending = PendingRequests(self._loop, runtime.timers, self.remote_address)
        self._active_at = self._monotonic()
        self._idle_timer = runtime.timers.call_later(self._endpoint.idle_seconds, self._check_idle)
        self._enter(ConnectionState.OPEN)
        self.is_closed = False
        self._endpoint.connection_opened(self)

    def data_received(self, data: bytes) -> None:
        self._active_at = self._monotonic()
        self.has_received = True
        # Held up until the end of this read, so that all its answers leave in one write.
        self._flush_due = True
        decoder = self._decoder
        for command in decoder.feed(data):
            if command.flag & FLAG_RESPONSE:
                self._pending.complete(command)
            elif self._reading_paused:
                self._backlog.append(command)
            else:
                self._handle(command)
        self._flush()
        if decoder.failure is not None and not self.is_closed:
            logger.warning("closing %s: %s", self.remote_address, decoder.failure)
            self._shut(CloseReason.BAD_FRAME, str(decoder.failure))

    def connection_lost(self, exc: Exception | None) -> None:
        reason = self._close_reason
        if reason is None:
            reason = CloseReason.PEER if exc is None else CloseReason.ERROR
        self._enter(ConnectionState.CLOSED)
        if self._linger_timer is not None:
            self._linger_timer.cancel()
            self._linger_timer = None
        self._let_go(f"{reason}: {exc}" if exc is not None else str(reason))
        self._endpoint.connection_closed(self, reason)

    def pause_writing(self) -> None:
        self._writing_paused = True
        if self._accepted and not self._reading_paused and not self._transport.is_closing():
            self._reading_paused = True
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._writing_paused = False
        self._release_permits()
        self._wake_drain_waiters(None)
        if self._reading_paused:
            self._loop.call_soon(self._handle_backlog)

    # Answering the peer's requests.

    def reply(self, request: RemotingCommand, response: RemotingCommand) -> None:
        """Answer a request whose handler returned None.

        Opaque, flag and codec are taken from the request. Does nothing for a oneway request or when the
        connection is closed.
        """
        if not request.flag & FLAG_ONEWAY:
            self._suspended -= 1
            self._answer(request, response)

    def _answer(self, request: RemotingCommand, response: RemotingCommand) -> None:
        if not request.flag & FLAG_ONEWAY and not self.is_closed:
            self._send(encode_reply(request, response))

    def _handle(self, request: RemotingCommand) -> None:
        if self._state is not ConnectionState.OPEN:
            return
        handler = self._handlers.get(request.code)
        if handler is None:
            self._answer(request, unsupported(request))
            return
        if self._suspended + len(self._tasks) >= MAX_REQUESTS_IN_PROGRESS:
            self._answer(request, busy())
            return
        try:
            result = handler(self, request)
        except Exception as error:
            self._answer(request, failure(request, error))
            return
        if isinstance(result, RemotingCommand):
            self._answer(request, result)
        elif result is not None:
            self._await_result(request, result)
        elif not request.flag & FLAG_ONEWAY:
            self._suspended += 1

    def _handle_backlog(self) -> None:
        """Go on with what was held back while the peer did not read."""
        if not self._peer_reads() or not self._reading_paused:
            return
        self._flush_due = True
        while self._backlog and self._peer_reads():
            self._handle(self._backlog.popleft())
        self._flush()
        if self._peer_reads() and not self._transport.is_closing():
            self._reading_paused = False
            self._transport.resume_reading()

    def _peer_reads(self) -> bool:
        return not self._writing_paused and not self.is_closed

    def _await_result(self, request: RemotingCommand, result: Awaitable[RemotingCommand | None]) -> None:
        task = self._loop.create_task(self._answer_when_done(request, result))
        self._tasks[task] = self._endpoint.tasks[task] = None
        task.add_done_callback(self._forget_task)

    async def _answer_when_done(
        self, request: RemotingCommand, result: Awaitable[RemotingCommand | None]
    ) -> None:
        try:
            response = await result
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            self._answer(request, failure(request, error))
        except Exception as error:
            self._answer(request, failure(request, error))
        else:
            if response is not None:
                self._answer(request, response)

    def _forget_task(self, task: asyncio.Task[None]) -> None:
        del self._tasks[task], self._endpoint.tasks[task]
        if self._state is ConnectionState.DRAINING and not self._tasks:
            self._shut(CloseReason.LOCAL, "shutting down")

    # Sending requests to the peer.

    def invoke(self, command: RemotingCommand, timeout: float) -> asyncio.Future[RemotingCommand]:
        """Send a request; the future gives the response, whatever its code.

        Args:
            timeout: seconds, not scaled; fires up to 50 ms late.

        Raises (through the future):
            ConnectionLostError: at once when the connection is closed, or goes while waiting.
            RequestTimeoutError: no answer in time.
            TooManyRequestsError: 65 535 requests wait already, or 64 MiB could not be sent yet.
        """
        if self._state is not ConnectionState.OPEN:
            return _failed(ConnectionLostError(f"connection to {self.remote_address} is closed"))
        pending = self._pending
        if len(pending) >= MAX_PENDING:
            return _failed(TooManyRequestsError(f"{len(pending)} requests to {self.remote_address} wait"))
        if self._writing_paused and self._unsent_bytes() > MAX_UNSENT_BYTES:
            return _failed(TooManyRequestsError(f"{self.remote_address} does not read"))
        command.opaque = opaque = pending.next_opaque()
        command.flag = 0
        frame = encode_frame(command, self.peer_serialize_type)
        future = pending.add(opaque, timeout)
        self._send(frame)
        return future

    def send_oneway(self, command: RemotingCommand) -> None:
        """Send a request that is never answered, without a permit and without waiting.

        Raises:
            ConnectionLostError: the connection is closed, or was closed now because the peer does not read.
        """
        if self._state is not ConnectionState.OPEN:
            raise ConnectionLostError(f"connection to {self.remote_address} is closed")
        command.opaque = self._pending.next_opaque()
        command.flag = FLAG_ONEWAY
        self._send(encode_frame(command, self.peer_serialize_type))
        if self.is_closed:
            raise ConnectionLostError(f"{self.remote_address} does not read")

    async def invoke_oneway(self, command: RemotingCommand, permit_timeout: float) -> None:
        """Send a request that is never answered, once there are a permit and room in the write buffer.

        The permit comes back when the transport has taken the request without being above its high-water
        mark, or has drained since (``NettyRemotingAbstract#invokeOnewayImpl``).

        Raises:
            TooManyRequestsError: no permit or no room within ``permit_timeout`` seconds.
            ConnectionLostError: the connection is closed or goes meanwhile.
        """
        permits = self._endpoint.permits
        deadline = self._loop.time() + permit_timeout
        await permits.acquire(permit_timeout)
        try:
            if self._writing_paused:
                await self.drain(deadline - self._loop.time())
            self.send_oneway(command)
        except BaseException:
            permits.release(1)
            raise
        self._unsent_permits += 1

    async def drain(self, timeout: float) -> None:
        """Wait until the peer has read enough for more to be written.

        Raises:
            TooManyRequestsError: it did not within ``timeout`` seconds.
            ConnectionLostError: the connection went.
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

    # Writing.

    def _send(self, frame: bytes) -> None:
        self._out.append(frame)
        self._out_bytes += len(frame)
        if not self._flush_due:
            self._flush_due = True
            self._loop.call_soon(self._flush)
        elif self._out_bytes > HIGH_WATER_BYTES:
            self._flush()
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
        elif self._transport.get_write_buffer_size() > MAX_UNSENT_BYTES:
            logger.warning("closing %s: it does not read", self.remote_address)
            self.abort(CloseReason.OVERFLOW)

    def _unsent_bytes(self) -> int:
        return self._out_bytes + self._transport.get_write_buffer_size()

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

    # Ending.

    def finish(self) -> None:
        """Take no further requests; close when the answers being worked on have been written.

        Answers that a handler promised by returning None are not waited for: whoever holds requests back
        answers them before it closes its server.
        """
        if self._state is ConnectionState.OPEN:
            self._enter(ConnectionState.DRAINING)
            if not self._tasks:
                self._shut(CloseReason.LOCAL, "shutting down")

    def close(self, reason: str = "") -> None:
        """Close now: pending requests fail, handlers are cancelled; what was written still leaves."""
        self._shut(CloseReason.LOCAL, reason or str(CloseReason.LOCAL))

    def abort(self, reason: CloseReason = CloseReason.LOCAL) -> None:
        """Close without sending what is still unsent."""
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
        self._close_reason = reason
        self._let_go(why)
        self._transport.close()
        self._linger_timer = self._endpoint.runtime.timers.call_timeout(LINGER_SECONDS, self._transport.abort)

    def _let_go(self, why: str) -> None:
        """Release everyone and everything that depends on this connection."""
        self.is_closed = True
        self._out.clear()
        self._backlog.clear()
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
        for task in self._tasks:
            task.cancel()
        self._pending.fail_all(why)
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


# None: a oneway request, or one that is answered later by ``Connection.reply``.
Handler = Callable[[Connection, RemotingCommand], Reply]


def _failed(error: Exception) -> asyncio.Future[RemotingCommand]:
    future: asyncio.Future[RemotingCommand] = asyncio.get_running_loop().create_future()
    future.set_exception(error)
    return future
