"""A random search runs each different schedule once, and finds the same as one that runs every schedule."""

from __future__ import annotations

import pytest

from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.errors import RaceError
from rewindmq.race.explore.schedule.step import Step, StepKind
from rewindmq.race.explore.search.choosers import RecordingChooser
from rewindmq.race.explore.search.job import ScheduleJob
from rewindmq.race.explore.search.known import Draw, KnownSchedules
from rewindmq.race.explore.search.laws import Broken
from rewindmq.race.explore.search.pool import Pool
from rewindmq.race.explore.search.run import ScheduleOutcome
from rewindmq.race.explore.search.search import Findings, Search
from rewindmq.race.explore.search.strategy import Strategy
from tests.race.explore.explore_settings import setting_of

CHANGES, LENGTH = 4, 30
# Two states with two steps each.
STEPS = ((StepKind.DELIVER, "deliver a->b one"), (StepKind.FIRE, "timers of b"))


class Fixed(RecordingChooser):
    """Chooser that takes given steps."""

    def __init__(self, path: tuple[int, ...]) -> None:
        super().__init__()
        self._path = path

    def pick(self, steps: list[Step]) -> int:
        return self._path[len(self.taken)]


def outcome_of(*taken: int, known: int = 0, broken: tuple[Broken, ...] = ()) -> ScheduleOutcome:
    return ScheduleOutcome(taken, broken, options=(STEPS,) * (len(taken) - known))


def draw(schedules: KnownSchedules, *path: int) -> tuple[Draw, ScheduleOutcome | None]:
    begun = schedules.draw(0, Fixed(path))
    return begun, schedules.advance(begun)


def test_a_schedule_that_was_run_is_known_and_another_is_run_from_the_first_unknown_state() -> None:
    schedules = KnownSchedules()
    first, known = draw(schedules, 0, 1)
    assert known is None
    assert schedules.begin(first)
    assert not schedules.end(first, outcome_of(0, 1))
    assert draw(schedules, 0, 1)[1] == ScheduleOutcome((0, 1))
    other, known = draw(schedules, 0, 0)
    assert known is None
    assert other.path == (0, 0)


def test_a_schedule_waits_for_one_that_runs_the_same_path() -> None:
    schedules = KnownSchedules()
    first, _ = draw(schedules, 0, 1)
    second, _ = draw(schedules, 0, 1)
    assert schedules.begin(first)
    assert not schedules.begin(second)
    assert schedules.end(first, outcome_of(0, 1)) == [second]
    assert schedules.advance(second) == ScheduleOutcome((0, 1))


def test_another_outcome_of_a_known_schedule_is_an_error() -> None:
    schedules = KnownSchedules()
    schedules.add(outcome_of(0, 1))
    schedules.add(outcome_of(0, 1))
    with pytest.raises(RaceError, match="two different outcomes"):
        schedules.add(outcome_of(0, 1, broken=(Broken("stored", "lost"),)))


@pytest.mark.parametrize(
    ("again", "why"),
    [
        (outcome_of(0, 1, 0), "went on after its last choice"),
        (outcome_of(0), "ended before its last choice"),
        (ScheduleOutcome((0, 1), options=(STEPS, STEPS[::-1])), "had other possible steps"),
        (ScheduleOutcome((0, 1), options=(STEPS, STEPS[:1])), "had other possible steps"),
    ],
)
def test_other_choices_of_a_known_schedule_are_an_error(again: ScheduleOutcome, why: str) -> None:
    schedules = KnownSchedules()
    schedules.add(outcome_of(0, 1))
    with pytest.raises(RaceError, match=why):
        schedules.add(again)


def test_other_steps_than_those_drawn_are_an_error() -> None:
    schedules = KnownSchedules()
    schedules.add(outcome_of(0, 1))
    begun, _ = draw(schedules, 0, 0)
    assert schedules.begin(begun)
    with pytest.raises(RaceError, match="took other steps"):
        schedules.end(begun, outcome_of(1, 0, known=2))


def run_every(mode: ResetMode, count: int, strategy: Strategy) -> Findings:
    """Return the findings of jobs that are all run."""
    findings = Findings()
    jobs = [
        ScheduleJob(seed=f"1 {n}", strategy=strategy, changes=CHANGES, length=LENGTH) for n in range(count)
    ]
    with Pool(setting_of("one-reset", mode, late=1), 1) as pool:
        for outcome in pool.run(jobs):
            findings.add(outcome)
    return findings


@pytest.mark.parametrize(
    ("mode", "strategy"),
    [
        (ResetMode.CLASSIC, Strategy.PCT),
        pytest.param(ResetMode.CLASSIC, Strategy.UNIFORM, marks=pytest.mark.slow),
        pytest.param(ResetMode.SERVER, Strategy.PCT, marks=pytest.mark.slow),
    ],
)
def test_a_search_finds_the_same_as_one_that_runs_every_schedule(mode: ResetMode, strategy: Strategy) -> None:
    count = 150
    every = run_every(mode, count, strategy)
    findings = Search(setting_of("one-reset", mode, late=1), 1).run_some(count, 1, strategy)
    assert 0 < findings.known < count
    assert (findings.schedules, findings.bad, findings.broken) == (count, every.bad, every.broken)
    assert findings.first_number == every.first_number
    assert (findings.first and findings.first.names) == (every.first and every.first.names)


def test_two_workers_find_the_same_as_one() -> None:
    setting = setting_of("one-reset", ResetMode.CLASSIC, late=1)
    one, two = (Search(setting, workers).run_some(80, 1) for workers in (1, 2))
    assert (two.schedules, two.known) == (one.schedules, one.known)
    assert 0 < one.known < 80
    assert (two.bad, two.broken, two.first_number) == (one.bad, one.broken, one.first_number)
    assert (two.first and two.first.names) == (one.first and one.first.names)
