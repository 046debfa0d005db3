"""Factories of fixtures, for tests that need more than one cluster or another scope.

::

    from rewindmq import testing

    two_brokers = testing.cluster(brokers=2, scope="module")
    rmq2 = testing.rmq("two_brokers")
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, Literal

import pytest
import pytest_asyncio

from rewindmq.testing.clusters.cluster_pool import ClusterPool
from rewindmq.testing.clusters.options import ClusterOptions
from rewindmq.testing.clusters.servers import Servers
from rewindmq.testing.handles.rmq import Rmq
from rewindmq.testing.plugin import note_started

Scope = Literal["function", "class", "module", "package", "session"]


def cluster(*, scope: Scope = "session", **options: Any) -> Any:
    """Return a fixture with a cluster of its own.

    Args:
        scope: how long the cluster lives.
        options: of ``ClusterOptions``.

    Raises:
        KitError: an unknown option.
    """
    wanted = ClusterOptions().with_changes(options)

    @pytest.fixture(scope=scope)
    def rewindmq_cluster() -> Iterator[Servers]:
        with ClusterPool() as pool:
            yield pool.get(wanted)

    return rewindmq_cluster


def rmq(cluster_fixture: str, *, wire: bool = False) -> Any:
    """Return a fixture like ``rmq``, for the cluster of another fixture.

    Args:
        cluster_fixture: the name of a fixture that ``cluster`` returned.
        wire: permit ``rmq.on``, ``rmq.partition`` and ``rmq.slow_link``.
    """

    @pytest_asyncio.fixture
    async def rewindmq_rmq(request: pytest.FixtureRequest) -> AsyncIterator[Rmq]:
        async with Rmq(request.getfixturevalue(cluster_fixture), wire=wire) as made:
            note_started(request.node, made)
            yield made

    return rewindmq_rmq
