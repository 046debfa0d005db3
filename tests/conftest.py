"""What every test may rely on."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--interop-results",
        metavar="FILE",
        help="write what the interop group shows there, instead of comparing it with docs/compatibility.json",
    )


@pytest.fixture(autouse=True, scope="session")
def signals_as_at_a_terminal() -> Iterator[None]:
    """Processes started by tests hear Ctrl-C and the end of the terminal.

    A shell's background jobs ignore the one and ``nohup`` the other, and children inherit that.
    """
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}
    ignored = [number for number in usual if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, usual[number])
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)
