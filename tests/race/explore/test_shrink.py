"""A shrunk schedule still fails, cannot lose a choice, and is the same each time."""

from __future__ import annotations

import pytest

from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.explore.search.job import ScheduleJob
from rewindmq.race.explore.search.pool import Pool
from rewindmq.race.explore.search.run import ScheduleOutcome
from rewindmq.race.explore.search.search import Search
from rewindmq.race.explore.search.shrink import prescribed, shrink
from rewindmq.race.explore.search.strategy import Strategy
from tests.race.explore.explore_settings import setting_of

SETTING = setting_of("one-reset", ResetMode.CLASSIC, late=1)


def size(outcome: ScheduleOutcome) -> tuple[int, int]:
    return outcome.deviations, len(prescribed(outcome))


# CI runs the first seed of each strategy, ``--full`` both.
@pytest.mark.slow
@pytest.mark.parametrize(
    "seed", [1, pytest.param(2, marks=pytest.mark.slow(full_only="another seed is another choice"))]
)
@pytest.mark.parametrize("strategy", Strategy)
def test_a_shrunk_schedule_fails_and_none_of_its_choices_can_be_left_out(
    strategy: Strategy, seed: int
) -> None:
    failing = Search(SETTING, 1, stop_at_first=True).run_some(200, seed, strategy).first
    assert failing is not None
    with Pool(SETTING, 1) as pool:
        shortest = shrink(pool, failing)
        steps = prescribed(shortest)
        (again,) = pool.run([ScheduleJob(names=steps, is_strict=True)])
        without_one = pool.run([ScheduleJob(names=steps[:n] + steps[n + 1 :]) for n in range(len(steps))])
        assert shrink(pool, failing).names == shortest.names
    assert not again.error
    assert again.broken == shortest.broken
    assert again.laws & failing.laws
    assert size(shortest) <= size(failing)
    assert not [other for other in without_one if other.laws & failing.laws and size(other) < size(shortest)]
