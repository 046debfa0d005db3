"""Repeats an action at a fixed rate."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.protocol.remoting.tasks import end_tasks

_log = logging.getLogger(__name__)


class PeriodicTask:
    """Runs an action after ``first`` seconds and then every ``period`` seconds.

    A run that takes longer than the period delays the next run. Runs never overlap, and missed runs are not
    made up for. An exception is logged, and the next run follows.
    """

    def __init__(
        self, runtime: Runtime, first: float, period: float, action: Callable[[], Awaitable[object]]
    ) -> None:
        self._runtime = runtime
        self._period = period
        self._action = action
        self._due = runtime.clock.monotonic() + first
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Cancel the task and wait until it has ended."""
        await end_tasks((self._task,))

    def cancel(self) -> None:
        """Cancel the task without waiting."""
        self._task.cancel()

    async def _run(self) -> None:
        clock, timers = self._runtime.clock, self._runtime.timers
        while True:
            await timers.sleep(max(0.0, self._due - clock.monotonic()))
            try:
                await self._action()
            except Exception:
                _log.exception("a periodic task failed")
            self._due = max(self._due + self._period, clock.monotonic())
