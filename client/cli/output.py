"""What ``produce`` and ``consume`` print: JSON lines for programs, progress for people."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from rewindmq.protocol.remoting.runtime import Cancellable, Runtime

if TYPE_CHECKING:
    import asyncio

    from rich.progress import Progress

# How long a line may lie in the buffer, and how often progress is reported; real seconds.
FLUSH_SECONDS: Final = 0.05
PROGRESS_SECONDS: Final = 1.0


def wall_ms() -> float:
    """ms since the epoch, with their fraction."""
    return time.time() * 1000


def route_log(*, is_silent: bool) -> None:
    """Whether failed route look-ups are logged; a command that ends on one says so itself, in one line."""
    logging.getLogger("rewindmq.client.core.route_table").setLevel(
        logging.CRITICAL if is_silent else logging.NOTSET
    )


class Report(Protocol):
    """Where a command tells how far it is."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def event(self, event: str, **details: object) -> None:
        """Something happened that programs want to know."""

    def progress(self, count: int) -> None:
        """So many messages until now."""

    def line(self, text: str) -> None:
        """Something for people to read."""


class JsonReport:
    """One JSON object per line, ``{"event": ..., "at": <wall ms>, ...}``; lines leave in bunches."""

    def __init__(self, counted: str) -> None:
        self._counted = counted
        self._lines: list[str] = []
        self._encode = json.JSONEncoder(separators=(",", ":"), default=str).encode

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.flush()

    def event(self, event: str, **details: object) -> None:
        self._lines.append(self._encode({"event": event, "at": wall_ms(), **details}))

    def progress(self, count: int) -> None:
        self.event("progress", **{self._counted: count})
        self.flush()

    def line(self, text: str) -> None:
        """Nothing: people are not reading."""

    def flush(self) -> None:
        """Write what has gathered."""
        if self._lines:
            lines, self._lines = self._lines, []
            sys.stdout.write("\n".join(lines) + "\n")
            sys.stdout.flush()


class PlainReport:
    """A line per second on standard error, only what was asked for on standard output."""

    def __init__(self, counted: str) -> None:
        self._counted = counted
        self._count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        sys.stdout.flush()

    def event(self, event: str, **details: object) -> None:
        """Nothing: no program is reading."""

    def progress(self, count: int) -> None:
        if count != self._count:
            self._count = count
            print(f"{self._counted} {count}", file=sys.stderr, flush=True)

    def line(self, text: str) -> None:
        print(text, flush=True)


class RichReport(PlainReport):
    """A progress bar."""

    def __init__(self, counted: str, total: int | None, bar: Progress) -> None:
        super().__init__(counted)
        self._bar = bar
        self._task = bar.add_task(counted, total=total)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def progress(self, count: int) -> None:
        self._bar.update(self._task, completed=count)

    def line(self, text: str) -> None:
        self._bar.console.print(text, markup=False, highlight=False)


def make_report(counted: str, total: int | None, *, as_json: bool) -> Report:
    """JSON lines when asked for, a bar where there are a terminal and rich, else plain lines.

    Args:
        counted: the word for what is counted, "sent" or "received".
        total: how many it will be, None when nobody knows.
    """
    if as_json:
        return JsonReport(counted)
    if sys.stdout.isatty():
        try:
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
        except ImportError:
            return PlainReport(counted)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        return RichReport(counted, total, Progress(*columns))
    return PlainReport(counted)


class Ticker:
    """Calls ``action`` every so many real seconds, until stopped; sets ``stopping`` when nobody reads."""

    def __init__(
        self, runtime: Runtime, seconds: float, action: Callable[[], Any], stopping: asyncio.Event
    ) -> None:
        self._timers = runtime.timers
        self._seconds = seconds
        self._action = action
        self._stopping = stopping
        self._timer: Cancellable = self._timers.call_timeout(seconds, self._tick)

    def stop(self) -> None:
        self._timer.cancel()

    def _tick(self) -> None:
        self._timer = self._timers.call_timeout(self._seconds, self._tick)
        try:
            self._action()
        except BrokenPipeError:
            self._stopping.set()
