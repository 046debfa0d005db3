"""Leaves the first test function of a slow file in the default group; CI's long part has the others."""

from __future__ import annotations

from collections.abc import Container, Iterable
from pathlib import Path

import pytest


def leave_first(items: Iterable[pytest.Item], files: Container[Path]) -> None:
    """Mark every test of ``files`` as ``long`` and ``chosen``, except those of each file's first function."""
    first: dict[Path, str] = {}
    for item in items:
        if item.path in files:
            name = getattr(item, "originalname", item.name)
            if first.setdefault(item.path, name) != name:
                item.add_marker(pytest.mark.long)
                item.add_marker(pytest.mark.chosen)
