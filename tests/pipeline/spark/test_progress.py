"""The progress display of a job."""

from __future__ import annotations

import io
import os
import pty
import threading
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TextIO

from rewindmq.pipeline.spark.progress import ProgressDisplay, TaskCount, make_progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Info(NamedTuple):
    numCompletedTasks: int  # noqa: N815
    numTasks: int  # noqa: N815


class Tracker:
    """A status tracker of Spark with a sequence of states."""

    def __init__(self) -> None:
        self.stages: dict[int, Info] = {}

    def getActiveStageIds(self) -> list[int]:
        return [*self.stages, 99]

    def getStageInfo(self, stage_id: int) -> Info | None:
        # A stage may end between the two questions.
        return self.stages.get(stage_id)


def test_tasks_of_stages_that_are_over_stay_counted() -> None:
    tracker, count = Tracker(), TaskCount()
    count.look(tracker)
    assert (count.done, count.total) == (0, 0)
    tracker.stages = {1: Info(3, 10)}
    count.look(tracker)
    assert (count.done, count.total) == (3, 10)
    tracker.stages = {2: Info(1, 4)}
    count.look(tracker)
    assert (count.done, count.total) == (11, 14)
    tracker.stages = {}
    count.look(tracker)
    assert (count.done, count.total) == (14, 14)


def begin_two(progress: ProgressDisplay) -> None:
    progress.begin("reading the log")
    progress.begin("writing")
    progress.end(is_done=True)
    progress.end(is_done=True)


def test_without_a_terminal_a_step_is_a_line() -> None:
    stream = io.StringIO()
    begin_two(make_progress(stream, is_quiet=False))
    assert stream.getvalue() == "reading the log\nwriting\n"


def test_quiet_shows_nothing() -> None:
    stream = io.StringIO()
    begin_two(make_progress(stream, is_quiet=True))
    assert stream.getvalue() == ""


class Terminal:
    """A terminal, and all that was written to it."""

    def __init__(self) -> None:
        self._reader, writer = pty.openpty()
        self.stream: TextIO = os.fdopen(writer, "w")
        self._shown = b""
        self._more = threading.Condition()
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        try:
            while piece := os.read(self._reader, 65_536):
                with self._more:
                    self._shown += piece
                    self._more.notify_all()
        except OSError:
            # How the end of a terminal shows.
            return

    def wait_for(self, text: str) -> None:
        with self._more:
            self._more.wait_for(lambda: text.encode() in self._shown)

    def close(self) -> str:
        self.stream.close()
        self._thread.join()
        os.close(self._reader)
        return self._shown.decode()


def test_on_a_terminal_a_step_is_a_bar_of_sparks_tasks(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark import InheritableThread

    gate = tmp_path / "gate"
    os.mkfifo(gate)
    terminal = Terminal()
    progress = make_progress(terminal.stream, is_quiet=False)
    progress.begin("counting")
    progress.watch(spark)

    def wait(_: int) -> None:
        """Last until the gate is written to."""
        gate.read_bytes()

    job = InheritableThread(target=lambda: spark.sparkContext.parallelize([0], 1).foreach(wait))
    job.start()
    terminal.wait_for("0/1 tasks")
    gate.write_bytes(b"")
    job.join()
    progress.begin("without tasks")
    progress.end(is_done=True)
    shown = terminal.close()
    assert "counting" in shown
    assert "1/1 tasks" in shown
    assert "without tasks" in shown
