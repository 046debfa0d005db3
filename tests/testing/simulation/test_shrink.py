"""Delta debugging of choices."""

from __future__ import annotations

import pytest

from rewindmq.testing.simulation.shrink import shrink


def needs(*wanted: int) -> tuple[list[list[int]], object]:
    """Return the candidates that were tried, and a test that fails if all ``wanted`` choices are there."""
    tried: list[list[int]] = []

    def fails(choices: list[int]) -> list[int] | None:
        tried.append(choices)
        return choices if set(wanted) <= set(choices) else None

    return tried, fails


@pytest.mark.parametrize("wanted", [(0,), (63,), (17, 40), (0, 31, 32, 63), (5, 6, 7)])
def test_only_the_needed_choices_are_left(wanted: tuple[int, ...]) -> None:
    tried, fails = needs(*wanted)
    left, runs = shrink(list(range(64)), fails)  # type: ignore[arg-type]
    assert left == list(wanted)
    assert runs == len(tried) < 64


def test_a_test_that_always_fails_needs_no_choice() -> None:
    tried, fails = needs()
    assert shrink([1, 2, 3], fails) == ([], 1)  # type: ignore[arg-type]
    assert tried == [[]]


def test_choices_that_a_replay_does_not_reach_are_left_out() -> None:
    def fails(choices: list[int]) -> list[int] | None:
        return [choice for choice in choices if choice < 10] if 3 in choices else None

    assert shrink(list(range(64)), fails)[0] == [3]


def test_the_number_of_runs_has_a_limit() -> None:
    _, fails = needs(*range(0, 64, 2))
    left, runs = shrink(list(range(64)), fails, max_runs=20)  # type: ignore[arg-type]
    assert runs == 20
    assert set(range(0, 64, 2)) <= set(left)
