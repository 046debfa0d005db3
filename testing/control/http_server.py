"""HttpServer: serves one request of each connection, with limits on bytes, time and connections."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from http import HTTPStatus
from typing import Final

import msgspec

from rewindmq.cluster.errors import ClusterError
from rewindmq.testing.control.http_request import (
    HttpError,
    HttpRequest,
    body_length,
    check_sender,
    parse_head,
)

HOST: Final = "127.0.0.1"
MAX_HEAD_BYTES: Final = 16_384
MAX_CONNECTIONS: Final = 64
# Seconds that a client has to send a request, and again to read the response.
REQUEST_SECONDS: Final = 30.0
# Errors name what a client sent; the longest list, of rules, is cut.
MAX_ERROR_CHARACTERS: Final = 4_096
# A refused body is read and discarded, so that the client can read why; at most so many bytes.
_DISCARDED_BYTES: Final = 1 << 24
# Connections that are told that they are too many, as a multiple of the limit; others are closed.
_MOST: Final = 4
_END_OF_HEAD: Final = b"\r\n\r\n"
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"

# Returns what is sent as JSON; an ``HttpError`` is sent with its status.
Answer = Callable[[HttpRequest], Awaitable[object]]

_log = logging.getLogger(__name__)


class HttpServer:
    """Serves requests that come from this machine with the right token.

    Args:
        answer: called with each request.
        only_waits: True for a request that changes nothing and may wait long: it is cancelled when its client
            closes the connection. Other requests are finished.
        request_seconds: see ``REQUEST_SECONDS``.
        max_connections: connections at the same time; further ones get 503.
    """

    def __init__(
        self,
        token: str,
        answer: Answer,
        *,
        only_waits: Callable[[HttpRequest], bool] = lambda request: False,
        request_seconds: float = REQUEST_SECONDS,
        max_connections: int = MAX_CONNECTIONS,
    ) -> None:
        self._token = token
        self._answer = answer
        self._only_waits = only_waits
        self._request_seconds = request_seconds
        self._max_connections = max_connections
        self._serving: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def listening(self, port: int) -> AsyncIterator[str]:
        """Serve during an ``async with`` statement, which returns the port's URL; at its end, close all.

        Args:
            port: 0 takes any free one.

        Raises:
            ClusterError: the port cannot be bound.
        """
        try:
            server = await asyncio.start_server(self._serve, HOST, port, limit=MAX_HEAD_BYTES)
        except OSError as error:
            raise ClusterError(
                f"the control port {port} cannot be opened: {error.strerror}; choose another --control-port,"
                " or 0 for any free one"
            ) from None
        try:
            yield f"http://{HOST}:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()
            for task in self._serving:
                task.cancel()
            await asyncio.gather(*self._serving, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        before = len(self._serving)
        self._serving.add(task)
        try:
            if before < self._max_connections:
                await self._serve_one(reader, writer)
            elif before < _MOST * self._max_connections:
                busy = f"{self._max_connections} requests are in progress: wait for some of them"
                await self._respond(
                    reader, writer, *_refusal(HttpError(HTTPStatus.SERVICE_UNAVAILABLE, busy))
                )
        except (OSError, EOFError, asyncio.CancelledError):
            # The client has left or does not read, or this process stops.
            pass
        finally:
            self._serving.discard(task)
            writer.close()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await self._read(reader, writer)
            if self._only_waits(request):
                value = await _until_left(reader, self._answer(request))
            else:
                value = await self._answer(request)
            status, body = HTTPStatus.OK, _encode(value)
        except HttpError as error:
            status, body = _refusal(error)
        await self._respond(reader, writer, status, body)

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> HttpRequest:
        try:
            async with asyncio.timeout(self._request_seconds):
                request = parse_head(await reader.readuntil(_END_OF_HEAD))
                check_sender(request.headers, self._token)
                length = body_length(request.headers)
                if request.headers.get("Expect", "").lower() == "100-continue":
                    writer.write(_CONTINUE)
                return replace(request, body=await reader.readexactly(length))
        except TimeoutError:
            late = f"the request was not complete after {self._request_seconds:g} s: send it again"
            raise HttpError(HTTPStatus.REQUEST_TIMEOUT, late) from None
        except asyncio.LimitOverrunError:
            long = f"the headers are too long: send at most {MAX_HEAD_BYTES} bytes"
            raise HttpError(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, long) from None

    async def _respond(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, status: HTTPStatus, body: bytes
    ) -> None:
        """Send a response, and wait until the client has closed: unread bytes would reset the connection."""
        lines = [
            f"HTTP/1.1 {status.value} {status.phrase}",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
            "Cache-Control: no-store",
            # A client that keeps connections would meet one that the port has just closed.
            "Connection: close",
        ]
        if status is HTTPStatus.UNAUTHORIZED:
            lines.append("WWW-Authenticate: Bearer")
        writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        async with asyncio.timeout(self._request_seconds):
            await writer.drain()
            writer.write_eof()
            await _discard(reader)


async def _discard(reader: asyncio.StreamReader) -> None:
    """Read until the client closes the connection, or has sent far too much."""
    left = _DISCARDED_BYTES
    while left > 0 and (data := await reader.read(MAX_HEAD_BYTES)):
        left -= len(data)


async def _until_left(reader: asyncio.StreamReader, answer: Awaitable[object]) -> object:
    """Return the answer; cancel it when the client closes the connection, as one with a time limit does.

    Raises:
        EOFError: the client has left.
    """
    answering, leaving = asyncio.ensure_future(answer), asyncio.ensure_future(_discard(reader))
    try:
        await asyncio.wait((answering, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not answering.done():
            raise EOFError("the client has left")
        return answering.result()
    finally:
        answering.cancel()
        leaving.cancel()
        await asyncio.gather(answering, leaving, return_exceptions=True)


def _encode(value: object) -> bytes:
    """Return a value as a line of JSON.

    Raises:
        HttpError: 500; it has texts that are not Unicode, such as a path.
    """
    try:
        return msgspec.json.encode(value) + b"\n"
    except (TypeError, ValueError, msgspec.MsgspecError) as error:
        _log.exception("a response cannot be written as JSON")
        text = f"the response cannot be written as JSON: {error}; see what rewindmq up prints"
        raise HttpError(HTTPStatus.INTERNAL_SERVER_ERROR, text) from None


def _refusal(error: HttpError) -> tuple[HTTPStatus, bytes]:
    text = str(error)
    if len(text) > MAX_ERROR_CHARACTERS:
        text = text[: MAX_ERROR_CHARACTERS - 1] + "…"
    # A path in it may be no Unicode.
    return error.status, _encode({"error": text.encode("utf-8", "replace").decode()})
