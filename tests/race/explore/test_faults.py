"""The search finds every deliberate fault in the fencing, and shortens the schedule that shows it."""

from __future__ import annotations

import pytest

from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.explore.model.faults import FAULTS
from rewindmq.race.explore.search.job import ScheduleJob
from rewindmq.race.explore.search.pool import Pool
from rewindmq.race.explore.search.run import ScheduleOutcome
from rewindmq.race.explore.search.search import Search
from rewindmq.race.explore.search.shrink import prescribed, shrink
from tests.race.explore.explore_settings import setting_of

# Late messages needed, and schedules until the fault is found. The first group takes a third of a second
# each, the second group more than a second, the last many seconds.
QUICK = {
    "second": (1, 100),
    "offset": (1, 100),
    "redirect": (1, 100),
    "memory": (1, 100),
    "joined": (1, 100),
}
MEDIUM = {
    "flush": (0, 200),
    "commit": (1, 200),
    "restart": (0, 200),
    "file": (0, 200),
    "results": (1, 200),
}
SLOW = {"missing": (1, 2_500), "pull-commit": (1, 1_500)}


def find(name: str, late: int, limit: int) -> None:
    fault = FAULTS[name]
    setting = setting_of(fault.model, ResetMode.FENCED, late=late, profile=fault.profile, fault=fault.enter)
    findings = Search(setting, 1, stop_at_first=True).run_all(limit)
    failing = findings.first
    assert failing is not None, f"not found in {findings.schedules} schedules"
    with Pool(setting, 1) as pool:
        shortest = shrink(pool, failing)
        steps = prescribed(shortest)
        (again,) = pool.run([ScheduleJob(names=steps, is_strict=True)])
        without_one = pool.run([ScheduleJob(names=steps[:n] + steps[n + 1 :]) for n in range(len(steps))])
    assert (again.error, again.broken) == ("", shortest.broken)
    assert again.laws & failing.laws
    assert size(shortest) <= size(failing)
    assert not [other for other in without_one if other.laws & failing.laws and size(other) < size(shortest)]


def size(outcome: ScheduleOutcome) -> tuple[int, int]:
    return outcome.deviations, len(prescribed(outcome))


@pytest.mark.parametrize("name", QUICK)
def test_a_fault_is_found(name: str) -> None:
    find(name, *QUICK[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", MEDIUM)
def test_a_fault_that_takes_a_second_is_found(name: str) -> None:
    find(name, *MEDIUM[name])


@pytest.mark.slow(full_only="it takes minutes; CI finds the other faults")
@pytest.mark.parametrize("name", SLOW)
def test_a_fault_that_takes_long_is_found(name: str) -> None:
    find(name, *SLOW[name])


def test_every_fault_has_a_test() -> None:
    assert {*QUICK, *MEDIUM, *SLOW} == set(FAULTS)
    assert len(FAULTS) >= 8
