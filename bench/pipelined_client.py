"""PipelinedClient: sends prepared frames over one connection, some of them in flight."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from typing import Any, Final

from rewindmq.protocol.frame import PREFIX_BYTES

_LENGTH_BYTES: Final = 4


class PipelinedClient(asyncio.Protocol):
    """Answers every response with the next frame, until there are enough.

    Args:
        frames: sent one after the other, again and again.
    """

    def __init__(self, frames: Sequence[bytes]) -> None:
        self._frames = itertools.cycle(frames)
        self._sent = self._total = self._answered = 0
        self._rest = b""
        self._done: asyncio.Future[None]
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def close(self) -> None:
        self._transport.abort()

    async def send(self, in_flight: int, total: int) -> None:
        """Send so many frames and wait for all responses.

        Raises:
            ConnectionError: the server has closed the connection.
        """
        self._done = asyncio.get_running_loop().create_future()
        self._answered = self._sent = 0
        self._total = total
        self._send(in_flight)
        await self._done

    def _send(self, count: int) -> None:
        count = min(count, self._total - self._sent)
        self._sent += count
        if count:
            self._transport.write(b"".join(itertools.islice(self._frames, count)))

    def data_received(self, data: bytes) -> None:
        data = self._rest + data
        position = count = 0
        while len(data) - position >= PREFIX_BYTES:
            end = position + _LENGTH_BYTES + int.from_bytes(data[position : position + _LENGTH_BYTES], "big")
            if end > len(data):
                break
            position = end
            count += 1
        self._rest = data[position:]
        self._answered += count
        self._send(count)
        if self._answered == self._total:
            self._done.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._done.done():
            self._done.set_exception(ConnectionError("bench: the server has closed the connection"))
