"""Pytest plugin: which tests are slow, and what CI leaves to ``--full`` (``docs/testing.md``)."""

from __future__ import annotations

from collections.abc import Container, Iterable
from pathlib import Path
from typing import Final

import pytest

# Markers that take the argument: the reason why CI need not run a test, or a case of it.
_MARKERS: Final = ("slow", "interop")
_ARGUMENT: Final = "full_only"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what has the argument, except in a full run."""
    left_out = [item for item in items if full_only(item)]
    if left_out and not config.getoption("--full"):
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not full_only(item)]


def full_only(item: pytest.Item) -> str:
    """Return why CI need not run a test, "" if CI runs it.

    Raises:
        pytest.UsageError: a marker has another argument, or no reason.
    """
    reasons: list[str] = []
    for mark in (mark for name in _MARKERS for mark in item.iter_markers(name)):
        if mark.args or mark.kwargs.keys() - {_ARGUMENT} or not mark.kwargs.get(_ARGUMENT, "a reason"):
            raise pytest.UsageError(
                f'{item.nodeid}: {mark.name} takes {_ARGUMENT}="why CI need not run it" only'
            )
        reasons += mark.kwargs.values()
    return "; ".join(reasons)


def leave_first(items: Iterable[pytest.Item], files: Container[Path]) -> None:
    """Mark every test of ``files`` as slow, except those of each file's first function."""
    first: dict[Path, str] = {}
    for item in items:
        if item.path in files:
            name = getattr(item, "originalname", item.name)
            if first.setdefault(item.path, name) != name:
                item.add_marker(pytest.mark.slow)


def first_of(values: Iterable[object], keep: int = 1) -> list[object]:
    """Return the values for ``parametrize``; all except the first ``keep`` are slow."""
    return [
        pytest.param(value, marks=() if place < keep else pytest.mark.slow)
        for place, value in enumerate(values)
    ]
