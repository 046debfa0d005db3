"""A real cluster for the tests of the dashboard."""

from collections.abc import Iterator

import pytest

from rewindmq import LocalCluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(brokers=2) as running:
        yield running
