"""Sends as the Java client writes them, from a raw client over a socket to one broker process."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from bench.cluster_start import cpu_seconds
from bench.hot_path import one_message
from rewindmq.protocol.frame import PREFIX_BYTES
from rewindmq.protocol.remoting.process.speedups import PURE_VARIABLE

_LENGTH_BYTES: Final = 4
# Different frames; a send's opaque, queue and UNIQ_KEY repeat after so many.
_FRAMES: Final = 1_024


@contextmanager
def running_broker(*, is_pure: bool) -> Iterator[tuple[str, int, int]]:
    """Start a broker process and give its host, port and process id; the block's end kills it.

    Args:
        is_pure: without ``rewindmq-speedups``, installed or not.
    """
    environment = {**os.environ, PURE_VARIABLE: "1" if is_pure else "0"}
    with tempfile.TemporaryDirectory(prefix="rewindmq-bench-") as root:
        command = [sys.executable, "-m", "rewindmq", "broker", "-p", "0", "--root", root]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, text=True
        ) as broker:
            try:
                assert broker.stdout is not None
                ready = broker.stdout.readline()
                if not ready:
                    raise SystemExit("bench: the broker does not start")
                host, _, port = json.loads(ready)["address"].rpartition(":")
                yield host, int(port), broker.pid
            finally:
                broker.send_signal(signal.SIGKILL)


async def measure(
    host: str, port: int, pid: int, size: int, in_flight: int, total: int
) -> tuple[float, float]:
    """Send ``total`` messages of ``size`` bytes, ``in_flight`` at any time.

    Returns:
        Messages per second, and microseconds of the broker's processor time for each.
    """
    loop = asyncio.get_running_loop()
    _, sender = await loop.create_connection(lambda: _Sender(size), host, port)
    # The first one makes the topic.
    await sender.send(1, 1)
    before, started = cpu_seconds(pid), time.perf_counter()
    await sender.send(in_flight, total)
    seconds, spent = time.perf_counter() - started, cpu_seconds(pid) - before
    sender.close()
    return total / seconds, spent / total * 1e6


class _Sender(asyncio.Protocol):
    """Answers every response with the next send, until there are enough."""

    def __init__(self, size: int) -> None:
        self._frames = [one_message(size, number) for number in range(_FRAMES)]
        self._sent = self._total = self._answered = 0
        self._rest = b""
        self._done: asyncio.Future[None]
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def close(self) -> None:
        self._transport.abort()

    async def send(self, in_flight: int, total: int) -> None:
        """Send so many messages and wait for all responses.

        Raises:
            ConnectionError: the broker has closed the connection.
        """
        self._done = asyncio.get_running_loop().create_future()
        self._answered = self._sent = 0
        self._total = total
        self._send(in_flight)
        await self._done

    def _send(self, count: int) -> None:
        count = min(count, self._total - self._sent)
        first = self._sent % _FRAMES
        frames = self._frames[first : first + count]
        frames += self._frames[: count - len(frames)]
        self._sent += count
        if frames:
            self._transport.write(b"".join(frames))

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
            self._done.set_exception(ConnectionError("bench: the broker has closed the connection"))
