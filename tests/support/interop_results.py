"""Pytest plugin: collects what the interop group shows, and holds docs/compatibility.json to it.

It is a plugin of the whole suite and not of the group's folder: where pytest-xdist spreads the tests over
processes, reports come to the process that started them, and that process loads no conftest of a folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from tools.interop.results import COMMITTED, GROUP, OF_GROUP, TESTS, UNLISTED, ResultRecorder, read, written

_IS_PART: Final = "interop_is_part"

_recorder = ResultRecorder()
_contradictions: list[str] = []


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    for item in items:
        is_listed = item.get_closest_marker(UNLISTED) is None
        if is_listed and item.get_closest_marker(GROUP) is not None:
            item.user_properties.append(OF_GROUP)


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    _recorder.leave_out(items)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _recorder.add(report)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object) -> None:
    """Take over what only a process of pytest-xdist has seen: whether tests were left out."""
    output = getattr(node, "workeroutput", {_IS_PART: True})
    _recorder.is_part |= output[_IS_PART]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Keep what the run has shown; or, where it passed, hold the committed page to it."""
    if (output := getattr(session.config, "workeroutput", None)) is not None:
        output[_IS_PART] = _recorder.is_part
        return
    options = session.config.option
    # The default group ignores the folder; then nothing is deselected either.
    _recorder.is_part |= any(Path(path).resolve() == TESTS for path in options.ignore or ())
    target = options.interop_results
    if target is not None:
        Path(target).write_text(written(_recorder.results))
    elif session.exitstatus == pytest.ExitCode.OK:
        _contradictions.extend(_recorder.contradictions(read(), session.config.args))
        if _contradictions:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _recorder.unseen:
        terminalreporter.section("not run")
        for reason, tests in _recorder.unseen.items():
            modules = sorted({Path(test.partition("::")[0]).stem for test in tests})
            terminalreporter.line(f"{len(tests)} tests of {', '.join(modules)}: {reason}")
    if _contradictions:
        terminalreporter.section(f"{COMMITTED.name} tells something else")
        for line in _contradictions:
            terminalreporter.line(line)
        terminalreporter.line("To write it again: see docs/interop.md")
