"""Options and fixtures of the whole suite, and what a failing test reports."""

from __future__ import annotations

import gc
import signal
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Final

import pytest

from tests.support import properties

# A plugin that another one imports comes first, or pytest cannot rewrite its assertions.
pytest_plugins = (
    "tests.support.scheduling",
    "tests.support.outcomes",
    "tests.support.costs",
    "tests.support.interop_results",
    "tests.support.failure_report",
    "tests.support.fixtures",
)

properties.settle()

# Objects made and not yet gone since the last round; Python's own 700 are made by one message.
_COLLECT_AFTER: Final = 10_000


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--full",
        action="store_true",
        help="use every seed and case of the long tests; CI uses the number that their rule names",
    )
    parser.addoption(
        "--interop-results",
        metavar="FILE",
        help="write what the interop group shows there, instead of comparing it with docs/compatibility.json",
    )


def pytest_collection_finish() -> None:
    """Leave modules and test items, which last as long as the run, out of the garbage collector's rounds."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER)


@pytest.fixture(scope="session")
def full(pytestconfig: pytest.Config) -> bool:
    """Whether long tests use all their seeds and cases (``./scripts/test --full``)."""
    return bool(pytestconfig.getoption("--full"))


@pytest.fixture(autouse=True, scope="session")
def signals_as_at_a_terminal() -> Iterator[None]:
    """Processes started by tests hear Ctrl-C and the end of the terminal.

    A shell's background jobs ignore the one and ``nohup`` the other, and children inherit that.
    """
    usual: dict[signal.Signals, Callable[[int, FrameType | None], object] | signal.Handlers] = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGHUP: signal.SIG_DFL,
    }
    ignored = [number for number in usual if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, usual[number])
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)
