"""Pytest plugin: ``--costs`` prints where the processor's time goes, by folder."""

from __future__ import annotations

import resource
from collections import defaultdict
from collections.abc import Generator, Iterator, Mapping
from operator import itemgetter
from pathlib import PurePosixPath
from typing import Final

import pytest

# A name of pytest's ``user_properties``, which pytest-xdist's workers send with each report.
_PROPERTY: Final = "processor seconds"
# A folder with less than this has no line of its own.
_LEAST_SECONDS: Final = 5.0


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--costs",
        action="store_true",
        help="print the processor time of the tests by folder, with that of the processes they start",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--costs"):
        config.pluginmanager.register(_Meter())


class _Meter:
    """Measures each test, and sums up the reports of all processes."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._last = _processor_seconds()

    def pytest_runtest_logstart(self) -> None:
        self._last = _processor_seconds()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        now = _processor_seconds()
        report.user_properties.append((_PROPERTY, now - self._last))
        self._last = now
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, value in report.user_properties:
            if name == _PROPERTY and isinstance(value, float):
                self._seconds[report.nodeid.partition("::")[0]] += value

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("processor time of tests and of the processes that they start")
        for line in table(self._seconds):
            terminalreporter.write_line(line)


def table(seconds: Mapping[str, float]) -> Iterator[str]:
    """Yield a line for each folder, the costliest first, and one for all of them.

    A folder below another one has a line of its own from five seconds on; the outer one's is of the rest.

    Args:
        seconds: by the path of a file of tests, with ``/``.
    """
    folders = defaultdict[str, float](float, {".": 0.0})
    for file, amount in seconds.items():
        folders[str(PurePosixPath(file).parent)] += amount
    # The longest path first: what a folder does not show goes to the one around it.
    for folder in sorted(folders, key=lambda name: name.count("/"), reverse=True):
        if folders[folder] < _LEAST_SECONDS and folder != ".":
            folders[str(PurePosixPath(folder).parent)] += folders.pop(folder)
    for folder, amount in sorted(folders.items(), key=itemgetter(1), reverse=True):
        yield f"{amount:7.1f} s  {'the rest' if folder == '.' else folder}"
    yield f"{sum(folders.values()):7.1f} s  in all"


def _processor_seconds() -> float:
    """Return the user and system time of this process and of its ended children."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)
