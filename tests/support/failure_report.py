"""Pytest plugin: a failing test shows its pending tasks, its processes' logs and how to run it again."""

from __future__ import annotations

import asyncio
import gc
import io
import shlex
import signal
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import Final

import pytest

from rewindmq import AsyncLocalCluster, LocalCluster
from rewindmq.cluster.errors import ClusterError

_LOG_LINES: Final = 40
_LOG_FILES: Final = 12
_TASKS: Final = 40
_STUCK_TASKS: Final = pytest.StashKey[str]()


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_timeout_set_timer(item: pytest.Item) -> Generator[None, object, object]:
    """Take down the tasks when the time is over: the event loop cancels them before the test has failed."""
    result = yield
    fail = signal.getsignal(signal.SIGALRM)

    def take_down_and_fail(number: int, frame: FrameType | None) -> None:
        item.stash[_STUCK_TASKS] = pending_tasks()
        if callable(fail):
            fail(number, frame)

    signal.signal(signal.SIGALRM, take_down_and_fail)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        if _STUCK_TASKS in item.stash:
            report.sections.append(("pending tasks", item.stash[_STUCK_TASKS]))
        report.sections += [(f"log {path.name}", text) for path, text in log_ends(_directories(item))]
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the command that runs each failed test again."""
    failed = [*terminalreporter.stats.get("failed", ()), *terminalreporter.stats.get("error", ())]
    commands = dict.fromkeys(
        rerun_command(report.nodeid, terminalreporter.config)
        for report in failed
        if isinstance(report, pytest.TestReport)
    )
    if commands:
        terminalreporter.section("to run a failed test again")
        for command in commands:
            terminalreporter.line(command)


def rerun_command(nodeid: str, config: pytest.Config) -> str:
    """Return the command that runs one test as this run did; every seed is part of the test."""
    words = ["./scripts/test", nodeid, "-m", ""]
    if config.getoption("--full", default=False):
        words.append("--full")
    return shlex.join(words)


def pending_tasks() -> str:
    """Return the stacks of all asyncio tasks that have not ended, of every loop in this process."""
    text = io.StringIO()
    tasks = [task for task in gc.get_objects() if isinstance(task, asyncio.Task) and not task.done()]
    for task in tasks[:_TASKS]:
        task.print_stack(file=text)
    if len(tasks) > _TASKS:
        text.write(f"... and {len(tasks) - _TASKS} more\n")
    return text.getvalue()


def log_ends(directories: Iterable[Path]) -> Iterator[tuple[Path, str]]:
    """Return the last lines of each log below the directories."""
    paths = dict.fromkeys(path for directory in directories for path in sorted(directory.rglob("*.log")))
    for path in list(paths)[:_LOG_FILES]:
        lines = path.read_text(errors="replace").splitlines()
        if lines:
            yield path, "\n".join(lines[-_LOG_LINES:])


def _directories(item: pytest.Item) -> Iterator[Path]:
    """Where processes of the test write: its temporary directory, and clusters that fixtures started."""
    for value in getattr(item, "funcargs", {}).values():
        if isinstance(value, Path) and value.is_dir():
            yield value
        elif isinstance(value, (LocalCluster, AsyncLocalCluster)):
            try:
                yield value.directory
            except ClusterError:
                continue
