"""Pytest plugin: ``--outcomes FILE`` appends a JSON line for each test, for programs that sum runs up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools.suite.outcome import CaseVerdict, SuiteOutcome


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--outcomes", metavar="FILE", type=Path, help="append what came of each test there, as lines of JSON"
    )


def pytest_configure(config: pytest.Config) -> None:
    path: Path | None = config.getoption("--outcomes")
    # A worker of pytest-xdist sends its reports to the process that started it.
    if path is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Recorder(path))


class _Recorder:
    """Keeps one outcome a test: the worst of its set-up, call and tear-down."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seconds: dict[str, float] = {}
        self._verdicts: dict[str, CaseVerdict] = {}
        self._reasons: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        test = report.nodeid
        self._seconds[test] = self._seconds.get(test, 0.0) + report.duration
        if report.failed:
            self._verdicts[test] = CaseVerdict.FAILED
        elif report.skipped:
            self._verdicts.setdefault(test, CaseVerdict.SKIPPED)
            if isinstance(report.longrepr, tuple):
                self._reasons[test] = report.longrepr[2].removeprefix("Skipped: ")
        elif report.when == "call":
            self._verdicts.setdefault(test, CaseVerdict.PASSED)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._verdicts[report.nodeid] = CaseVerdict.FAILED

    def pytest_sessionfinish(self) -> None:
        with self._path.open("a") as file:
            for test, verdict in self._verdicts.items():
                outcome = SuiteOutcome(
                    test, verdict, self._seconds.get(test, 0.0), self._reasons.get(test, "")
                )
                file.write(json.dumps(outcome.as_fields()) + "\n")
