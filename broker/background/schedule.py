"""Timers for the broker's periodic tasks (docs/spec/broker.md B.17)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from rewindmq.protocol.remoting.runtime import Cancellable, Timers

_log = logging.getLogger(__name__)


class Schedule:
    """Tasks that repeat at a fixed delay until ``close``; a task that fails is logged and repeated."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._pending: dict[int, Cancellable] = {}
        self._count = 0

    def every(self, first: float, period: float, task: Callable[[], object]) -> None:
        """Run ``task`` after ``first`` and then every ``period`` protocol seconds."""
        self._count += 1
        self._set(self._count, first, period, task)

    def close(self) -> None:
        """Cancel all tasks."""
        for timer in self._pending.values():
            timer.cancel()
        self._pending.clear()

    def _set(self, number: int, delay: float, period: float, task: Callable[[], object]) -> None:
        self._pending[number] = self._timers.call_later(delay, self._run, number, period, task)

    def _run(self, number: int, period: float, task: Callable[[], object]) -> None:
        self._set(number, period, period, task)
        try:
            task()
        except Exception:
            _log.exception("%s failed", getattr(task, "__qualname__", task))


class BackgroundService(Protocol):
    """A service that begins when the broker can serve and closes before the store."""

    def begin(self, schedule: Schedule) -> None:
        """Register the periodic tasks (``schedule.every``); called once."""

    async def close(self) -> None:
        """Stop the running work and save unsaved state; called after the schedule has ended."""
