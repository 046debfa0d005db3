"""Fixtures and hooks of the interop tests."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tools.interop.results import GROUP
from tools.interop.toolchains import ToolMissing, missing_tools

if TYPE_CHECKING:
    from tools.interop.store_chain import ChainPlan, ChainResults
    from tools.interop.store_mixed import MixedClusters


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark every test of this folder: the default group does not read the folder."""
    item.add_marker(GROUP)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Fail in CI if a tool is missing; elsewhere the tests that need it are listed as not run."""
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


@pytest.fixture(scope="session")
def store_chains(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[ChainPlan, ChainResults | BaseException]:
    """The chains of brokers on one store that the session's tests ask for."""
    from tests.interop.asked import asked_for
    from tools.interop.store_chain import ChainPlan, play_chains

    return play_chains(asked_for(request, ChainPlan), tmp_path_factory.mktemp("stores"))


# Per module, because idle RocketMQ brokers take a third of a core from the races that come later.
@pytest.fixture(scope="module")
def mixed_clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MixedClusters]:
    """Clusters of both kinds of broker."""
    from tools.interop.store_mixed import MixedClusters

    clusters = MixedClusters(tmp_path_factory.mktemp("mixed"))
    yield clusters
    clusters.close()
