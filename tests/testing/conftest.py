"""Fixtures of the test kit's own tests, made by its factories, as a user's are; and which are slow."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from rewindmq import testing
from tests.support.choice import leave_first

HERE: Final = Path(__file__).parent
# They kill, pause, cut off, travel and reset for most of their time.
_SLOW: Final = frozenset(
    HERE / name
    for name in (
        "test_links.py",
        "test_pop.py",
        "test_disk_and_clock.py",
        "test_processes.py",
        "test_reset.py",
        "test_snapshots.py",
    )
)

kit_cluster = testing.cluster()
rmq = testing.rmq("kit_cluster")
wired = testing.rmq("kit_cluster", wire=True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave the first test function of each slow file in the default group; the others are slow."""
    leave_first(items, _SLOW)
