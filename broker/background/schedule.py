"""Timers for the broker's periodic tasks (docs/spec/broker.md B.17)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from typing import Protocol

from rewindmq.protocol.remoting.runtime import Cancellable, Timers

_log = logging.getLogger(__name__)


class Schedule:
    """Tasks that repeat at a fixed delay until ``close``; a task that fails is logged and repeated.

    A task may return a generator. Then the rest of its work is done in slices, one in each turn of the event
    loop; while they last, the task is not called again.
    """

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._pending: dict[int, Cancellable] = {}
        # The next slices of tasks that returned a generator.
        self._slices: dict[int, Cancellable] = {}
        self._tasks: dict[int, tuple[float, Callable[[], object]]] = {}
        self._looks: list[Callable[[int], None]] = []
        self._count = 0

    def every(self, first: float, period: float, task: Callable[[], object]) -> None:
        """Run ``task`` after ``first`` and then every ``period`` protocol seconds."""
        self._count += 1
        self._tasks[self._count] = (period, task)
        self._set(self._count, first, period, task)

    def when_clock_changes(self, look: Callable[[int], None]) -> None:
        """Call ``look`` whenever a test has moved the wall clock: for a service with timers of its own.

        Its argument: by how many ms the clock was moved ahead, or back if negative.
        """
        self._looks.append(look)

    def clock_changed(self, moved_ms: int) -> None:
        """Run every task in this turn or the next: the wall clock was moved, and something may be due."""
        for number, pending in tuple(self._pending.items()):
            pending.cancel()
            self._set(number, 0, *self._tasks[number])
        for look in self._looks:
            look(moved_ms)

    def close(self) -> None:
        """Cancel all tasks."""
        for timers in (self._pending, self._slices):
            for timer in timers.values():
                timer.cancel()
            timers.clear()

    def _set(self, number: int, delay: float, period: float, task: Callable[[], object]) -> None:
        self._pending[number] = self._timers.call_later(delay, self._run, number, period, task)

    def _run(self, number: int, period: float, task: Callable[[], object]) -> None:
        self._set(number, period, period, task)
        if number in self._slices:
            return
        try:
            work = task()
        except Exception:
            _log.exception("%s failed", _name(task))
            return
        if isinstance(work, Generator):
            self._run_slice(number, work, task)

    def _run_slice(
        self, number: int, work: Generator[object, None, object], task: Callable[[], object]
    ) -> None:
        self._slices.pop(number, None)
        try:
            next(work)
        except StopIteration:
            return
        except Exception:
            _log.exception("%s failed", _name(task))
            return
        self._slices[number] = self._timers.call_later(0, self._run_slice, number, work, task)


def _name(task: Callable[[], object]) -> str:
    return getattr(task, "__qualname__", None) or repr(task)


class BackgroundService(Protocol):
    """A service that begins when the broker can serve and closes before the store."""

    def begin(self, schedule: Schedule) -> None:
        """Register the periodic tasks (``schedule.every``); called once."""

    async def close(self) -> None:
        """Stop the running work and save unsaved state; called after the schedule has ended."""
