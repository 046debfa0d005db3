"""Oneway permits, which limit the unsent oneway requests of one endpoint."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from rewindmq.protocol.errors import TooManyRequestsError
from rewindmq.protocol.remoting.runtime import Timers

# NettySystemConfig.com.rocketmq.remoting.clientOnewaySemaphoreValue.
ONEWAY_PERMITS: Final = 65_535


class OnewayPermits:
    """A first-come, first-served counting semaphore with a time limit on the wait."""

    __slots__ = ("_free", "_timers", "_waiters")

    def __init__(self, timers: Timers, count: int = ONEWAY_PERMITS) -> None:
        self._timers = timers
        self._free = count
        self._waiters: deque[asyncio.Future[None]] = deque()

    @property
    def free(self) -> int:
        """The number of free permits."""
        return self._free

    async def acquire(self, timeout: float) -> None:
        """Take a permit, waiting at most ``timeout`` seconds for one.

        Raises:
            TooManyRequestsError: no permit became free in time.
        """
        if self._free > 0 and not self._waiters:
            self._free -= 1
            return
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        timer = self._timers.call_timeout(timeout, expire, waiter, f"no oneway permit within {timeout:g} s")
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self.release(1)
            raise
        finally:
            timer.cancel()

    def release(self, count: int) -> None:
        """Release ``count`` permits; waiting callers get them first."""
        while count and self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                count -= 1
        self._free += count


def expire(waiter: asyncio.Future[None], text: str) -> None:
    """Fail a wait with ``TooManyRequestsError``; a timer's callback."""
    if not waiter.done():
        waiter.set_exception(TooManyRequestsError(text))
