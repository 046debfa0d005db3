"""Fixtures of the test kit's own tests, made by its factories, as a user's are; and CI's part of them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from rewindmq import testing

HERE: Final = Path(__file__).parent
# They kill, pause, cut off and reset for most of their time.
_SLOW: Final = frozenset(
    ("test_links.py", "test_pretences.py", "test_processes.py", "test_reset.py", "test_snapshots.py")
)

kit_cluster = testing.cluster()
rmq = testing.rmq("kit_cluster")
wired = testing.rmq("kit_cluster", wire=True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave the first test function of each slow file in the default group; CI's long part has the others."""
    first: dict[Path, str] = {}
    for item in items:
        if item.path.parent == HERE and item.path.name in _SLOW:
            name = getattr(item, "originalname", item.name)
            if first.setdefault(item.path, name) != name:
                item.add_marker(pytest.mark.long)
                item.add_marker(pytest.mark.chosen)
