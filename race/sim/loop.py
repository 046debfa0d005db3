"""An asyncio event loop whose time is a number: it jumps to the next timer when nothing is ready."""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Executor
from contextvars import Context
from typing import Any, Never, TypeVar, TypeVarTuple, Unpack

from rewindmq.protocol.errors import RewindMQError
from rewindmq.race.sim.host import current_incarnation, incarnation_of

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class DeadlockError(RewindMQError):
    """Nothing is ready, no timer is set, and the main coroutine is not finished."""


class VirtualLoop(asyncio.BaseEventLoop):
    """Runs callbacks in the order asyncio does; waits for nothing.

    Timers due at the same moment run in the order they were set. What belongs to a killed host does not run.
    There are no sockets, signals or subprocesses, whoever asks for one gets the base class's
    NotImplementedError; and no threads.
    """

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        self._set_count = 0
        self._scheduled: list[_OrderedTimer]
        self._ready: deque[asyncio.Handle]
        # What the base class calls to wait for input; here it is where time passes.
        self._selector = self

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._now

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """As asyncio's, but with a defined order among timers of the same moment."""
        self._check_closed()  # type: ignore[attr-defined]
        self._set_count += 1
        timer = _OrderedTimer(self._set_count, when, callback, args, self, context)
        heapq.heappush(self._scheduled, timer)
        timer._scheduled = True  # lets the base class count those cancelled
        return timer

    def create_task(
        self,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        *,
        name: object = None,
        context: Context | None = None,
    ) -> asyncio.Task[T]:
        """As asyncio's; the task belongs to the host it is made on."""
        task: asyncio.Task[T] = super().create_task(coro, name=name, context=context)
        owner = current_incarnation() if context is None else incarnation_of(context)
        if owner is not None:
            owner.add_task(task)
        return task

    def _call_soon(
        self, callback: Callable[..., object], args: tuple[Any, ...], context: Context | None
    ) -> asyncio.Handle:
        """What the base class puts every callback in line with, but for timers."""
        handle = _HostHandle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def select(self, timeout: float | None) -> list[Never]:
        """Let time pass until the next timer.

        Raises:
            DeadlockError: there is none.
        """
        if timeout is None:
            raise DeadlockError(self._describe_deadlock())
        if timeout > 0:
            self._now = max(self._now, self._scheduled[0].when())
        return []

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> Never:
        """No threads: their timing would not repeat. Use the runtime's workers."""
        raise RuntimeError("there are no threads under virtual time; use Runtime.workers")

    def _process_events(self, event_list: list[Never]) -> None:
        """Called with what ``select`` returned."""

    def _write_to_self(self) -> None:
        """Called to wake a loop waiting in another thread; this one never waits."""

    def _describe_deadlock(self) -> str:
        tasks = sorted(asyncio.all_tasks(self), key=lambda task: task.get_name())
        waiting = "; ".join(f"{task.get_name()} in {_where(task)}" for task in tasks)
        return f"deadlock at {self._now:.3f} s: nothing ready, no timer set; waiting: {waiting}"


class _HostHandle(asyncio.Handle):
    """A callback that does not run once its host was killed."""

    __slots__ = ()
    _context: Context

    def _run(self) -> None:
        owner = incarnation_of(self._context)
        if owner is None or owner.is_alive:
            super()._run()


class _OrderedTimer(asyncio.TimerHandle):
    """A timer that knows when it was set, and does not fire once its host was killed."""

    __slots__ = ("_number",)
    _context: Context
    _scheduled: bool
    _when: float

    def __init__(
        self,
        number: int,
        when: float,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        loop: asyncio.AbstractEventLoop,
        context: Context | None,
    ) -> None:
        super().__init__(when, callback, args, loop, context)
        self._number = number

    def _run(self) -> None:
        owner = incarnation_of(self._context)
        if owner is None or owner.is_alive:
            super()._run()

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, _OrderedTimer):
            return NotImplemented
        return (self._when, self._number) < (other._when, other._number)


def _where(task: asyncio.Task[Any]) -> str:
    frames = task.get_stack()
    if not frames:
        return repr(task.get_coro())
    frame = frames[-1]
    return f"{frame.f_code.co_qualname} line {frame.f_lineno}"
