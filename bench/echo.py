"""A raw uvloop echo of length-prefixed frames: the upper limit of what a protocol on top can reach.

Two clients use the same server. ``streamed`` answers each read with one write and keeps no state for a frame.
``awaited`` keeps a future and a coroutine for each frame in flight, as a client must if its caller awaits
each response.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import struct
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import cast

import uvloop

_LENGTH = struct.Struct(">I")


def split_frames(data: bytes) -> tuple[list[bytes], bytes]:
    """Return the complete frames in ``data``, and the bytes after them."""
    frames: list[bytes] = []
    position = 0
    end = len(data)
    while end - position >= _LENGTH.size:
        (length,) = _LENGTH.unpack_from(data, position)
        frame_end = position + _LENGTH.size + length
        if frame_end > end:
            break
        frames.append(data[position:frame_end])
        position = frame_end
    return frames, data[position:]


class _FrameProtocol(asyncio.Protocol):
    transport: asyncio.Transport

    def __init__(self) -> None:
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not inherit from asyncio's.
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        frames, self._rest = split_frames(self._rest + data if self._rest else data)
        if frames:
            self.frames_received(frames)

    def frames_received(self, frames: list[bytes]) -> None:
        raise NotImplementedError


class _EchoServer(_FrameProtocol):
    def frames_received(self, frames: list[bytes]) -> None:
        self.transport.write(b"".join(frames))


class _StreamedClient(_FrameProtocol):
    def __init__(self, frame: bytes, in_flight: int, total: int, done: asyncio.Future[None]) -> None:
        super().__init__()
        self._frame = frame
        self._unsent = total - in_flight
        self._missing = total
        self._in_flight = in_flight
        self._done = done

    def start(self) -> None:
        self.transport.write(self._frame * self._in_flight)

    def frames_received(self, frames: list[bytes]) -> None:
        self._missing -= len(frames)
        again = min(len(frames), self._unsent)
        if again:
            self._unsent -= again
            self.transport.write(self._frame * again)
        if not self._missing:
            self._done.set_result(None)


class _AwaitedClient(_FrameProtocol):
    def __init__(self) -> None:
        super().__init__()
        self._waiting: deque[asyncio.Future[bytes]] = deque()
        self._unwritten: list[bytes] = []
        self._loop = asyncio.get_running_loop()

    def request(self, frame: bytes) -> asyncio.Future[bytes]:
        answer: asyncio.Future[bytes] = self._loop.create_future()
        self._waiting.append(answer)
        if not self._unwritten:
            self._loop.call_soon(self._flush)
        self._unwritten.append(frame)
        return answer

    def _flush(self) -> None:
        self.transport.write(b"".join(self._unwritten))
        self._unwritten.clear()

    def frames_received(self, frames: list[bytes]) -> None:
        for frame in frames:
            self._waiting.popleft().set_result(frame)


def _serve(ready: Connection) -> None:
    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(_EchoServer, "127.0.0.1", 0)
        ready.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    uvloop.run(main())


@contextmanager
def echo_server() -> Iterator[tuple[int, int]]:
    """Run an echo server in its own process, and give its port and process id."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_serve, args=(sender,), daemon=True)
    process.start()
    try:
        port = int(receiver.recv())
        assert process.pid is not None
        yield port, process.pid
    finally:
        process.terminate()
        process.join()


async def streamed(port: int, size: int, in_flight: int, total: int) -> float:
    """Return frames per second of the stateless client; a frame has ``size`` bytes."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()
    frame = _frame(size)
    transport, client = await loop.create_connection(
        lambda: _StreamedClient(frame, in_flight, total, done), "127.0.0.1", port
    )
    started = time.perf_counter()
    client.start()
    await done
    elapsed = time.perf_counter() - started
    transport.close()
    return total / elapsed


async def awaited(port: int, size: int, in_flight: int, total: int) -> float:
    """Return frames per second with a future for each frame, awaited by ``in_flight`` coroutines."""
    loop = asyncio.get_running_loop()
    transport, client = await loop.create_connection(_AwaitedClient, "127.0.0.1", port)
    frame = _frame(size)

    async def caller(count: int) -> None:
        for _ in range(count):
            await client.request(frame)

    share = total // in_flight
    started = time.perf_counter()
    await asyncio.gather(*(caller(share) for _ in range(in_flight)))
    elapsed = time.perf_counter() - started
    transport.close()
    return share * in_flight / elapsed


def _frame(size: int) -> bytes:
    return _LENGTH.pack(size - _LENGTH.size) + bytes(size - _LENGTH.size)
