"""What the interop tests share."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tools.interop.results import COMMITTED, GROUP, OF_GROUP, Recorder, read, written
from tools.interop.toolchains import ToolMissing, missing_tools

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.interop.store_chain import Chain, Link
    from tools.interop.store_mixed import MixedClusters


_recorder = Recorder()
_contradictions: list[str] = []


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker(GROUP) is not None:
            item.user_properties.append(OF_GROUP)


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    _recorder.leave_out(items)


def pytest_collection_finish(session: pytest.Session) -> None:
    """In CI no tool may be missing; elsewhere the tests that need one are listed as not run."""
    is_asked_for = any(item.get_closest_marker(GROUP) is not None for item in session.items)
    if os.environ.get("CI") and is_asked_for and (lines := missing_tools()):
        pytest.exit(f"CI runs the interop group: {'; '.join(lines)}", pytest.ExitCode.TESTS_FAILED)


@contextmanager
def _skipping() -> Iterator[None]:
    try:
        yield
    except ToolMissing as error:
        pytest.skip(str(error))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None]:
    with _skipping():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None]:
    with _skipping():
        return (yield)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _recorder.add(report)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Keep what the run has shown; or, where it passed, hold the committed page to it."""
    target = session.config.option.interop_results
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


@pytest.fixture(scope="session")
def store_chains(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[Link, Chain | BaseException]:
    """One store through several brokers' hands: the chains that the session's tests ask for."""
    from tests.interop.asked import asked_for
    from tools.interop.store_chain import Link, play_chains

    return play_chains(asked_for(request, Link), tmp_path_factory.mktemp("stores"))


# Not of the session: idle real brokers take a third of a core from the races that come later.
@pytest.fixture(scope="module")
def mixed_clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MixedClusters]:
    """Clusters of both kinds of broker."""
    from tools.interop.store_mixed import MixedClusters

    clusters = MixedClusters(tmp_path_factory.mktemp("mixed"))
    yield clusters
    clusters.close()
