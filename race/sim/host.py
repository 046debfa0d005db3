"""Hosts: whose code is running, and that of killed ones never again."""

from __future__ import annotations

import asyncio
from contextvars import Context, ContextVar, copy_context
from typing import Any, Final

from rewindmq.race.errors import RaceError

_MAX_AWAITS_WHILE_CLOSING: Final = 100


class HostKilledError(RaceError):
    """What was awaited ran on a host that was killed."""


class Incarnation:
    """One life of a host, from its first runtime to its being killed.

    Attributes:
        context: what every callback and task of this life runs in.
        is_alive: False from the moment it is killed; nothing of it runs after the current step.
        tasks: what it started, in order; those that ended are let go of now and then.
        awaited: what others wait for.
    """

    def __init__(self, host: str) -> None:
        self.host = host
        self.is_alive = True
        self.tasks: dict[asyncio.Task[Any], None] = {}
        self.awaited: dict[asyncio.Future[Any], None] = {}
        self._swept = 0
        self.context: Context = copy_context()
        self.context.run(_CURRENT.set, self)

    def add_task(self, task: asyncio.Task[Any]) -> None:
        """Remember a task that was just made."""
        self.tasks[task] = None
        if len(self.tasks) > 2 * self._swept + 64:
            self.tasks = {known: None for known in self.tasks if not known.done()}
            self._swept = len(self.tasks)

    def die(self) -> None:
        """Stop for good. Whoever waits for one of its tasks gets ``HostKilledError``."""
        self.is_alive = False
        for task in self.tasks:
            # Or the loop would wait for it in the end, and complain when it is thrown away.
            asyncio.tasks._unregister_task(task)
            task._log_destroy_pending = False  # type: ignore[attr-defined]
        for future in self.awaited:
            if not future.done():
                future.set_exception(HostKilledError(f"host {self.host} was killed"))
                # Nobody has to look.
                future.exception()

    def bury(self) -> None:
        """Close what died half-way; called when nothing runs any more.

        ``finally`` blocks do run then, but nothing that they start does.
        """
        for task in self.tasks:
            if not task.done():
                self.context.run(_close, task.get_coro())
        self.tasks.clear()


_CURRENT: Final[ContextVar[Incarnation | None]] = ContextVar("host", default=None)


def current_incarnation() -> Incarnation | None:
    """Whose code is running; None for the world's own."""
    return _CURRENT.get()


def incarnation_of(context: Context) -> Incarnation | None:
    """Whose code would run in this context."""
    return context.get(_CURRENT)


def _close(coroutine: Any) -> None:
    for _ in range(_MAX_AWAITS_WHILE_CLOSING):
        try:
            coroutine.close()
        except RuntimeError:
            # It awaits something while it ends; on to the next of its finally blocks.
            continue
        except Exception:
            return
        return
