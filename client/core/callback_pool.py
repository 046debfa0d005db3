"""Slots for the callbacks and broker requests that RocketMQ's client runs on a few threads.

Specification: docs/spec/client.md C.4.

RewindMQ starts no threads for them; it counts slots instead. A callback that does not wait takes no slot.
A reset holds a slot for its whole duration. While all slots are held, callbacks wait in order of arrival.
If resets hold all slots, pull responses that arrive meanwhile are handled only after one of these resets has
ended (docs/spec/races.md E.5). Source: 4.9.4 ``NettyRemotingClient``.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager


class CallbackPool:
    """A bounded number of slots, granted in order of request.

    Args:
        slots: how many may be held at the same time, at least 1.
    """

    def __init__(self, slots: int) -> None:
        self._free = slots
        self._waiting: deque[Callable[[], None]] = deque()

    @property
    def is_exhausted(self) -> bool:
        """True if every slot is held, so that callbacks wait."""
        return not self._free

    def run(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` now, or in its turn once a slot is free."""
        if self._free:
            callback()
        else:
            self._waiting.append(callback)

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait for a slot and hold it."""
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
