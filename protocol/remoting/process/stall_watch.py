"""Watches the event loop of a server process: times its timers and checks that they run on time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from rewindmq.protocol.remoting.runtime import Cancellable, Runtime, Timers
from rewindmq.protocol.remoting.stalls.record import Stalls

# Real seconds between two checks: a stall that begins after one and ends before the next stays unseen, unless
# it is a request, a timer or a close.
CHECK_SECONDS: Final = 0.1


@contextmanager
def watch_stalls(runtime: Runtime) -> Iterator[Runtime]:
    """Return a runtime whose requests, timers and closes are timed, until the block ends.

    Only for real processes: the check's own timer would add moments to virtual time.
    """
    clock = runtime.clock
    stalls = Stalls(clock.monotonic, clock.now_ms, clock.scale)
    check = _LatenessCheck(runtime.timers, stalls, clock.scale)
    try:
        yield replace(runtime, timers=_TimedTimers(runtime.timers, stalls), stalls=stalls)
    finally:
        check.close()


class _TimedTimers:
    """``Timers`` that record how long each callback holds the loop."""

    def __init__(self, timers: Timers, stalls: Stalls) -> None:
        self._timers = timers
        self._stalls = stalls

    def call_later(self, seconds: float, callback: Callable[..., object], *args: Any) -> Cancellable:
        return self._timers.call_later(seconds, self._run, callback, args)

    def call_timeout(self, seconds: float, callback: Callable[..., object], *args: Any) -> Cancellable:
        return self._timers.call_timeout(seconds, self._run, callback, args)

    async def sleep(self, seconds: float) -> None:
        await self._timers.sleep(seconds)

    def _run(self, callback: Callable[..., object], args: tuple[Any, ...]) -> None:
        began = self._stalls.now()
        try:
            callback(*args)
        finally:
            # A schedule's timer gets its task as an argument, which says more than the timer's own name.
            self._stalls.passed(began, next((arg for arg in args if callable(arg)), callback))


class _LatenessCheck:
    """A timer that measures its own delay, and so the holds that no other place times."""

    def __init__(self, timers: Timers, stalls: Stalls, scale: float) -> None:
        self._timers = timers
        self._stalls = stalls
        self._period = CHECK_SECONDS / scale
        self._set()

    def close(self) -> None:
        self._timer.cancel()

    def _set(self) -> None:
        self._set_at = self._stalls.now()
        self._timer = self._timers.call_timeout(CHECK_SECONDS, self._check)

    def _check(self) -> None:
        self._stalls.late(self._stalls.now() - self._set_at - self._period)
        self._stalls.log()
        self._set()
