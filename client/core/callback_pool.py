"""The few threads of RocketMQ's client that run callbacks and requests from brokers.

Specification: docs/spec/client.md C.4.

There are no threads here, only as many slots. A callback that does not wait takes none; a reset holds one
for its whole duration, and when all are held, callbacks wait in the order they came: that is how pulls
answered during a reset come to be handled after it (docs/spec/races.md E.5). Source: 4.9.4
``NettyRemotingClient``.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager


class CallbackPool:
    """Args:
    slots: how many may be held at the same time, at least 1.
    """

    def __init__(self, slots: int) -> None:
        self._free = slots
        self._waiting: deque[Callable[[], None]] = deque()

    @property
    def is_exhausted(self) -> bool:
        """Every slot is held: callbacks have to wait."""
        return not self._free

    def run(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` now, or in its turn when a slot is free again."""
        if self._free:
            callback()
        else:
            self._waiting.append(callback)

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Hold a slot, after waiting for one."""
        await self._take()
        try:
            yield
        finally:
            self._give_back()

    async def _take(self) -> None:
        if self._free:
            self._free -= 1
            return
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def grant() -> None:
            if not granted.done():
                self._free -= 1
                granted.set_result(None)

        self._waiting.append(grant)
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():
                self._give_back()
            raise

    def _give_back(self) -> None:
        self._free += 1
        while self._waiting and self._free:
            self._waiting.popleft()()
