"""Output of ``produce`` and ``consume``: JSON lines for programs, progress for people."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from rewindmq.protocol.remoting.runtime import Cancellable, Runtime
from rewindmq.protocol.text import escape_controls

if TYPE_CHECKING:
    import asyncio

    from rich.progress import Progress

# Longest time of a line in the buffer, and interval of progress reports; real seconds.
FLUSH_SECONDS: Final = 0.05
PROGRESS_SECONDS: Final = 1.0


def wall_ms() -> float:
    """Return the wall clock in ms since the epoch, with a fraction."""
    return time.time() * 1000


def route_log(*, is_silent: bool) -> None:
    """Silence the log of failed route look-ups, or restore it.

    A command that ends with such a failure prints the reason in one line, so the log would repeat it.
    """
    logging.getLogger("rewindmq.client.core.route_table").setLevel(
        logging.CRITICAL if is_silent else logging.NOTSET
    )


class CommandOutput(Protocol):
    """Output of a command: events, progress and lines."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def event(self, event: str, **details: object) -> None:
        """Report an event, for programs."""

    def progress(self, count: int) -> None:
        """Report the number of messages until now."""

    def line(self, text: str) -> None:
        """Print a text as one line, for people; control characters are escaped, also line feeds."""


class JsonReport:
    """Prints one JSON object per line, ``{"event": ..., "at": <wall ms>, ...}``, buffered until ``flush``."""

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
        """Do nothing: the line is for people."""

    def flush(self) -> None:
        """Write the buffered lines."""
        if self._lines:
            lines, self._lines = self._lines, []
            sys.stdout.write("\n".join(lines) + "\n")
            sys.stdout.flush()


class PlainReport:
    """Prints progress on standard error, and lines on standard output."""

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
        """Do nothing: the event is for programs."""

    def progress(self, count: int) -> None:
        if count != self._count:
            self._count = count
            print(f"{self._counted} {count}", file=sys.stderr, flush=True)

    def line(self, text: str) -> None:
        print(escape_controls(text), flush=True)


class RichReport(PlainReport):
    """Prints lines above a progress bar."""

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
        self._bar.console.print(escape_controls(text), markup=False, highlight=False)


def make_report(counted: str, total: int | None, *, as_json: bool) -> CommandOutput:
    """Return the report to use: JSON lines if asked for, a bar on a terminal with rich, else plain lines.

    Args:
        counted: "sent" or "received", the label of the count.
        total: the expected number of messages, None if it is unknown.
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
    """Calls ``action`` periodically until stopped, and sets ``stopping`` if the output was closed.

    Args:
        seconds: the interval, real seconds.
    """

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
