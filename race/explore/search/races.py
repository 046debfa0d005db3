"""Finds races: pairs of dependent steps whose order could be reversed, and the options that reverse it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rewindmq.race.explore.schedule.step import EVERYWHERE, Step, StepKind

Hosts = frozenset[str]


@dataclass(slots=True)
class RunStep:
    """A step of a run.

    Attributes:
        step: the step taken.
        options: the steps that were possible.
        asleep: the sleep set at that state.
        touched: the hosts that took part in the step; empty while it runs.
    """

    step: Step
    options: list[Step]
    asleep: dict[str, Hosts]
    touched: Hosts = frozenset()


def depend(one: Hosts, other: Hosts) -> bool:
    """Return True if steps that touched these hosts depend on each other."""
    return EVERYWHERE in one or EVERYWHERE in other or not one.isdisjoint(other)


def find_races(events: Sequence[RunStep], budget: int) -> dict[int, list[tuple[int, ...]]]:
    """Return groups of options by event number.

    Of each group, the search must try one option in place of that event.
    """
    wanted: dict[int, list[tuple[int, ...]]] = {}
    first = late = 0
    for number, event in enumerate(events):
        if EVERYWHERE in event.touched or number == len(events) - 1:
            _Segment(events, first, number + 1, budget - late).find(wanted)
            first = number + 1
            late += event.step.cost
    return wanted


class _Segment:
    """Steps up to and including a step that depends on all others; no step is reordered across that step."""

    def __init__(self, events: Sequence[RunStep], first: int, end: int, budget: int) -> None:
        self._events = events
        self._first = first
        self._end = end
        self._budget = budget
        # For each step, a bit mask of the steps of the segment that had to come before it.
        self._before: list[int] = []
        for later in range(first, end):
            bits = 0
            for earlier in range(first, later):
                if self._depends(events[later], earlier):
                    bits |= 1 << (earlier - first) | self._before[earlier - first]
            self._before.append(bits)

    def _depends(self, later: RunStep, earlier: int) -> bool:
        return later.step.born == earlier or depend(self._events[earlier].touched, later.touched)

    def _had_to_come_before(self, earlier: int, later: int) -> bool:
        return bool(self._before[later - self._first] >> (earlier - self._first) & 1)

    def find(self, wanted: dict[int, list[tuple[int, ...]]]) -> None:
        """Add the groups of options to try to ``wanted``."""
        for later in range(self._first + 1, self._end):
            for earlier in range(self._first, later):
                if self._is_race(earlier, later):
                    group = self._initials(earlier, later)
                    if group and group not in wanted.setdefault(earlier, []):
                        wanted[earlier].append(group)

    def _is_race(self, earlier: int, later: int) -> bool:
        one, other = self._events[earlier], self._events[later]
        if len(one.options) == 1 or one.step.is_free or other.step.is_free:
            return False
        if not depend(one.touched, other.touched):
            return False
        if other.step.kind is StepKind.TICK:
            return one.step.kind is StepKind.DELIVER and self._may_be_late(earlier, other.step)
        if self._depends_on(other.step.born, earlier):
            return False
        if one.step.lane and one.step.lane == other.step.lane:
            return False
        return not any(
            self._had_to_come_before(earlier, between) and self._had_to_come_before(between, later)
            for between in range(earlier + 1, later)
        )

    def _may_be_late(self, number: int, tick: Step) -> bool:
        """True if the budget allows the step's message to become late too when time passes at ``tick``."""
        others = [sent for sent in tick.delayed if not self._depends_on(sent, number)]
        return len(others) < self._budget

    def _depends_on(self, later: int, earlier: int) -> bool:
        return later == earlier or (later > earlier and self._had_to_come_before(earlier, later))

    def _initials(self, earlier: int, later: int) -> tuple[int, ...]:
        """Return the options in place of ``earlier`` that can begin the reversed order."""
        sequence = [
            between for between in range(earlier + 1, later) if not self._had_to_come_before(earlier, between)
        ]
        sequence.append(later)
        options = self._events[earlier].options
        found = []
        for position, number in enumerate(sequence):
            if any(self._had_to_come_before(known, number) for known in sequence[:position]):
                continue
            step = self._events[number].step
            is_tick = step.kind is StepKind.TICK
            found += [
                index
                for index, option in enumerate(options)
                if option.name == step.name or (is_tick and option.kind is StepKind.TICK)
            ]
        return tuple(found)
