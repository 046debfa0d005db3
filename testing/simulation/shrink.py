"""Shrinks a list of choices with which a test fails, by delta debugging."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

# Runs of a test that a shrink may take.
MAX_RUNS: Final = 300

# Runs the test with these choices. Returns the choices that were reached if the test still fails, else None.
Fails = Callable[[list[T]], list[T] | None]


def shrink(choices: list[T], fails: Fails[T], max_runs: int = MAX_RUNS) -> tuple[list[T], int]:
    """Remove choices, one chunk after another, as long as the test fails without them.

    First all choices are removed, then halves, quarters and so on, at last single ones. No single
    choice of the result can be left out, unless ``max_runs`` ended the search. A shorter list may exist.

    Returns:
        The choices that are left, and the number of runs.
    """
    runs = 1
    if (reached := fails([])) is not None:
        return reached, runs
    chunk = (len(choices) + 1) // 2
    while choices and runs < max_runs:
        start, was_removed = 0, False
        while start < len(choices) and runs < max_runs:
            rest = choices[:start] + choices[start + chunk :]
            # The test does not fail without any choice.
            runs += bool(rest)
            reached = fails(rest) if rest else None
            if reached is None:
                start += chunk
            else:
                choices, was_removed = reached, True
        if chunk > 1:
            chunk = (chunk + 1) // 2
        elif not was_removed:
            break
    return choices, runs
