"""A body is sent in pieces, between which the dashboard serves other visitors."""

from __future__ import annotations

import asyncio
import hashlib
import http.client
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Message as AsgiMessage
from starlette.types import Receive, Scope, Send

from rewindmq import LocalCluster, Message
from rewindmq.dashboard.serving import serving
from rewindmq.dashboard.web.downloads import PIECE_BYTES, download
from rewindmq.protocol.remoting.runtime import LoopTimers
from tests.dashboard.site import dashboard

# More than the buffers of two sockets take, and less than a stop waits for.
LARGE, SMALL = 64 << 20, 8 << 20
BODY = b"0123456789abcdef" * (1 << 16) + b"end"


async def _sent(body: bytes, send: Callable[[Any], Awaitable[None]]) -> None:
    """Send the download of a body to a client that stays."""

    async def receive() -> dict[str, str]:
        await asyncio.Event().wait()
        raise AssertionError("an event that is not set")

    response = download(body, "a.bin", LoopTimers())
    await response({"type": "http", "method": "GET", "asgi": {"spec_version": "2.3"}}, receive, send)


async def test_other_work_goes_on_between_the_pieces_even_if_the_client_takes_each_at_once() -> None:
    turns = 0
    pieces: list[tuple[int, bytes]] = []

    async def work() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def send(message: dict[str, Any]) -> None:
        if message.get("body"):
            pieces.append((turns, message["body"]))

    other = asyncio.ensure_future(work())
    await _sent(BODY, send)
    other.cancel()
    assert b"".join(piece for _, piece in pieces) == BODY
    assert max(len(piece) for _, piece in pieces) <= PIECE_BYTES
    assert len({at for at, _ in pieces}) == len(pieces) > 1


@pytest.mark.parametrize("body", [b"", b"x", bytes(PIECE_BYTES), bytes(PIECE_BYTES + 1)])
async def test_a_body_of_any_length_arrives_whole_with_its_length(body: bytes) -> None:
    messages: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        messages.append(message)

    await _sent(body, send)
    start, *parts = messages
    headers = dict(start["headers"])
    assert headers[b"content-length"] == str(len(body)).encode()
    assert headers[b"content-disposition"] == b"attachment; filename=a.bin"
    assert b"".join(part["body"] for part in parts) == body
    assert [part["more_body"] for part in parts] == [True] * (len(parts) - 1) + [False]


async def test_a_large_body_is_downloaded(cluster: LocalCluster) -> None:
    async with cluster.producer("p") as producer:
        broker, queue = (await producer.send(Message("Downloaded", BODY))).message_queue[1:]

    def digest(port: int) -> str:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("GET", f"/topics/Downloaded/messages/{broker}/{queue}/0/body")
        found = hashlib.sha256(connection.getresponse().read()).hexdigest()
        connection.close()
        return found

    async with dashboard(cluster.namesrv_address) as site:
        port = urlsplit(site.url).port
        assert port is not None
        assert await asyncio.to_thread(digest, port) == hashlib.sha256(BODY).hexdigest()


class Served:
    """An application with one download.

    Attributes:
        sent: bytes of the body that the server took.
        ended: set when the response has ended, whole or not.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self.sent = 0
        self.ended = asyncio.Event()

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def count(message: AsgiMessage) -> None:
            await send(message)
            self.sent += len(message.get("body", b""))

        def page(_request: Request) -> Response:
            return download(bytes(self._size), "a.bin", LoopTimers())

        try:
            await Starlette(routes=[Route("/", page)])(scope, receive, count)
        finally:
            if scope["type"] == "http":
                self.ended.set()


async def begin(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Begin the download, and read nothing more for the time being."""
    reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(url).port)
    writer.write(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
    await reader.readuntil(b"\r\n\r\n")
    assert isinstance(writer.transport, asyncio.Transport)
    writer.transport.pause_reading()
    return reader, writer


async def test_a_visitor_who_leaves_ends_the_download_without_a_traceback(
    capsys: pytest.CaptureFixture[str],
) -> None:
    served = Served(LARGE)
    async with serving(served.app, "127.0.0.1", 0) as url, asyncio.timeout(60):
        _, writer = await begin(url)
        writer.transport.abort()
        await served.ended.wait()
    assert served.sent < LARGE
    assert capsys.readouterr().err == ""


async def test_a_stop_lets_a_download_come_to_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    served = Served(SMALL)
    async with asyncio.timeout(60):
        async with serving(served.app, "127.0.0.1", 0) as url:
            reader, writer = await begin(url)
            assert isinstance(writer.transport, asyncio.Transport)
            writer.transport.resume_reading()
            whole = asyncio.ensure_future(reader.read())
        await whole
    writer.close()
    assert whole.result().count(b"\0") == SMALL
    assert capsys.readouterr().err == ""


async def test_a_stop_ends_a_download_that_nobody_reads_without_an_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    served = Served(LARGE)
    async with asyncio.timeout(60):
        async with serving(served.app, "127.0.0.1", 0) as url:
            _, writer = await begin(url)
        await served.ended.wait()
    writer.close()
    assert served.sent < LARGE
    assert capsys.readouterr().err == ""
