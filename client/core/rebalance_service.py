"""Schedules the rebalances of a client instance (docs/spec/client.md C.3, C.5)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.protocol.remoting.tasks import end_tasks

WAIT_SECONDS = 20.0
# Java compares whole milliseconds; finer differences are rounding errors.
_MILLISECOND = 0.001

_log = logging.getLogger(__name__)


class RebalanceService:
    """Rebalances every 20 s, and at once when woken.

    With ``min_interval`` (5.3), rebalances are at least that far apart, and one that reports "not balanced"
    is repeated after it. A suspended consumer counts as not balanced.

    Args:
        rebalance: rebalances all consumers once; returns True if everything is balanced.
    """

    def __init__(
        self, runtime: Runtime, min_interval: float | None, rebalance: Callable[[], Awaitable[bool]]
    ) -> None:
        self._runtime = runtime
        self._min_interval = min_interval
        self._rebalance = rebalance
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start; the first rebalance comes when woken, or after 20 s."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    def wake(self) -> None:
        """Rebalance now instead of at the next tick."""
        self._woken.set()

    async def stop(self) -> None:
        """Cancel the task and wait until it has ended."""
        if self._task is not None:
            await end_tasks((self._task,))

    def cancel(self) -> None:
        """Cancel the task without waiting."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        now = self._runtime.clock.monotonic
        gap = self._min_interval or 0.0
        last = now() - gap
        wait = WAIT_SECONDS
        while True:
            await self._wait(wait)
            early = gap - (now() - last)
            if early >= _MILLISECOND:
                wait = early
                continue
            balanced = await self._run_once()
            last = now()
            wait = WAIT_SECONDS if balanced or self._min_interval is None else gap

    async def _run_once(self) -> bool:
        try:
            return await self._rebalance()
        except Exception:
            _log.exception("rebalance failed")
            return False

    async def _wait(self, seconds: float) -> None:
        timer = self._runtime.timers.call_later(seconds, self._woken.set)
        try:
            await self._woken.wait()
        finally:
            timer.cancel()
            self._woken.clear()
