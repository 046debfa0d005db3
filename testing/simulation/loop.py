"""GuardedLoop: a virtual loop that refuses what cannot be simulated, and ends a test that never ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextvars import Context
from pathlib import Path
from types import FrameType
from typing import Any, Final, Never, TypeVar, TypeVarTuple, Unpack

from rewindmq.race.sim.loop import VirtualLoop
from rewindmq.testing.errors import KitError

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_MAX_TURNS: Final = 100_000
_SHOWN_TASKS: Final = 10
_NOT_APPLICATION: Final = ("rewindmq.", "asyncio.")
_ADVICE: Final = (
    "use the fixture rmq instead of @simulated, or replace that part of the application in the test;"
    " clients of RewindMQ need the arguments **rmq.client_options"
)


def _refuse(what: str) -> Never:
    raise KitError(f"the test uses {what}, which cannot be simulated: {_ADVICE}")


def _refusing(what: str) -> Any:
    """Return a method that refuses every call."""

    def refuse(self: GuardedLoop, *arguments: Any, **options: Any) -> Never:
        _refuse(what)

    return refuse


class GuardedLoop(VirtualLoop):
    """Event loop of one simulated test.

    Args:
        limit: virtual seconds after which a test that has not ended fails.
    """

    def __init__(self, limit: float) -> None:
        super().__init__()
        self._limit = limit
        self._turns = 0
        self._thread = threading.get_ident()

    # A test that never ends.

    def _run_once(self) -> None:
        self._turns += 1
        if self._turns > _MAX_TURNS:
            self._turns = 0
            raise KitError(
                f"virtual time stands still at {self.time():.3f} s: after {_MAX_TURNS} turns of the event"
                f" loop, tasks still run without a wait; use asyncio.sleep with a time greater than 0."
                f" {self._waiting()}"
            )
        super()._run_once()

    def _go_to_next_moment(self) -> float:
        self._turns = 0
        moment = self._next_moment()
        if moment is not None and moment > self._limit:
            limit, self._limit = self._limit, float("inf")
            raise KitError(
                f"the test has not ended after {limit:g} virtual seconds, and nothing is left to happen"
                f" except waits of the test and periodic work of clients and servers."
                f" If the test is that long, use @simulated(limit=...). {self._waiting()}"
            )
        return super()._go_to_next_moment()

    def _describe_deadlock(self) -> str:
        return (
            f"nothing is left to happen at {self.time():.3f} s: no timer is set, and no message is under way."
            f" {self._waiting()}"
        )

    def _waiting(self) -> str:
        """Return the tasks of the application and where each waits."""
        places = sorted(text for task in asyncio.all_tasks(self) if (text := _place(task)))
        more = f"; and {len(places) - _SHOWN_TASKS} more" if len(places) > _SHOWN_TASKS else ""
        return f"Waiting: {'; '.join(places[:_SHOWN_TASKS]) or 'no task of the test'}{more}"

    # What cannot be simulated.

    def call_soon_threadsafe(
        self,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.Handle:
        if threading.get_ident() != self._thread:
            _refuse("a call from another thread")
        return super().call_soon_threadsafe(callback, *args, context=context)

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> Never:
        # asyncio.to_thread passes partial(context.run, function, ...).
        function = next(iter(getattr(func, "args", ())), func)
        _refuse(f"a thread, for {getattr(function, '__qualname__', function)!s}")

    create_connection = _refusing("a real connection")
    create_unix_connection = _refusing("a real connection")
    sock_connect = _refusing("a real connection")
    create_server = _refusing("a real server socket")
    create_unix_server = _refusing("a real server socket")
    create_datagram_endpoint = _refusing("a real datagram socket")
    add_reader = _refusing("a real socket")
    add_writer = _refusing("a real socket")
    getaddrinfo = _refusing("the resolution of a host name")
    subprocess_exec = _refusing("a process")
    subprocess_shell = _refusing("a process")


def _place(task: asyncio.Task[Any]) -> str:
    """Return a task's name and the innermost line of the application in it; "" for a task without one."""
    frames = [frame for frame in _frames(task.get_coro()) if _is_application(frame)]
    if not frames:
        return ""
    code = frames[-1].f_code
    return (
        f"task {task.get_name()} in {code.co_qualname} ({Path(code.co_filename).name}:{frames[-1].f_lineno})"
    )


def _frames(awaited: Any) -> Iterator[FrameType]:
    """Return the frames of a suspended coroutine, the outermost first."""
    while awaited is not None:
        frame = getattr(awaited, "cr_frame", None) or getattr(awaited, "gi_frame", None)
        if frame is not None:
            yield frame
        awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "gi_yieldfrom", None)


def _is_application(frame: FrameType) -> bool:
    name = f"{frame.f_globals.get('__name__', '')}."
    return not name.startswith(_NOT_APPLICATION)
