"""Marks tasks and callbacks with the host that they belong to, so that a killed host runs none."""

from __future__ import annotations

import asyncio
from collections import deque
from contextvars import Context, ContextVar, copy_context
from typing import Any, Final

from rewindmq.race.errors import RaceError

_MAX_AWAITS_WHILE_CLOSING: Final = 100


class HostKilledError(RaceError):
    """The awaited work ran on a host that was killed."""


class Incarnation:
    """One life of a host, from its first runtime until it is killed.

    Attributes:
        context: context of every callback and task of this life.
        is_alive: False once the host is killed; none of its code runs after the current step.
        tasks: its tasks, in the order of their start; finished ones are removed from time to time.
        awaited: futures of its work that other hosts, or the world's own code, await.
        held: callbacks that a paused host has not run yet; None while the host runs.
    """

    def __init__(self, host: str) -> None:
        self.host = host
        self.is_alive = True
        self.held: deque[asyncio.Handle] | None = None
        self.tasks: dict[asyncio.Task[Any], None] = {}
        self.awaited: dict[asyncio.Future[Any], None] = {}
        self._swept = 0
        self.context: Context = copy_context()
        self.context.run(CURRENT.set, self)

    def add_task(self, task: asyncio.Task[Any]) -> None:
        """Add a task of this host."""
        self.tasks[task] = None
        if len(self.tasks) > 2 * self._swept + 64:
            self.tasks = {known: None for known in self.tasks if not known.done()}
            self._swept = len(self.tasks)

    def die(self) -> None:
        """Stop for good; raise ``HostKilledError`` in everything that awaits this host's work."""
        self.is_alive = False
        for task in self.tasks:
            # Otherwise the loop would wait for the task when it closes, and log that it was destroyed.
            asyncio.tasks._unregister_task(task)
            task._log_destroy_pending = False  # type: ignore[attr-defined]
        for future in self.awaited:
            if not future.done():
                future.set_exception(HostKilledError(f"host {self.host} was killed"))
                # Marks the exception as retrieved, so that asyncio does not log it.
                future.exception()

    def close_tasks(self) -> None:
        """Close the unfinished coroutines of a killed host, after the loop has stopped.

        Their ``finally`` blocks run, but no task or timer that these blocks start.
        """
        for task in self.tasks:
            if not task.done():
                self.context.run(_close, task.get_coro())
        self.tasks.clear()


# The host whose code runs in a context; None for the world's own code. The loop reads it for every callback.
CURRENT: Final[ContextVar[Incarnation | None]] = ContextVar("host", default=None)


def current_incarnation() -> Incarnation | None:
    """Return the host whose code is running; None for the world's own code."""
    return CURRENT.get()


def incarnation_of(context: Context) -> Incarnation | None:
    """Return the host whose code runs in this context; None for the world's own code."""
    return context.get(CURRENT)


def _close(coroutine: Any) -> None:
    for _ in range(_MAX_AWAITS_WHILE_CLOSING):
        try:
            coroutine.close()
        except RuntimeError:
            # A finally block awaits something; close again to run the next one.
            continue
        except Exception:
            return
        return
