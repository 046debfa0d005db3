"""Shows the steps of a job on stderr, and how many of Spark's tasks are done."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol, TextIO

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A job calls it with a short description of each step that begins.
Progress = Callable[[str], None]
_POLL_SECONDS: Final = 0.25
_STEP_WIDTH: Final = 40
_BAR_WIDTH: Final = 24


def no_progress(text: str) -> None:
    """Show nothing."""


class ProgressDisplay(Protocol):
    """Shows the steps of a job."""

    def begin(self, text: str) -> None:
        """Begin a new step; the step before it is done."""

    def watch(self, spark: SparkSession) -> None:
        """Count the tasks of this session from now on."""

    def end(self, *, is_done: bool) -> None:
        """Stop the display; ``is_done`` is False if the last step failed. Further calls do nothing."""


def make_progress(stream: TextIO, *, is_quiet: bool) -> ProgressDisplay:
    """Return a display: bars on a terminal with rich installed, else one line per step."""
    if is_quiet:
        return _Nothing()
    if stream.isatty():
        with contextlib.suppress(ImportError):
            return _Bars(stream)
    return _Lines(stream)


class _Nothing:
    def begin(self, text: str) -> None:
        pass

    def watch(self, spark: SparkSession) -> None:
        pass

    def end(self, *, is_done: bool) -> None:
        pass


class _Lines(_Nothing):
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def begin(self, text: str) -> None:
        print(text, file=self._stream, flush=True)


class TaskCount:
    """Counts the tasks of the stages seen since a step began; Spark reports only running stages."""

    def __init__(self) -> None:
        self._stages: dict[int, tuple[int, int]] = {}

    def look(self, tracker: Any) -> None:
        """Read the running stages from Spark's status tracker."""
        running = set()
        for stage_id in tracker.getActiveStageIds():
            info = tracker.getStageInfo(stage_id)
            if info is not None:
                running.add(stage_id)
                self._stages[stage_id] = (info.numCompletedTasks, info.numTasks)
        for stage_id, (_, total) in self._stages.items():
            if stage_id not in running:
                self._stages[stage_id] = (total, total)

    @property
    def done(self) -> int:
        return sum(done for done, _ in self._stages.values())

    @property
    def total(self) -> int:
        return sum(total for _, total in self._stages.values())


class _Bars:
    """One bar per step; a thread asks Spark for task counts while the job's thread waits."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as RichProgress

        self._bars = RichProgress(
            TextColumn(f"{{task.description:<{_STEP_WIDTH}}}"),
            BarColumn(bar_width=_BAR_WIDTH),
            TextColumn("{task.fields[tasks]}"),
            TimeElapsedColumn(),
            console=Console(file=stream),
            # Other output of this process goes to its own stream, not into the bars.
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._bars.start()
        self._count = TaskCount()
        self._step: Any = None
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._watcher: threading.Thread | None = None

    def begin(self, text: str) -> None:
        with self._lock:
            self._finish()
            self._count = TaskCount()
            self._step = self._bars.add_task(text, total=None, tasks="")

    def watch(self, spark: SparkSession) -> None:
        from pyspark import InheritableThread

        # Unlike a plain thread, an InheritableThread closes its own connection to Java.
        self._watcher = InheritableThread(target=self._poll, args=(spark,), daemon=True)
        self._watcher.start()

    def end(self, *, is_done: bool) -> None:
        if self._ended.is_set():
            return
        self._ended.set()
        if self._watcher is not None:
            self._watcher.join()
        if is_done:
            self._finish()
        self._bars.stop()

    def _finish(self) -> None:
        if self._step is not None:
            total = self._count.total
            self._show(total, total)
            self._bars.stop_task(self._step)

    def _show(self, done: int, total: int) -> None:
        tasks = f"{done}/{total} tasks" if total else ""
        # A step without tasks shows a full bar when it is done.
        self._bars.update(
            self._step, completed=done if total else 1, total=total or 1, tasks=tasks, refresh=True
        )

    def _poll(self, spark: SparkSession) -> None:
        tracker = spark.sparkContext.statusTracker()
        while not self._ended.wait(_POLL_SECONDS):
            with self._lock:
                self._count.look(tracker)
                if self._step is not None and self._count.total:
                    self._show(self._count.done, self._count.total)
