"""Limits on what visitors send to the dashboard: bytes of all forms, time, connections, over real sockets."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rewindmq.dashboard import connections
from rewindmq.dashboard.web import forms
from rewindmq.dashboard.web.page import DashboardSettings
from rewindmq.dashboard.web.safety import parse_form
from tests.dashboard.site import Site, dashboard

MIB = 1 << 20
SETTINGS = DashboardSettings("x", token="top-secret")


class Visitor:
    """A connection that sends the parts of a form."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def begin(self, path: str, length: int) -> None:
        """Send the head of a form."""
        headers = {"Host": "127.0.0.1", "Authorization": "Bearer top-secret", "Content-Length": length}
        lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        await self.send("\r\n".join(lines).encode())

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def answer(self) -> bytes:
        """Return the status line and the body; empty if the connection was closed without a response."""
        async with asyncio.timeout(60):
            try:
                head = await self._reader.readuntil(b"\r\n\r\n")
            except (asyncio.IncompleteReadError, ConnectionResetError):
                return b""
            length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
            return head.splitlines()[0] + b" " + await self._reader.readexactly(length)


@asynccontextmanager
async def visiting(site: Site) -> AsyncIterator[Visitor]:
    reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(site.url).port)
    try:
        yield Visitor(reader, writer)
    finally:
        writer.close()


async def small_form(site: Site) -> int:
    """Send a whole form, which is of another start of the dashboard; return the status of its response."""
    return (await site.post("/topics/T/send", {"csrf": "old"}, Authorization="Bearer top-secret")).status


async def test_many_unfinished_forms_hold_no_more_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The form that has been unfinished for longest makes room; one that is sent at once is answered."""
    monkeypatch.setattr(forms, "MAX_UNFINISHED_BYTES", 2 * MIB)
    async with dashboard("127.0.0.1:1", SETTINGS) as site, visiting(site) as oldest:
        await oldest.begin("/topics/T/send", 2 * MIB)
        await oldest.send(b"x" * MIB)
        async with visiting(site) as other:
            await other.begin("/topics/T/send", 2 * MIB)
            await other.send(b"y" * (MIB + MIB // 2))
            refusal = b"HTTP/1.1 503 Service Unavailable The dashboard is reading too many forms:"
            assert (await oldest.answer()).startswith(refusal)
            # The other one goes on: its form is refused only for what it says.
            assert (
                await site.post("/topics/T/send", {"csrf": "old"}, Authorization="Bearer top-secret")
            ).status == 403
            await other.send(b"y" * (MIB // 2))
            assert (await other.answer()).startswith(b"HTTP/1.1 403")


@pytest.fixture
def traced() -> Iterator[None]:
    """Count allocated bytes, and let no collector free any."""
    gc.collect()
    gc.disable()
    tracemalloc.start()
    yield
    tracemalloc.stop()
    gc.enable()


@pytest.mark.usefixtures("traced")
async def test_a_refused_form_is_freed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "MAX_UNFINISHED_BYTES", 2 * MIB)
    async with dashboard("127.0.0.1:1", SETTINGS) as site, AsyncExitStack() as stack:
        visitors = [await stack.enter_async_context(visiting(site)) for _ in range(12)]
        before = tracemalloc.get_traced_memory()[0]
        for visitor in visitors:
            await visitor.begin("/topics/T/send", 2 * MIB)
            await visitor.send(b"x" * MIB)
        for visitor in visitors[:-2]:
            assert (await visitor.answer()).startswith(b"HTTP/1.1 503")
        assert tracemalloc.get_traced_memory()[0] - before < 6 * MIB


@given(st.text("a%&=+1Cc3A9é \x00", max_size=40).map(str.encode))
@example(b"a=" + b"%C3%A9" * 40_000 + b"&b=" + b"x" * 65_535 + b"%26" * 3)
@example(b"a=" + b"x" * 65_534 + b"%zz%4")
@example(b"a=%\xff&&b")
def test_a_form_is_read_as_the_standard_library_reads_it(body: bytes) -> None:
    expected = parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True)
    assert parse_form(body) == dict(expected)


async def test_a_form_that_does_not_come_is_refused_at_the_time_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forms, "FORM_SECONDS", 0.2)
    async with dashboard("127.0.0.1:1", SETTINGS) as site:
        for path in ("/topics/T/send", "/login"):
            async with visiting(site) as visitor:
                await visitor.begin(path, 100)
                await visitor.send(b"token=")
                assert (await visitor.answer()).startswith(
                    b"HTTP/1.1 408 Request Timeout The form did not come"
                )


async def test_large_forms_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forms that were read and wait hold bytes, and their time runs: their number is bounded, too."""
    monkeypatch.setattr(forms, "MAX_LARGE", 0)
    monkeypatch.setattr(forms, "FORM_SECONDS", 0.2)
    async with dashboard("127.0.0.1:1", SETTINGS) as site, visiting(site) as visitor:
        await visitor.begin("/topics/T/send", MIB)
        await visitor.send(b"x" * MIB)
        assert (await visitor.answer()).startswith(b"HTTP/1.1 408")
        assert (await small_form(site)) == 403


@pytest.mark.parametrize("head", [b"", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"])
async def test_a_head_that_does_not_come_is_closed_at_the_time_limit(
    monkeypatch: pytest.MonkeyPatch, head: bytes
) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.2)
    async with dashboard("127.0.0.1:1", SETTINGS) as site, visiting(site) as visitor:
        await visitor.send(head)
        assert await visitor.answer() == b""


async def test_a_second_head_that_does_not_come_is_closed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.2)
    async with dashboard("127.0.0.1:1", SETTINGS) as site, visiting(site) as visitor:
        await visitor.send(b"GET /login HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert (await visitor.answer()).startswith(b"HTTP/1.1 200")
        await visitor.send(b"GET /login")
        assert await visitor.answer() == b""


async def test_a_refused_form_that_goes_on_is_closed_at_the_time_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.2)
    async with dashboard("127.0.0.1:1", SETTINGS) as site, visiting(site) as visitor:
        await visitor.begin("/topics", 1_000)
        assert (await visitor.answer()).startswith(b"HTTP/1.1 405")
        await visitor.send(b"x")
        assert await visitor.answer() == b""


async def test_a_request_in_progress_outlives_the_limit_of_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.1)
    async with dashboard("127.0.0.1:1", SETTINGS) as site, visiting(site) as visitor:
        await visitor.begin("/topics/T/send", 6)
        async with visiting(site) as late:
            # The limit of this connection begins later, and ends it.
            assert await late.answer() == b""
        await visitor.send(b"csrf=o")
        assert (await visitor.answer()).startswith(b"HTTP/1.1 403")


async def test_connections_beyond_the_limit_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 2)
    async with (
        dashboard("127.0.0.1:1", SETTINGS) as site,
        visiting(site),
        visiting(site),
        visiting(site) as third,
    ):
        assert await third.answer() == b""
