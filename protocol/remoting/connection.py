"""A connection of a server or client: requests and responses in both directions."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

from rewindmq.protocol.codec.request_limits import DEFAULT_REQUEST_LIMIT
from rewindmq.protocol.command import FLAG_ONEWAY, FLAG_RESPONSE, RemotingCommand, SerializeType
from rewindmq.protocol.errors import (
    ConnectionLostError,
    ForeignProtocolError,
    FrameError,
    TooManyRequestsError,
    UnreadableResponseError,
)
from rewindmq.protocol.frame import FrameDecoder, FrameStart, encode_frame, frame_end
from rewindmq.protocol.limits import MAX_FRAME_BYTES, MAX_HEADER_BYTES
from rewindmq.protocol.remoting.dispatch import (
    MAX_REQUEST_BYTES_IN_PROGRESS,
    MAX_REQUESTS_IN_PROGRESS,
    busy,
    encode_reply,
    failure,
    too_large,
    unsupported,
)
from rewindmq.protocol.remoting.pending import MAX_PENDING, PendingRequests
from rewindmq.protocol.remoting.plain_responses import DecodeExt, Response
from rewindmq.protocol.remoting.speedups import FrameKernel
from rewindmq.protocol.remoting.stalls.timed import TimedCoroutine
from rewindmq.protocol.remoting.state import CloseReason, ConnectionState
from rewindmq.protocol.remoting.stream import HIGH_WATER_BYTES, MAX_WRITE_BYTES, FrameStream, StreamOwner
from rewindmq.protocol.remoting.traffic.unfinished_frame import UnfinishedFrame

logger = logging.getLogger(__name__)

# Bound once: an enum's member costs as much as a look-up in a dict.
_OPEN: Final = ConnectionState.OPEN
_MSGPACK: Final = SerializeType.MSGPACK
# No request has a lower limit.
_SMALL_BODY_BYTES: Final = DEFAULT_REQUEST_LIMIT.body_bytes

# None: the request was oneway, or ``Connection.reply`` sends the response later.
Reply = RemotingCommand | Awaitable[RemotingCommand | None] | None
Handler = Callable[["Connection", RemotingCommand], Reply]


class ConnectionOwner(StreamOwner, Protocol):
    """The endpoint of a connection, as the connection uses it.

    Attributes:
        handlers: request code to handler.
        tasks: running handler tasks of all connections.
        frame_kernels: answer some frames before they are decoded.
    """

    handlers: Mapping[int, Handler]
    frame_kernels: Sequence[FrameKernel]
    tasks: dict[asyncio.Task[None], None]

    def connection_opened(self, connection: Connection) -> None:
        """Register a connection that has its transport."""

    def connection_closed(self, connection: Connection, reason: CloseReason) -> None:
        """Unregister a connection whose transport is closed; called once."""


class Connection(FrameStream):
    """A connection of a ``RemotingServer`` or ``RemotingClient``; compared and hashed by identity.

    Requests of the peer go to the endpoint's handlers as they arrive; responses complete the futures of
    ``invoke``. The frames that result from one read, or from one turn of the loop, leave in one write, up
    to the limits of ``FrameStream``.

    On the accepting side, the connection queues requests and stops reading while more than
    ``HIGH_WATER_BYTES`` are unsent. The connecting side always reads; if both ends stopped reading, each
    would wait for the other for ever.

    Attributes:
        peer_serialize_type: the serialization type of requests to this peer; a response uses its request's.
    """

    __slots__ = (
        "_backlog",
        "_decoder",
        "_handlers",
        "_in_progress",
        "_pending",
        "_stalls",
        "_task_bytes",
        "_tasks",
        "_unfinished",
        "peer_serialize_type",
    )

    _endpoint: ConnectionOwner

    def __init__(self, endpoint: ConnectionOwner, serialize_type: SerializeType, *, accepted: bool) -> None:
        super().__init__(endpoint, accepted=accepted)
        self._handlers = endpoint.handlers
        self._stalls = endpoint.runtime.stalls
        self._decoder = FrameDecoder(max_header_bytes=MAX_HEADER_BYTES if accepted else MAX_FRAME_BYTES)
        self._backlog: deque[RemotingCommand] = deque()
        # Requests that run in tasks, and those that ``reply`` has not answered yet.
        self._in_progress = 0
        # To the bytes of the task's request.
        self._tasks: dict[asyncio.Task[None], int] = {}
        self._task_bytes = 0
        self.peer_serialize_type = serialize_type

    # Called by the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        timers = self._endpoint.runtime.timers
        self._pending = PendingRequests(self._loop, timers, self.remote_address)
        self._unfinished = UnfinishedFrame(self, self._endpoint.traffic, timers, self._loop.time)
        self._endpoint.connection_opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        began = self._monotonic()
        super().connection_lost(exc)
        assert self.close_reason is not None
        self._endpoint.connection_closed(self, self.close_reason)
        if self._stalls is not None:
            self._stalls.passed(began, "the end of a connection", self.remote_address)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._reading_paused:
            self._loop.call_soon(self._handle_backlog)

    def data_received(self, data: bytes) -> None:
        monotonic, stalls, decoder = self._monotonic, self._stalls, self._decoder
        began = self._active_at = monotonic()
        self.has_received = True
        # Delay writes until the end of this read, so that all its responses leave in one write.
        self._flush_due = True
        self._gather_bytes = MAX_WRITE_BYTES
        kernels = self._endpoint.frame_kernels
        parts: Iterable[list[RemotingCommand]]
        if kernels:
            parts = self._other_commands(kernels, data)
        elif self._pending.may_be_plain:
            parts = self._commands_between_plain(data)
        else:
            parts = (decoder.feed(data),)
        is_new = False
        for commands in parts:
            for command in commands:
                is_new = True
                if command.flag & FLAG_RESPONSE:
                    self._pending.complete(command)
                elif self._reading_paused:
                    self._backlog.append(command)
                else:
                    self._handle(command)
                    if stalls is not None:
                        # ``Stalls.passed`` without its call for each request.
                        now = monotonic()
                        if now - began > stalls.threshold:
                            stalls.record(now - began, command.code, self.remote_address)
                        began = now
        self._gather_bytes = HIGH_WATER_BYTES
        self._flush()
        if decoder.failure is not None and not self.is_closed:
            self._report(decoder.failure)
            self._shut(CloseReason.BAD_FRAME, str(decoder.failure))
        elif (
            (decoder.buffered or self._unfinished.began is not None) and self._accepted and not self.is_closed
        ):
            self._unfinished.update(decoder.buffered, is_new=is_new)

    def _commands_between_plain(self, data: bytes) -> Iterator[list[RemotingCommand]]:
        """Complete the requests with plain responses, in their turn; yield the commands of other frames."""
        decoder, complete_plain = self._decoder, self._pending.complete_plain
        position, end = 0, len(data)
        while position < end and decoder.failure is None:
            if decoder.buffered:
                stop = min(end, position + decoder.missing)
            else:
                position = complete_plain(data, position)
                stop = frame_end(data, position)
            if stop > position:
                yield decoder.feed(data[position:stop])
            position = stop

    def _other_commands(self, kernels: Sequence[FrameKernel], data: bytes) -> Iterator[list[RemotingCommand]]:
        """Let the kernels answer the frames they can, in their turn; yield the commands of the others."""
        decoder = self._decoder
        position, end = 0, len(data)
        while position < end and self._may_answer():
            if decoder.buffered:
                stop = min(end, position + decoder.missing)
                piece = data[position:stop]
                frame = decoder.completed_by(piece)
                if frame is not None and self._take(kernels, frame, 0) is not None:
                    decoder.discard()
                    self._unfinished.update(0, is_new=True)
                    position = stop
                    continue
            else:
                taken = self._take(kernels, data, position)
                if taken is not None:
                    position = taken
                    continue
                stop = frame_end(data, position)
                piece = data[position:stop]
            yield decoder.feed(piece)
            position = stop
        if position < end:
            yield decoder.feed(data[position:])

    def _take(self, kernels: Sequence[FrameKernel], data: bytes, position: int) -> int | None:
        """Return the position behind the frames that a kernel has answered; None if it is Python's turn."""
        began = self._monotonic()
        for kernel in kernels:
            taken = kernel.take(self.remote_address, data, position)
            if taken is not None:
                position, responses = taken
                # Oneway requests have none.
                if responses:
                    self._send(responses)
                if self._stalls is not None:
                    self._stalls.passed(began, kernel.code, self.remote_address)
                return position
        return None

    def _may_answer(self) -> bool:
        """Return whether a request would be handled at once, and neither queued nor refused."""
        return (
            self._state is _OPEN
            and not self._reading_paused
            and not self._writing_paused
            and self._decoder.failure is None
            and not (self._in_progress and self._is_full())
        )

    def _report(self, error: FrameError) -> None:
        """Log why the connection is closed; a client of another protocol connects again and again."""
        if isinstance(error, ForeignProtocolError):
            host = self.remote_address.rpartition(":")[0]
            if not self._endpoint.traffic.foreign.is_due(host, self._monotonic()):
                return
        logger.warning("closing %s: %s", self.remote_address, error)

    # Responses to the peer's requests.

    def reply(self, request: RemotingCommand, response: RemotingCommand) -> None:
        """Answer a request whose handler returned None.

        Opaque, flag and serialization type are the request's. Does nothing for a oneway request or if the
        connection is closed. Whoever keeps the request until then calls ``RemotingCommand.drop_content``,
        because its bytes count against no limit.
        """
        if not request.flag & FLAG_ONEWAY:
            self._in_progress -= 1
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
        if self._state is not _OPEN:
            return
        handler = self._handlers.get(request.code)
        if handler is None:
            self._answer(request, unsupported(request))
            return
        if self._in_progress and self._is_full():
            self._answer(request, busy())
            return
        # A received body is bytes.
        body: Any = request.body
        if body is not None and len(body) > _SMALL_BODY_BYTES:
            refusal = too_large(request, len(body))
            if refusal is not None:
                self._answer(request, refusal)
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
            self._in_progress += 1

    def _is_full(self) -> bool:
        """Return whether the requests in progress reach one of their limits."""
        return (
            self._in_progress >= MAX_REQUESTS_IN_PROGRESS or self._task_bytes >= MAX_REQUEST_BYTES_IN_PROGRESS
        )

    def _handle_backlog(self) -> None:
        """Handle the requests that were queued while the peer did not read."""
        if not self._peer_reads() or not self._reading_paused:
            return
        self._flush_due = True
        began = self._monotonic()
        while self._backlog and self._peer_reads():
            request = self._backlog.popleft()
            self._handle(request)
            if self._stalls is not None:
                began = self._stalls.passed(began, request.code, self.remote_address)
        self._flush()
        if self._peer_reads() and not self._transport.is_closing():
            self._reading_paused = False
            self._unfinished.restart()
            self._transport.resume_reading()

    def _peer_reads(self) -> bool:
        return not self._writing_paused and not self.is_closed

    def _await_result(self, request: RemotingCommand, result: Awaitable[RemotingCommand | None]) -> None:
        self._in_progress += 1
        work: Coroutine[Any, Any, None] = self._answer_when_done(request, result)
        if self._stalls is not None:
            work = TimedCoroutine(work, self._stalls, request.code, self.remote_address)
        task = self._loop.create_task(work)
        self._tasks[task] = size = request.received_bytes
        self._task_bytes += size
        self._endpoint.tasks[task] = None
        task.add_done_callback(self._forget_task)
        if isinstance(result, Coroutine):
            # A task that is cancelled before its first step leaves it unawaited, which would be a warning.
            task.add_done_callback(lambda _: result.close())

    async def _answer_when_done(
        self, request: RemotingCommand, result: Awaitable[RemotingCommand | None]
    ) -> None:
        try:
            response = await result
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            response = failure(request, error)
        except Exception as error:
            response = failure(request, error)
        if response is not None:
            self._answer(request, response)
        if response is not None or request.flag & FLAG_ONEWAY:
            self._in_progress -= 1

    def _forget_task(self, task: asyncio.Task[None]) -> None:
        self._task_bytes -= self._tasks.pop(task)
        del self._endpoint.tasks[task]
        if self._state is ConnectionState.DRAINING and not self._tasks:
            self._shut(CloseReason.LOCAL, "shutting down")

    # Requests to the peer.

    def invoke(self, command: RemotingCommand, timeout: float) -> asyncio.Future[RemotingCommand]:
        """Send a request; the future gives the response, whatever its code.

        Args:
            timeout: seconds, not scaled; expires up to 50 ms late.

        Raises (through the future):
            ConnectionLostError: the connection is closed, or closes while waiting.
            UnreadableResponseError: closed because of bytes from the peer that are no frame.
            RequestTimeoutError: no response in time.
            TooManyRequestsError: 65 535 requests wait already, or 64 MiB could not be sent yet.
        """
        if self._state is not ConnectionState.OPEN:
            return _failed(ConnectionLostError(f"connection to {self.remote_address} is closed"))
        pending = self._pending
        if len(pending) >= MAX_PENDING:
            return _failed(TooManyRequestsError(f"{len(pending)} requests to {self.remote_address} wait"))
        if self._is_deaf() or self.is_closed:
            return _failed(TooManyRequestsError(f"{self.remote_address} does not read"))
        command.opaque = opaque = pending.next_opaque()
        command.flag = 0
        frame = encode_frame(command, self.peer_serialize_type)
        future = pending.add(opaque, timeout)
        self._send(frame)
        return future

    def invoke_encoded(
        self,
        start: FrameStart,
        rest: bytes,
        body: bytes,
        timeout: float,
        decode: DecodeExt,
    ) -> asyncio.Future[Response] | None:
        """Send a request whose msgpack header is encoded already, except for its opaque.

        Args:
            start: the frame up to the opaque.
            rest: the header behind the opaque.
            body: like the header, within the limits of a frame.
            timeout: as in ``invoke``.
            decode: decodes the ext fields of a plain response, see ``plain_responses``.

        Returns:
            The future of the response, or of the typed header if the response is plain. None: nothing was
            sent, and ``invoke`` must decide.
        """
        pending = self._pending
        if (
            self._state is not _OPEN
            or self.peer_serialize_type is not _MSGPACK
            or (self._writing_paused and (self._is_deaf() or self.is_closed))
            or (future := pending.begin(timeout, decode)) is None
        ):
            return None
        rest_bytes, body_bytes = len(rest), len(body)
        prefix = start.encode(pending.opaque, rest_bytes, body_bytes)
        self._out += (prefix, rest, body)
        self._out_bytes += len(prefix) + rest_bytes + body_bytes
        if not self._flush_due or self._out_bytes > self._gather_bytes:
            self._flush_or_schedule()
        return future

    def send_oneway(self, command: RemotingCommand) -> None:
        """Send a request without a response, without a permit and without waiting.

        Raises:
            ConnectionLostError: the connection is closed, or is closed now because the peer does not read.
        """
        self._send_or_drop(self._oneway_frame(command))
        if self.is_closed:
            raise ConnectionLostError(f"{self.remote_address} does not read")

    async def invoke_oneway(self, command: RemotingCommand, permit_timeout: float) -> None:
        """Send a request without a response when a permit and room in the write buffer are free.

        The permit is released when the transport has accepted the request and is below its high-water mark
        (``NettyRemotingAbstract#invokeOnewayImpl``).

        Raises:
            TooManyRequestsError: no permit or no room within ``permit_timeout`` seconds.
            ConnectionLostError: the connection is closed or closes meanwhile.
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

    # Closing.

    def finish(self) -> None:
        """Refuse further requests; close when the responses of running handlers have been written.

        Does not wait for responses that a handler has deferred by returning None: a service that defers
        responses sends them before it closes its server.
        """
        if self._state is ConnectionState.OPEN:
            self._enter(ConnectionState.DRAINING)
            if not self._tasks:
                self._shut(CloseReason.LOCAL, "shutting down")

    def on_late_frame(self) -> None:
        """Close the connection; called by its ``UnfinishedFrame``."""
        self._shut(CloseReason.SLOW_FRAME, str(CloseReason.SLOW_FRAME))

    def _release(self, why: str) -> None:
        super()._release(why)
        self._unfinished.close()
        self._decoder.discard()
        self._backlog.clear()
        for task in self._tasks:
            task.cancel()
        peer = self.remote_address
        if self.close_reason is CloseReason.BAD_FRAME:
            text = f"a response from {peer} cannot be read, the request may have been carried out: {why}"
            self._pending.fail_all(UnreadableResponseError, text)
        else:
            self._pending.fail_all(ConnectionLostError, f"connection to {peer} lost: {why}")


def _failed(error: Exception) -> asyncio.Future[RemotingCommand]:
    future: asyncio.Future[RemotingCommand] = asyncio.get_running_loop().create_future()
    future.set_exception(error)
    return future
