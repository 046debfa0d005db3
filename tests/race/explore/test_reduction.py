"""Leaving out schedules that differ only in the order of independent steps loses no outcome."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rewindmq.protocol.points import Point
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.explore.schedule.step import EVERYWHERE, Step, StepKind
from rewindmq.race.explore.search.explorer import Branch
from rewindmq.race.explore.search.job import ScheduleJob, Setting
from rewindmq.race.explore.search.pool import BATCH, Pool
from rewindmq.race.explore.search.races import RunStep, find_races
from rewindmq.race.explore.search.run import ScheduleOutcome
from rewindmq.race.explore.search.tree import Tree
from rewindmq.race.history import History
from tests.race.explore.explore_settings import FULL, setting_of


def outcome_of(outcome: ScheduleOutcome) -> tuple[object, ...]:
    """Return the events of each host in its own order, and the broken laws."""
    assert outcome.account is not None
    lives: dict[str, list[str]] = {}
    for event in History.from_lines(outcome.account.history):
        if event.kind not in (Point.PERSIST_TICK, Point.REBALANCED):
            # Times are left out: a late message may wait for a timer that changes nothing.
            lives.setdefault(event.process, []).append(f"{event.kind} {sorted(event.details.items())}")
    return outcome.laws, tuple(sorted((process, tuple(life)) for process, life in lives.items()))


def every_order(setting: Setting) -> list[ScheduleOutcome]:
    """Run every sequence of choices, without reduction."""
    outcomes = []
    waiting: list[tuple[int, ...]] = [()]
    with Pool(setting, 1) as pool:
        while waiting:
            batch, waiting = waiting[-BATCH:], waiting[:-BATCH]
            found = pool.run([ScheduleJob(branch=Branch(path), with_account=True) for path in batch])
            for path, outcome in zip(batch, found, strict=True):
                for depth in range(len(path), len(outcome.taken)):
                    others = range(1, len(outcome.states[depth].names))
                    waiting += [(*outcome.taken[:depth], index) for index in others]
            outcomes += found
    return outcomes


def reduced(setting: Setting) -> list[ScheduleOutcome]:
    """Run the schedules of an exhaustive search."""
    outcomes = []
    tree, waiting = Tree(), [Branch()]
    with Pool(setting, 1) as pool:
        while waiting:
            found = pool.run([ScheduleJob(branch=branch, with_account=True) for branch in waiting])
            waiting = [branch for outcome in found for branch in tree.add(outcome.states)]
            outcomes += [outcome for outcome in found if not outcome.is_equivalent]
    return outcomes


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "late", "window"),
    [
        pytest.param(ResetMode.CLASSIC, 0, 10.5, marks=FULL),
        pytest.param(ResetMode.CLASSIC, 1, 4.0, marks=pytest.mark.slow),
        (ResetMode.SERVER, 1, 4.0),
        pytest.param(ResetMode.FENCED, 1, 5.5, marks=FULL),
    ],
)
def test_a_reduced_search_finds_every_outcome(mode: ResetMode, late: int, window: float) -> None:
    setting = setting_of("one-reset", mode, late=late)
    setting = replace(setting, model=replace(setting.model, phases=(3.0,), window=window))
    all_orders, some_orders = every_order(setting), reduced(setting)
    assert {outcome_of(outcome) for outcome in some_orders} == {outcome_of(each) for each in all_orders}
    assert len(some_orders) < len(all_orders)


def step(name: str, host: str, *, lane: str = "", born: int = 0) -> Step:
    kind = StepKind.DELIVER if lane else StepKind.FIRE
    return Step(kind, name, host, lambda: None, lane=lane, born=born)


def event(taken: Step, *others: Step, touched: str | None = None) -> RunStep:
    return RunStep(taken, [taken, *others], {}, frozenset((touched or taken.host).split()))


# The step that opens the window; all earlier steps are over.
BEGIN = event(Step(StepKind.ACT, "begin", EVERYWHERE, lambda: None))


def test_two_messages_for_one_host_race() -> None:
    one, two = step("one", "x", lane="a->x"), step("two", "x", lane="b->x")
    assert find_races([BEGIN, event(one, two), event(two)], 0) == {1: [(1,)]}


def test_messages_for_two_hosts_do_not_race() -> None:
    one, two = step("one", "x", lane="a->x"), step("two", "y", lane="b->y")
    assert find_races([BEGIN, event(one, two), event(two)], 0) == {}


@pytest.mark.parametrize("later", [step("two", "x", lane="a->x"), step("two", "x", lane="b->x", born=1)])
def test_a_step_that_depends_on_an_earlier_one_does_not_race_with_it(later: Step) -> None:
    """Neither the next message of the same lane, nor a message that the first step sent."""
    one, other = step("one", "x", lane="a->x"), step("other", "y", lane="a->y")
    assert find_races([BEGIN, event(one, other), event(later)], 0) == {}


def test_a_race_with_a_consequence_of_another_step_begins_with_that_step() -> None:
    """``two`` sends ``three``, so reversing ``one`` and ``three`` must begin with ``two``."""
    one, two = step("one", "x", lane="a->x"), step("two", "y", lane="b->y")
    three = step("three", "x", lane="y->x", born=2)
    assert find_races([BEGIN, event(one, two), event(two), event(three)], 0) == {1: [(1,)]}


@pytest.mark.parametrize(("budget", "wanted"), [(0, {}), (1, {1: [(1,)]})])
def test_time_passes_before_a_message_if_it_may_be_late(
    budget: int, wanted: dict[int, list[tuple[int, ...]]]
) -> None:
    one = step("one", "x", lane="a->x")
    passes = Step(StepKind.TICK, "time passes", EVERYWHERE, lambda: None)
    late = Step(StepKind.TICK, "time passes, late: one", EVERYWHERE, lambda: None, delayed=(0,))
    assert find_races([BEGIN, event(one, late), event(passes)], budget) == wanted
