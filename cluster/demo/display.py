"""The demo's output: progress while it runs, and tables at its end."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from rewindmq.cluster.demo.report import DemoReport, DemoReset, Figure
from rewindmq.cluster.demo.timeline import CONSUMER_STEPS, FIRST_REDELIVERY, LAST_REDELIVERY
from rewindmq.protocol.text import escape_controls

Advance = Callable[[int], None]
_STEP_WIDTH: Final = 40
_BAR_WIDTH: Final = 12


class Display:
    """Shows progress bars if standard output is a terminal and rich is installed, else one line per step."""

    def __init__(self) -> None:
        self._rich = None
        if sys.stdout.isatty():
            with contextlib.suppress(ImportError):
                import rich.progress

                self._rich = rich.progress

    def say(self, text: str) -> None:
        print(escape_controls(text), flush=True)

    @contextlib.contextmanager
    def step(self, text: str, total: int) -> Iterator[Advance]:
        """Show one step. Call the returned function with the amount of ``total`` that is done so far."""
        if self._rich is None:
            done = 0

            def note(count: int) -> None:
                nonlocal done
                done = count

            yield note
            self.say(f"{text:<{_STEP_WIDTH}} {done:>7} of {total}")
            return
        rich = self._rich
        columns = (
            rich.TextColumn(f"{{task.description:<{_STEP_WIDTH}}}"),
            rich.BarColumn(bar_width=_BAR_WIDTH),
            rich.MofNCompleteColumn(),
            rich.TimeElapsedColumn(),
        )
        with rich.Progress(*columns) as progress:
            task = progress.add_task(text, total=total)
            yield lambda count: progress.update(task, completed=count)


def result_lines(report: DemoReport) -> list[str]:
    """Return the tables and the verdict as lines of text."""
    lines: list[str] = []
    for reset in report.resets:
        lines += ["", f"{reset.name} (timestamp {reset.timestamp})", ""]
        lines += _queue_table(reset)
    if report.resets:
        first = report.resets[0]
        lines += ["", f"Timeline of {first.name!r}, ms since the command", ""]
        lines += _timeline_table(first)
    lines += ["", *_figure_lines(report.figures), "", _verdict(report)]
    return lines


def _queue_table(reset: DemoReset) -> list[str]:
    rows = [["queue", "old offset", "expected", "requested", "stored at the broker", "redelivered"]]
    for row in reset.rows:
        place = f"{row.queue.broker_name} {row.queue.queue_id}"
        rows.append([place, *map(str, (row.old, row.expected, row.requested, row.stored, row.redelivered))])
    rows.append(["", "", "", "", "", str(sum(row.redelivered for row in reset.rows))])
    return _aligned(rows)


def _timeline_table(reset: DemoReset) -> list[str]:
    lines = [f"{step.at_ms:>8}  {step.name}" for step in reset.timeline.admin]
    lines += [f"{reset.answered_ms:>8}  the command has returned", ""]
    received = reset.timeline.notifications
    rows = [["", *(f"{notification.consumer} / {notification.broker}" for notification in received)]]
    rows.append(["queues to reset", *(str(notification.queues) for notification in received)])
    rows += [
        [step, *(str(notification.steps.get(step, "-")) for notification in received)]
        for step in (*CONSUMER_STEPS.values(), FIRST_REDELIVERY, LAST_REDELIVERY)
    ]
    return [
        *lines,
        *_aligned(rows),
        "",
        f"{reset.finished_ms:>8}  all messages are consumed again, all offsets stored",
    ]


def _figure_lines(figures: Sequence[Figure]) -> list[str]:
    rows = [["", "phase", "figure", "expected", "measured"]]
    for figure in figures:
        bound = ">= " if figure.at_least else ""
        mark = "ok" if figure.is_ok else "FAILED"
        rows.append([mark, figure.phase, figure.name, f"{bound}{figure.expected:g}", f"{figure.measured:g}"])
    return _aligned(rows, left=3)


def _verdict(report: DemoReport) -> str:
    failures = report.failures()
    if not failures:
        return f"All {len(report.figures)} figures verified in {report.seconds:.1f} s."
    names = "; ".join(f"{figure.phase}: {figure.name}" for figure in failures)
    return f"{len(failures)} of {len(report.figures)} figures are wrong: {names}"


def _aligned(rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """Pad columns to their widest cell; the first ``left`` columns are aligned left, the others right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            f"{cell:<{width}}" if index < left else f"{cell:>{width}}"
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
