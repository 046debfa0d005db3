"""Decodes large registrations on a worker thread, so that the name server serves others meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import TypeVar

from rewindmq.protocol.remoting.runtime import Workers

T = TypeVar("T")


class RegistrationQueue:
    """Decodes one registration at a time; they take effect in order of arrival.

    RocketMQ decodes several at once, in the threads of its request pool. A broker with 25,000 topics
    registers with a body of 4 MB, every 30 s and after each change.
    """

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._turn = asyncio.Lock()
        self._thread = asyncio.Lock()
        self._waiting = 0

    @property
    def is_empty(self) -> bool:
        """Return True if no registration is being decoded or waits."""
        return not self._waiting

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait until earlier registrations have taken effect; later ones wait until the block's end."""
        self._waiting += 1
        try:
            async with self._turn:
                yield
        finally:
            self._waiting -= 1

    async def decode(self, function: Callable[[], T]) -> T:
        """Return the result of ``function``, which runs on a worker thread, alone.

        If the caller stops waiting, such as for a broker that has hung up, later registrations with few
        topics need not wait for the thread; those that need one do. Else brokers that hang up again and
        again would occupy many threads, which share the interpreter with the event loop.
        """
        await self._thread.acquire()
        decoding = asyncio.ensure_future(self._workers.run(function))
        decoding.add_done_callback(self._decoded)
        # Waiting can end without ending what it waits for.
        await asyncio.wait((decoding,))
        return decoding.result()

    def _decoded(self, decoding: asyncio.Future[T]) -> None:
        self._thread.release()
        if not decoding.cancelled():
            # Mark the error as seen: perhaps no caller waits for it any more.
            decoding.exception()
