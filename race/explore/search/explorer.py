"""One path of an exhaustive search, and the states at which other paths must branch off.

Dynamic partial-order reduction (Flanagan and Godefroid 2005) with source sets (Abdulla et al. 2014) and sleep
sets (Godefroid 1996). Two steps depend on each other if a host took part in both. Of schedules that differ
only in the order of independent steps, the search runs one. If the order of two dependent steps could be
reversed, the search also tries the other order at the state before the first of them.

Free steps (actions and late messages) are tried at every state where they are possible.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from rewindmq.race.errors import RaceError
from rewindmq.race.explore.schedule.step import EVERYWHERE, Step
from rewindmq.race.explore.search.choosers import RecordingChooser
from rewindmq.race.explore.search.races import Hosts, RunStep, depend, find_races


class EquivalentError(RaceError):
    """Every possible next step leads to a schedule that is equivalent to one already explored."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A path to run.

    Attributes:
        path: index of the step to take at each of the first states with a choice.
        asleep: the sleep set at the last of these states, with the hosts that each step touches. A schedule
            that takes one of these steps next is equivalent to an explored one.
    """

    path: tuple[int, ...] = ()
    asleep: Mapping[str, Hosts] = field(default_factory=dict)


class ChoiceState(NamedTuple):
    """A state with a choice in a run.

    Attributes:
        names: names of the possible steps; empty on the prescribed path, where the tree knows them.
        taken: index of the step taken.
        touched: the hosts that took part in that step.
        asleep: the sleep set; on the prescribed path the tree knows it.
        wanted: groups of indexes; the search must try one step of each group here.
    """

    names: tuple[str, ...]
    taken: int
    touched: Hosts
    asleep: Mapping[str, Hosts]
    wanted: tuple[tuple[int, ...], ...]


class Explorer(RecordingChooser):
    """Chooser that follows a branch, and then takes the first step that is not in the sleep set."""

    def __init__(self, branch: Branch, budget: int) -> None:
        super().__init__()
        self._branch = branch
        self._budget = budget
        self._asleep: dict[str, Hosts] = {}
        self._events: list[RunStep] = []

    def choose(self, steps: list[Step], touched: set[str]) -> Step:
        self._finish_last(touched)
        return super().choose(steps, touched)

    def pick(self, steps: list[Step]) -> int:
        depth, path = len(self.taken), self._branch.path
        if depth < len(path):
            taken = path[depth]
            if depth == len(path) - 1:
                self._asleep = dict(self._branch.asleep)
        else:
            awake = [index for index, step in enumerate(steps) if step.name not in self._asleep]
            if not awake:
                raise EquivalentError("equivalent to a schedule already explored")
            taken = awake[0]
        self._events.append(RunStep(steps[taken], steps, self._asleep))
        return taken

    def take_only(self, step: Step) -> None:
        if len(self.taken) >= len(self._branch.path) and step.name in self._asleep:
            raise EquivalentError("equivalent to a schedule already explored")
        self._events.append(RunStep(step, [step], self._asleep))

    def end(self, touched: set[str]) -> None:
        self._finish_last(touched)

    def _finish_last(self, touched: set[str]) -> None:
        """Complete the last step: remove the steps that depend on it from the sleep set."""
        if not self._events or self._events[-1].touched:
            return
        hosts = frozenset(touched)
        self._events[-1].touched = hosts
        self._asleep = {name: known for name, known in self._asleep.items() if not depend(known, hosts)}

    def states(self) -> tuple[ChoiceState, ...]:
        """Return the states with a choice, in order, with the steps that must be tried at each."""
        wanted = find_races(self._events, self._budget)
        known = len(self._branch.path)
        states: list[ChoiceState] = []
        for number, event in enumerate(self._events):
            if len(event.options) == 1:
                continue
            free = [(index,) for index, step in enumerate(event.options) if step.is_free]
            states.append(
                ChoiceState(
                    tuple(step.name for step in event.options) if len(states) >= known else (),
                    event.options.index(event.step),
                    event.touched or frozenset({EVERYWHERE}),
                    event.asleep,
                    (*free, *wanted.get(number, ())),
                )
            )
        return tuple(states)
