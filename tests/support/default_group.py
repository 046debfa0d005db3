"""Leaves the first of several slow tests in the default group; CI's long part has the others."""

from __future__ import annotations

from collections.abc import Container, Iterable
from pathlib import Path
from typing import Final

import pytest

_OTHERS: Final = (pytest.mark.long, pytest.mark.chosen)


def leave_first(items: Iterable[pytest.Item], files: Container[Path]) -> None:
    """Mark every test of ``files`` as ``long`` and ``chosen``, except those of each file's first function."""
    first: dict[Path, str] = {}
    for item in items:
        if item.path in files:
            name = getattr(item, "originalname", item.name)
            if first.setdefault(item.path, name) != name:
                for marker in _OTHERS:
                    item.add_marker(marker)


def first_of(values: Iterable[object], keep: int = 1) -> list[object]:
    """Return the values for ``parametrize``; all except the first ``keep`` are ``long`` and ``chosen``."""
    return [pytest.param(value, marks=() if place < keep else _OTHERS) for place, value in enumerate(values)]
