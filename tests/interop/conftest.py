"""Lets these tests and ``bench`` import the harness as the package ``interop``; what modules share."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))

if TYPE_CHECKING:
    from interop.store_chain import Chain
    from interop.store_mixed import MixedClusters


@pytest.fixture(scope="session")
def store_chains(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Chain | BaseException]:
    """One store through several brokers' hands, for each real release."""
    from interop.store_chain import play_chains

    return play_chains(tmp_path_factory.mktemp("stores"))


@pytest.fixture(scope="session")
def mixed_clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MixedClusters]:
    """Clusters of both kinds of broker."""
    from interop.store_mixed import MixedClusters

    clusters = MixedClusters(tmp_path_factory.mktemp("mixed"))
    yield clusters
    clusters.close()
