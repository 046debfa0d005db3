"""Outcomes at RocketMQ and at RewindMQ are compared, also if a program leaves an outcome open."""

from __future__ import annotations

import pytest

from tools.interop.differences import differing
from tools.interop.scenarios.scenario import OneOf

WHY = "it commits after it has left"


def test_outcomes_that_both_sides_allow_are_equal() -> None:
    rewindmq = {"again": OneOf(WHY, (True, False), True)}
    rocketmq = {"again": OneOf(WHY, (True, False), False)}
    assert list(differing(rewindmq, rocketmq)) == []


def test_an_outcome_that_only_one_side_allows_is_a_difference() -> None:
    rewindmq = {"again": OneOf(WHY, (True, False), True)}
    assert list(differing(rewindmq, {"again": OneOf(WHY, (True,), True)})) == [("again",)]
    assert list(differing(rewindmq, {"again": True})) == [("again",)]


def test_an_outcome_that_is_not_allowed_fails_with_the_explanation() -> None:
    with pytest.raises(AssertionError, match=WHY):
        OneOf(WHY, (True, False), "half of it")
