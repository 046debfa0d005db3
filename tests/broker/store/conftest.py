"""Fixtures of the store's tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.store.store_box import StoreBox


@pytest.fixture
def box(tmp_path: Path) -> Iterator[StoreBox]:
    made = StoreBox(tmp_path / "store")
    yield made
    made.close_all()
