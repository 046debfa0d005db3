"""Fixtures of all tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from order_service import Ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """An empty ledger."""
    ledger = Ledger(tmp_path / "orders.db")
    yield ledger
    ledger.close()
