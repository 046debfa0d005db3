"""Options, plugins and fixtures of the whole suite."""

from __future__ import annotations

import gc
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Final

import pytest

from tests.support import properties
from tests.support.choice import leave_first

# A plugin stands before the plugins that import it, because pytest rewrites assertions at the first import.
pytest_plugins = (
    "tests.support.choice",
    "tests.support.scheduling",
    "tests.support.outcomes",
    "tests.support.costs",
    "tests.support.interop_results",
    "tests.support.failure_report",
    "tests.support.fixtures",
)

properties.settle()

# Nearly every test of these files starts a cluster, a server or a command.
_PROGRAMS: Final = frozenset(
    Path(__file__).parent / name
    for name in (
        "broker/test_process.py",
        "client/cli/test_commands.py",
        "client/cli/test_peek_and_lag.py",
        "client/cli/test_watch_command.py",
        "cluster/test_local_cluster.py",
        "cluster/up/test_control_port.py",
        "namesrv/test_process.py",
        "race/commands/test_run_command.py",
        "test_standard_streams.py",
    )
)
# Net number of new objects between garbage collections. Python's default is 700, which one message reaches.
_COLLECT_AFTER: Final = 10_000


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--full",
        action="store_true",
        help="use every seed and case of the slow and interop tests, also those that CI leaves out",
    )
    parser.addoption(
        "--interop-results",
        metavar="FILE",
        help="write the interop group's results here instead of comparing them with docs/compatibility.json",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    leave_first(items, _PROGRAMS)


def pytest_collection_finish() -> None:
    """Exclude modules and test items, which live until the end of the run, from garbage collection."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER)


@pytest.fixture(scope="session")
def full(pytestconfig: pytest.Config) -> bool:
    """True if slow tests use all their seeds and cases (``./scripts/test --full``)."""
    return bool(pytestconfig.getoption("--full"))


@pytest.fixture(autouse=True, scope="session")
def signals_as_at_a_terminal() -> Iterator[None]:
    """Let the processes that tests start receive SIGINT and SIGHUP.

    A shell's background jobs ignore SIGINT, ``nohup`` ignores SIGHUP, and child processes inherit both.
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
