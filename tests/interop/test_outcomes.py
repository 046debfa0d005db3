"""Outcomes of the real cluster and of RewindMQ's are compared, also where a program is unsure itself."""

from __future__ import annotations

import pytest

from tools.interop.differences import differing
from tools.interop.scenarios.scenario import OneOf

WHY = "it commits after it has left"


def test_what_is_allowed_at_both_is_no_difference_whatever_came_out() -> None:
    rewindmq = {"again": OneOf(WHY, (True, False), True)}
    rocketmq = {"again": OneOf(WHY, (True, False), False)}
    assert list(differing(rewindmq, rocketmq)) == []


def test_what_is_allowed_at_one_only_is_a_difference() -> None:
    rewindmq = {"again": OneOf(WHY, (True, False), True)}
    assert list(differing(rewindmq, {"again": OneOf(WHY, (True,), True)})) == [("again",)]
    assert list(differing(rewindmq, {"again": True})) == [("again",)]


def test_what_is_not_allowed_fails_and_says_why_something_else_is() -> None:
    with pytest.raises(AssertionError, match=WHY):
        OneOf(WHY, (True, False), "half of it")
