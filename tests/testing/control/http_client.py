"""A client of the control port that can send anything, over a real socket."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

WAIT_SECONDS: Final = 60.0


class Response(NamedTuple):
    """Status and JSON value of a response."""

    status: int
    value: Any

    @property
    def error(self) -> str:
        """The sentence of a refusal."""
        (text,) = self.value.values()
        assert list(self.value) == ["error"]
        return str(text)


class HttpClient:
    """Sends requests to one port, each on a connection of its own."""

    def __init__(self, url: str, token: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        assert parts.port is not None
        self._address = parts.hostname, parts.port
        self.headers: dict[str, str] = {"Host": parts.netloc, "Authorization": f"Bearer {token}"}

    async def get(self, path: str) -> Response:
        return await self.send("GET", path)

    async def post(self, path: str, **body: object) -> Response:
        return await self.send("POST", path, json.dumps(body).encode())

    async def delete(self, path: str) -> Response:
        return await self.send("DELETE", path)

    async def send(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str | None] | None = None
    ) -> Response:
        """Send a request, and return the response to it; the arguments are those of ``encode``."""
        return await self.send_bytes(self.encode(method, path, body, headers))

    def encode(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str | None] | None = None
    ) -> bytes:
        """Return the bytes of a request; a header whose value is None is left out."""
        given = {**self.headers, "Content-Length": str(len(body)), **(headers or {})}
        lines = [f"{name}: {value}" for name, value in given.items() if value is not None]
        head = "\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""])
        return head.encode("latin-1") + body

    async def send_bytes(self, data: bytes) -> Response:
        """Send these bytes and return the response to them."""
        async with self.connected() as (reader, writer):
            writer.write(data)
            return await read_response(reader)

    @contextlib.asynccontextmanager
    async def connected(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """A connection to the port."""
        reader, writer = await asyncio.open_connection(*self._address)
        try:
            yield reader, writer
        finally:
            writer.close()


async def read_response(reader: asyncio.StreamReader) -> Response:
    """Return the response that ends with its connection."""
    async with asyncio.timeout(WAIT_SECONDS):
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    return Response(int(head.split()[1]), json.loads(body))
