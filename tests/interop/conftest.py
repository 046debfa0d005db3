"""What the interop tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tools.interop.results import COMMITTED, Recorder, differences, is_whole, read, written

if TYPE_CHECKING:
    from tools.interop.store_chain import Chain
    from tools.interop.store_mixed import MixedClusters


_recorder = Recorder()
_differences: list[str] = []


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _recorder.add(report)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Keep what the run has shown; or, after a whole run that passed, hold the committed page to it."""
    target = session.config.option.interop_results
    if target is not None:
        Path(target).write_text(written(_recorder.results))
    elif session.exitstatus == pytest.ExitCode.OK and is_whole(session.config) and not _recorder.unseen:
        _differences.extend(differences(_recorder.results, read()))
        if _differences:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    from tools.interop.results import PLAYED_AGAIN

    if PLAYED_AGAIN:
        terminalreporter.section("played again alone, since they failed or differed beside others")
        for line in PLAYED_AGAIN:
            terminalreporter.line(line)
    if _differences:
        terminalreporter.section(f"{COMMITTED.name} tells something else")
        for line in _differences:
            terminalreporter.line(line)
        terminalreporter.line("To write it anew: see docs/interop.md")


@pytest.fixture(scope="session")
def store_chains(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Chain | BaseException]:
    """One store through several brokers' hands, for each real release."""
    from tools.interop.store_chain import play_chains

    return play_chains(tmp_path_factory.mktemp("stores"))


# Not of the session: idle real brokers take a third of a core from the races that come later.
@pytest.fixture(scope="module")
def mixed_clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MixedClusters]:
    """Clusters of both kinds of broker."""
    from tools.interop.store_mixed import MixedClusters

    clusters = MixedClusters(tmp_path_factory.mktemp("mixed"))
    yield clusters
    clusters.close()
