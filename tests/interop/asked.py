"""Collects the parameters of a session's tests, so that only those plays run."""

from __future__ import annotations

from typing import TypeVar

import pytest

_Kind = TypeVar("_Kind")


def asked_for(request: pytest.FixtureRequest, kind: type[_Kind]) -> list[_Kind]:
    """Return every parameter of this type that a test of the session has, each once."""
    found: dict[_Kind, None] = {}
    for item in request.session.items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            found.update({value: None for value in item.callspec.params.values() if isinstance(value, kind)})
    return list(found)
