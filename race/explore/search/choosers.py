"""Choosers: follow a given list of steps, or draw steps by chance."""

from __future__ import annotations

import random
from collections.abc import Sequence

from rewindmq.race.errors import RaceError
from rewindmq.race.explore.schedule.step import Step, StepKind


class Chooser:
    """Base: takes the first step, and writes down what was taken where there was a choice.

    Attributes:
        taken, names: index and name of each step taken.
    """

    def __init__(self) -> None:
        self.taken: list[int] = []
        self.names: list[str] = []

    def choose(self, steps: list[Step], touched: set[str]) -> Step:
        """See ``scheduler.Chooser``."""
        if len(steps) == 1:
            self.pass_by(steps[0])
            return steps[0]
        taken = self.pick(steps)
        self.taken.append(taken)
        self.names.append(steps[taken].name)
        return steps[taken]

    def pick(self, steps: list[Step]) -> int:
        """Index of the step to take, of two at least."""
        return 0

    def pass_by(self, step: Step) -> None:
        """The only step possible is taken."""

    def end(self, touched: set[str]) -> None:
        """The window is over."""


class Follower(Chooser):
    """Takes the steps of a schedule by name, and the first possible one after its end.

    Args:
        names: one for each state with a choice.
        is_strict: whether a step that is not possible is an error; else it is passed over, and the earliest
            of the rest that is possible is taken.
    """

    def __init__(self, names: Sequence[str], *, is_strict: bool) -> None:
        super().__init__()
        self._left = list(names)
        self._is_strict = is_strict

    def pick(self, steps: list[Step]) -> int:
        if not self._left:
            return 0
        possible = {step.name: index for index, step in reversed(list(enumerate(steps)))}
        if self._is_strict:
            name = self._left.pop(0)
            if name not in possible:
                number = len(self.taken) + 1
                raise RaceError(f"choice {number} of the schedule no longer exists: {name!r}")
            return possible[name]
        for position, name in enumerate(self._left):
            if name in possible:
                del self._left[position]
                return possible[name]
        return 0


class RandomChooser(Chooser):
    """Probabilistic concurrency testing (Burckhardt et al. 2010), with lateness.

    Everything that steps (a lane, the timers of a host) has a priority drawn by chance, and the highest
    steps. Time passes when nothing else is left. At ``changes`` moments drawn by chance, what would step
    next is put behind everything, time included, for a while. Actions come at moments drawn by chance, or
    not at all.

    Args:
        length: about how many choices a schedule has.
    """

    def __init__(self, seed: str, *, changes: int, length: int) -> None:
        super().__init__()
        self._random = random.Random(seed)
        self._length = length
        self._changes = {self._random.randrange(length) for _ in range(changes)}
        self._priorities: dict[str, float] = {}
        self._due: dict[str, int] = {}
        self._demoted: dict[str, int] = {}

    def pick(self, steps: list[Step]) -> int:
        now = len(self.taken)
        ranks = [self._rank(step, now) for step in steps]
        best = max(range(len(steps)), key=ranks.__getitem__)
        if now in self._changes and steps[best].kind in (StepKind.DELIVER, StepKind.FIRE):
            self._demoted[_who(steps[best])] = now + 1 + self._random.randrange(self._length)
            ranks[best] = self._rank(steps[best], now)
            best = max(range(len(steps)), key=ranks.__getitem__)
        return best

    def _rank(self, step: Step, now: int) -> float:
        who = _who(step)
        if step.kind is StepKind.TICK:
            return 0.0
        if step.kind is StepKind.ACT:
            if who not in self._due:
                self._due[who] = now + self._random.randrange(2 * self._length)
            return 2.0 if now >= self._due[who] else -2.0
        if self._demoted.get(who, 0) > now:
            return -1.0
        if who not in self._priorities:
            self._priorities[who] = 0.1 + self._random.random()
        return self._priorities[who]


def _who(step: Step) -> str:
    """What takes a step: the lane of a message, the host of timers, the action itself."""
    if step.kind is StepKind.DELIVER:
        return step.name.split(" ", 2)[1]
    return step.name
