"""In random histories of a queue, no lost reset is proven (docs/watched_reset.md)."""

from __future__ import annotations

from collections import Counter

import pytest

from rewindmq.watch.verdict.states import State
from tests.watch.random_watch import RandomWatch

# Seeds without ``--full``, and with it.
SEEDS, ALL_SEEDS = 150, 2_000


def play(seeds: range) -> None:
    verdicts: Counter[tuple[bool, State]] = Counter()
    for seed in seeds:
        history = RandomWatch(seed)
        history.play()
        verdict = history.is_lost, history.watch.state
        assert verdict != (True, State.PROVEN), (seed, history.watch)
        verdicts[verdict] += 1
    assert verdicts[True, State.LOST] > 0 < verdicts[False, State.PROVEN]


def test_no_lost_reset_is_proven_in_random_histories() -> None:
    play(range(SEEDS))


@pytest.mark.slow
def test_no_lost_reset_is_proven_in_many_random_histories(request: pytest.FixtureRequest) -> None:
    play(range(SEEDS, ALL_SEEDS if request.config.getoption("--full") else 2 * SEEDS))
