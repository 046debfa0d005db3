"""A body is sent in pieces, between which the dashboard serves other visitors."""

from __future__ import annotations

import asyncio
import hashlib
import http.client
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

import pytest

from rewindmq import LocalCluster, Message
from rewindmq.dashboard.web.downloads import PIECE_BYTES, download
from rewindmq.protocol.remoting.runtime import LoopTimers
from tests.dashboard.site import dashboard

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


async def test_a_large_body_is_downloaded_and_a_visitor_who_leaves_leaves_no_traceback(
    cluster: LocalCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    async with cluster.producer("p") as producer:
        broker, queue = (await producer.send(Message("Downloaded", BODY))).message_queue[1:]
    path = f"/topics/Downloaded/messages/{broker}/{queue}/0/body"

    def leave(port: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("GET", path)
        connection.getresponse().read(10)
        connection.close()

    def digest(port: int) -> str:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("GET", path)
        found = hashlib.sha256(connection.getresponse().read()).hexdigest()
        connection.close()
        return found

    async with dashboard(cluster.namesrv_address) as site:
        port = urlsplit(site.url).port
        assert port is not None
        await asyncio.to_thread(leave, port)
        assert await asyncio.to_thread(digest, port) == hashlib.sha256(BODY).hexdigest()
    assert capsys.readouterr().err == ""
