"""Tests of the test suite's own tools."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

HERE: Final = Path(__file__).parent
# Fixtures of the tests that start pytest.
_START_PYTEST: Final = frozenset(("suite", "output"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that start pytest, which takes a second each, as slow."""
    for item in items:
        if item.path.is_relative_to(HERE) and _START_PYTEST.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)
