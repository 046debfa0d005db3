"""An asyncio event loop with virtual time, which jumps to the next timer when nothing is ready."""

from __future__ import annotations

import asyncio
import heapq
import math
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Sequence
from concurrent.futures import Executor
from contextvars import Context, copy_context
from typing import Any, Never, TypeVar, TypeVarTuple, Unpack

from rewindmq.protocol.errors import RewindMQError
from rewindmq.race.sim.host import CURRENT, Incarnation, current_incarnation, incarnation_of

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class DeadlockError(RewindMQError):
    """Nothing is ready, no timer is set, and the main coroutine is not finished."""


class VirtualLoop(asyncio.BaseEventLoop):
    """Runs callbacks in asyncio's order, without real waiting.

    Timers due at the same moment run in the order they were set. Callbacks and timers of a killed host do not
    run; those of a paused host wait for ``resume``. There are no threads. Sockets, signals and subprocesses
    raise the base class's NotImplementedError.

    Attributes:
        now: virtual seconds since the loop was made.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self._set_count = 0
        self._ready: deque[asyncio.Handle]
        self._closed: bool
        # Time, sequence number, timer.
        self._timers: list[tuple[float, int, VirtualTimer]] = []
        # The base class closes this attribute.
        self._selector = None

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self.now

    @property
    def next_change(self) -> float:
        """Virtual time at which the next callback runs: now if one is ready, infinity if no timer is set."""
        if self._ready:
            return self.now
        moment = self._next_moment()
        return math.inf if moment is None else moment

    def call_soon(
        self,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.Handle:
        """Make a callback ready. asyncio's checks of debug mode would take as long as most callbacks."""
        if self._closed:
            self._check_closed()  # type: ignore[attr-defined]
        handle = _VirtualHandle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_later(
        self,
        delay: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Set a timer that is due in ``delay`` virtual seconds."""
        return self.call_at(self.now + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Set a timer; timers of the same moment run in the order they were set."""
        if self._closed:
            self._check_closed()  # type: ignore[attr-defined]
        timer = VirtualTimer(when, callback, args, self, context)
        if when <= self.now:
            self._ready.append(timer)
        else:
            self._set_count += 1
            heapq.heappush(self._timers, (when, self._set_count, timer))
        return timer

    def create_task(
        self,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        *,
        name: object = None,
        context: Context | None = None,
    ) -> asyncio.Task[T]:
        """Create a task that belongs to the host whose code creates it."""
        task: asyncio.Task[T] = super().create_task(coro, name=name, context=context)
        owner = current_incarnation() if context is None else incarnation_of(context)
        if owner is not None:
            owner.add_task(task)
        return task

    def _run_once(self) -> None:
        """Run everything that is ready; if nothing is, first have ``_idle`` make something ready."""
        ready = self._ready
        if not ready:
            self._idle()
        run, take = self._run_handle, ready.popleft
        for _ in range(len(ready)):
            # Any: the type has no such attributes. Calls for them would take as long as most callbacks.
            handle: Any = take()
            if handle._cancelled:
                continue
            owner = handle._context.get(CURRENT)
            if owner is None or (owner.is_alive and owner.held is None):
                run(handle)
            elif owner.held is not None:
                owner.held.append(handle)

    def resume(self, owner: Incarnation) -> None:
        """Make ready what a paused host has not run, in its order."""
        held, owner.held = owner.held, None
        self._ready.extend(held or ())

    def _run_handle(self, handle: asyncio.Handle) -> None:
        """Run one callback; a subclass may measure it."""
        handle._run()

    def _idle(self) -> None:
        """Move the clock to the next timer and make the timers of that moment ready.

        Raises:
            DeadlockError: no timer is set.
        """
        moment = self._go_to_next_moment()
        timers = self._timers
        while timers and timers[0][0] == moment:
            self._ready.append(heapq.heappop(timers)[2])

    def _go_to_next_moment(self) -> float:
        moment = self._next_moment()
        if moment is None:
            raise DeadlockError(self._describe_deadlock())
        self.now = moment
        return moment

    def _next_moment(self) -> float | None:
        """Return the time of the next timer that is neither cancelled nor of a killed host."""
        timers = self._timers
        while timers:
            moment, _, timer = timers[0]
            if timer.counts():
                return moment
            heapq.heappop(timers)
        return None

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> Never:
        """Raise RuntimeError: the timing of threads is not repeatable. Use the runtime's workers."""
        raise RuntimeError("there are no threads under virtual time; use Runtime.workers")

    def _write_to_self(self) -> None:
        """Do nothing: this loop never waits, so no thread has to wake it."""

    def _describe_deadlock(self) -> str:
        tasks = sorted(asyncio.all_tasks(self), key=lambda task: task.get_name())
        waiting = "; ".join(f"{task.get_name()} in {_where(task)}" for task in tasks)
        return f"deadlock at {self.now:.3f} s: nothing ready, no timer set; waiting: {waiting}"


class _VirtualHandle(asyncio.Handle):
    """asyncio's handle, made without the question whether the loop is in debug mode."""

    __slots__ = ()
    _callback: Callable[..., object] | None
    _cancelled: bool
    _context: Context
    _loop: asyncio.AbstractEventLoop
    _repr: str | None
    _source_traceback: None

    def __init__(
        self,
        callback: Callable[..., object],
        args: Sequence[Any],
        loop: asyncio.AbstractEventLoop,
        context: Context | None,
    ) -> None:
        # What ``asyncio.Handle.__init__`` sets.
        self._context = copy_context() if context is None else context
        self._loop = loop
        self._callback = callback
        self._args = args
        self._cancelled = False
        self._repr = None
        self._source_traceback = None


class VirtualTimer(asyncio.TimerHandle):
    """asyncio's timer handle, made likewise, with its context as a public attribute."""

    __slots__ = ()
    _callback: Callable[..., object] | None
    _cancelled: bool
    _context: Context
    _loop: asyncio.AbstractEventLoop
    _repr: str | None
    _scheduled: bool
    _source_traceback: None
    _when: float

    def __init__(
        self,
        when: float,
        callback: Callable[..., object],
        args: Sequence[Any],
        loop: asyncio.AbstractEventLoop,
        context: Context | None,
    ) -> None:
        # What ``asyncio.TimerHandle.__init__`` sets.
        self._context = copy_context() if context is None else context
        self._loop = loop
        self._callback = callback
        self._args = args
        self._cancelled = False
        self._repr = None
        self._source_traceback = None
        self._when = when
        self._scheduled = False

    @property
    def context(self) -> Context:
        """Context in which the callback runs; names its host."""
        return self._context

    def counts(self) -> bool:
        """Return True if the timer is neither cancelled nor of a killed host."""
        if self._cancelled:
            return False
        owner = self._context.get(CURRENT)
        return owner is None or owner.is_alive


def _where(task: asyncio.Task[Any]) -> str:
    frames = task.get_stack()
    if not frames:
        return repr(task.get_coro())
    frame = frames[-1]
    return f"{frame.f_code.co_qualname} line {frame.f_lineno}"
