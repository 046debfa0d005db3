"""One connection, either end of it: requests and answers in both directions."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from rewindmq.protocol.command import FLAG_ONEWAY, FLAG_RESPONSE, RemotingCommand, SerializeType
from rewindmq.protocol.errors import ConnectionLostError, TooManyRequestsError
from rewindmq.protocol.frame import FrameDecoder, encode_frame
from rewindmq.protocol.remoting.dispatch import (
    MAX_REQUESTS_IN_PROGRESS,
    busy,
    encode_reply,
    failure,
    unsupported,
)
from rewindmq.protocol.remoting.pending import MAX_PENDING, PendingRequests
from rewindmq.protocol.remoting.state import CloseReason, ConnectionState
from rewindmq.protocol.remoting.stream import HIGH_WATER_BYTES, MAX_WRITE_BYTES, FrameStream, StreamOwner

logger = logging.getLogger(__name__)

# None: the request was oneway, or is answered later by ``Connection.reply``.
Reply = RemotingCommand | Awaitable[RemotingCommand | None] | None
Handler = Callable[["Connection", RemotingCommand], Reply]


class ConnectionOwner(StreamOwner, Protocol):
    """What a connection needs of the endpoint it belongs to.

    Attributes:
        handlers: request code to handler.
        tasks: handlers that are still being awaited, those of all connections.
    """

    handlers: Mapping[int, Handler]
    tasks: dict[asyncio.Task[None], None]

    def connection_opened(self, connection: Connection) -> None:
        """Note a connection that has its transport."""

    def connection_closed(self, connection: Connection, reason: CloseReason) -> None:
        """Note that the transport of a connection is gone; called once."""


class Connection(FrameStream):
    """A connection of a ``RemotingServer`` or ``RemotingClient``; compared and hashed by identity.

    Requests of the peer go to the endpoint's handlers as they arrive, answers to the futures of ``invoke``.
    What one read causes to be written leaves in one write; so does what one turn of the event loop causes.
    Both up to the limits that ``FrameStream`` names.

    On the accepting side, requests are held back and reading stops while more than ``HIGH_WATER_BYTES`` wait
    to be sent to the peer. The dialling side goes on reading, or two ends that wait for each other to read
    would wait for ever.

    Attributes:
        peer_serialize_type: the codec of the requests sent to this peer; answers mirror their request's.
    """

    __slots__ = (
        "_backlog",
        "_decoder",
        "_handlers",
        "_pending",
        "_suspended",
        "_tasks",
        "peer_serialize_type",
    )

    _endpoint: ConnectionOwner

    def __init__(self, endpoint: ConnectionOwner, serialize_type: SerializeType, *, accepted: bool) -> None:
        super().__init__(endpoint, accepted=accepted)
        self._handlers = endpoint.handlers
        self._decoder = FrameDecoder()
        self._backlog: deque[RemotingCommand] = deque()
        # Requests whose handlers returned None and have not called ``reply`` yet.
        self._suspended = 0
        self._tasks: dict[asyncio.Task[None], None] = {}
        self.peer_serialize_type = serialize_type

    # Called by the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._pending = PendingRequests(self._loop, self._endpoint.runtime.timers, self.remote_address)
        self._endpoint.connection_opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        assert self.close_reason is not None
        self._endpoint.connection_closed(self, self.close_reason)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._reading_paused:
            self._loop.call_soon(self._handle_backlog)

    def data_received(self, data: bytes) -> None:
        self._active_at = self._monotonic()
        self.has_received = True
        # Held up until the end of this read, so that all its answers leave in one write.
        self._flush_due = True
        self._gather_bytes = MAX_WRITE_BYTES
        decoder = self._decoder
        for command in decoder.feed(data):
            if command.flag & FLAG_RESPONSE:
                self._pending.complete(command)
            elif self._reading_paused:
                self._backlog.append(command)
            else:
                self._handle(command)
        self._gather_bytes = HIGH_WATER_BYTES
        self._flush()
        if decoder.failure is not None and not self.is_closed:
            logger.warning("closing %s: %s", self.remote_address, decoder.failure)
            self._shut(CloseReason.BAD_FRAME, str(decoder.failure))

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
        if request.flag & FLAG_ONEWAY or self.is_closed:
            return
        frame = encode_reply(request, response)
        if self._writing_paused:
            self._send_or_drop(frame)
        else:
            self._send(frame)

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
        if self._is_deaf():
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
        self._send_or_drop(self._oneway_frame(command))
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
            frame = self._oneway_frame(command)
        except BaseException:
            permits.release(1)
            raise
        self._unsent_permits += 1
        self._send(frame)

    def _oneway_frame(self, command: RemotingCommand) -> bytes:
        if self._state is not ConnectionState.OPEN:
            raise ConnectionLostError(f"connection to {self.remote_address} is closed")
        command.opaque = self._pending.next_opaque()
        command.flag = FLAG_ONEWAY
        return encode_frame(command, self.peer_serialize_type)

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

    def _let_go(self, why: str) -> None:
        super()._let_go(why)
        self._backlog.clear()
        for task in self._tasks:
            task.cancel()
        self._pending.fail_all(why)


def _failed(error: Exception) -> asyncio.Future[RemotingCommand]:
    future: asyncio.Future[RemotingCommand] = asyncio.get_running_loop().create_future()
    future.set_exception(error)
    return future
