"""One path of an exhaustive exploration, and where others have to branch off it.

Dynamic partial-order reduction (Flanagan and Godefroid 2005) with source sets (Abdulla et al. 2014) and sleep
sets (Godefroid 1996). Two steps depend on each other when a host took part in both. Of schedules that differ
only in the order of independent steps, one is run. Where two dependent steps came in an order they need not
have, the other order is asked for at the state before the first of them.

Free steps (actions, and messages that are late already) are tried wherever they are possible.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from rewindmq.race.errors import RaceError
from rewindmq.race.explore.schedule.step import EVERYWHERE, Step
from rewindmq.race.explore.search.choosers import Chooser
from rewindmq.race.explore.search.races import Event, Hosts, find_races, meet


class EquivalentError(RaceError):
    """Every possible next step leads to a schedule that is equivalent to one already explored."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A path to be run.

    Attributes:
        path: index of the step to take at each state with a choice, as far as it is prescribed.
        asleep: steps that need not come first after the last of these, and the hosts they touch.
    """

    path: tuple[int, ...] = ()
    asleep: Mapping[str, Hosts] = field(default_factory=dict)


class State(NamedTuple):
    """A state with a choice that a run came through.

    Attributes:
        names: of the steps possible; left out on the prescribed path, where they are known.
        taken: index of the one taken.
        touched: the hosts that took part in it.
        asleep: those that slept; of states on the prescribed path it is known already.
        wanted: groups of indexes, of each of which one has to be tried here.
    """

    names: tuple[str, ...]
    taken: int
    touched: Hosts
    asleep: Mapping[str, Hosts]
    wanted: tuple[tuple[int, ...], ...]


class Explorer(Chooser):
    """Runs a branch, and then whatever comes first and does not sleep."""

    def __init__(self, branch: Branch, budget: int) -> None:
        super().__init__()
        self._branch = branch
        self._budget = budget
        self._asleep: dict[str, Hosts] = {}
        self._events: list[Event] = []

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
        self._events.append(Event(steps[taken], steps, self._asleep))
        return taken

    def pass_by(self, step: Step) -> None:
        if len(self.taken) >= len(self._branch.path) and step.name in self._asleep:
            raise EquivalentError("equivalent to a schedule already explored")
        self._events.append(Event(step, [step], self._asleep))

    def end(self, touched: set[str]) -> None:
        self._finish_last(touched)

    def _finish_last(self, touched: set[str]) -> None:
        """The step taken last is over: who depends on it wakes up."""
        if not self._events or self._events[-1].touched:
            return
        hosts = frozenset(touched)
        self._events[-1].touched = hosts
        self._asleep = {name: known for name, known in self._asleep.items() if not meet(known, hosts)}

    def states(self) -> tuple[State, ...]:
        """The states with a choice, in order, and what has to be tried at each."""
        wanted = find_races(self._events, self._budget)
        known = len(self._branch.path)
        states: list[State] = []
        for number, event in enumerate(self._events):
            if len(event.options) == 1:
                continue
            free = [(index,) for index, step in enumerate(event.options) if step.is_free]
            states.append(
                State(
                    tuple(step.name for step in event.options) if len(states) >= known else (),
                    event.options.index(event.step),
                    event.touched or frozenset({EVERYWHERE}),
                    event.asleep,
                    (*free, *wanted.get(number, ())),
                )
            )
        return tuple(states)
