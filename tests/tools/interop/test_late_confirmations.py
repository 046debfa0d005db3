"""Dead letters in the interop suite: only a late confirmation excuses rocketmq-client-rust."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tools.interop.scenarios.retrying import as_confirmed


@pytest.mark.parametrize(
    ("deliveries", "letters"),
    [
        ([0, 1, 2], [3]),
        # Both letters were stored, in either order of the queue's messages; or only one of them.
        ([0, 1, 2, 3], [4, 3]),
        ([0, 1, 2, 3], [3]),
        ([0, 1, 2, 3], [4]),
    ],
)
def test_a_late_confirmation_is_excused(deliveries: Sequence[int], letters: Sequence[int]) -> None:
    assert as_confirmed(deliveries, letters) == ([0, 1, 2], 3)


@pytest.mark.parametrize(
    ("deliveries", "letters"),
    [
        # A letter too early, one too many, the same twice; a delivery that is missing or comes twice.
        ([0, 1, 2], [2]),
        ([0, 1, 2], [3, 4]),
        ([0, 1, 2, 3], [3, 3]),
        ([0, 2, 3], [3]),
        ([0, 1, 1, 2], [3]),
    ],
)
def test_everything_else_is_a_failure(deliveries: Sequence[int], letters: Sequence[int]) -> None:
    with pytest.raises(AssertionError):
        as_confirmed(deliveries, letters)
