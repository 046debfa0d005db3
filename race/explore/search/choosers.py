"""Choosers: follow a given list of steps, or pick steps at random."""

from __future__ import annotations

import random
from collections.abc import Sequence

from rewindmq.race.errors import RaceError
from rewindmq.race.explore.schedule.step import Step, StepKind


class RecordingChooser:
    """Base class: takes the first step, and records the step taken at each state with a choice.

    Attributes:
        taken, names: index and name of each recorded step.
        options: the steps that were possible at each of these states.
    """

    def __init__(self) -> None:
        self.taken: list[int] = []
        self.names: list[str] = []
        self.options: list[list[Step]] = []

    def choose(self, steps: list[Step], touched: set[str]) -> Step:
        """See ``scheduler.Chooser``."""
        if len(steps) == 1:
            self.take_only(steps[0])
            return steps[0]
        taken = self.pick(steps)
        self.taken.append(taken)
        self.names.append(steps[taken].name)
        self.options.append(steps)
        return steps[taken]

    def pick(self, steps: list[Step]) -> int:
        """Return the index of the step to take; ``steps`` has at least two."""
        return 0

    def take_only(self, step: Step) -> None:
        """Note that the only possible step is taken."""

    def pauses(self, steps: list[Step]) -> bool:
        """See ``scheduler.Chooser``."""
        return False

    def end(self, touched: set[str]) -> None:
        """Note the end of the window."""


class StepFollower(RecordingChooser):
    """Takes the steps of a schedule by name; after its last step, always the first possible step.

    Args:
        names: one step for each state with a choice.
        is_strict: True if an impossible step is an error. Otherwise the chooser takes the earliest remaining
            step that is possible.
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


class UniformChooser(RecordingChooser):
    """Takes each possible step with the same probability.

    Args:
        seed: seed of the random numbers.
    """

    def __init__(self, seed: str) -> None:
        super().__init__()
        self._random = random.Random(seed)

    def pick(self, steps: list[Step]) -> int:
        return self._random.randrange(len(steps))


class PctChooser(RecordingChooser):
    """Probabilistic concurrency testing (Burckhardt et al. 2010), extended by late messages.

    Each source of steps (a lane, the timers of a host) has a random priority; the highest one takes the next
    step. Time passes only if no other step is possible. At ``changes`` random states, the source of the next
    step falls behind all others, also behind the passing of time, for a random number of choices. Actions
    happen at random states, or not at all.

    Args:
        seed: seed of the random numbers.
        changes: number of states at which a priority falls.
        length: approximate number of choices in a schedule.
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
            self._demoted[_source(steps[best])] = now + 1 + self._random.randrange(self._length)
            ranks[best] = self._rank(steps[best], now)
            best = max(range(len(steps)), key=ranks.__getitem__)
        return best

    def _rank(self, step: Step, now: int) -> float:
        source = _source(step)
        if step.kind is StepKind.TICK:
            return 0.0
        if step.kind is StepKind.ACT:
            if source not in self._due:
                self._due[source] = now + self._random.randrange(2 * self._length)
            return 2.0 if now >= self._due[source] else -2.0
        if self._demoted.get(source, 0) > now:
            return -1.0
        if source not in self._priorities:
            self._priorities[source] = 0.1 + self._random.random()
        return self._priorities[source]


def _source(step: Step) -> str:
    """Return the source of a step: the lane of a message, the host of timers, or the action itself."""
    if step.kind is StepKind.DELIVER:
        return step.name.split(" ", 2)[1]
    return step.name
