"""Schedule: the choices of one simulated run, drawn from a seed or replayed from a list."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

# A seed chooses how often something is late, and by how many seconds at most. So some seeds delay a few
# messages for long, and others delay many messages a little.
_RATES: Final = (0.01, 0.03, 0.1, 0.3)
_LONGEST: Final = (0.003, 0.03, 0.3, 3.0)
# A schedule kills each server that it may kill with this probability.
_KILL_RATE: Final = 0.8
_KILLED_AFTER: Final = (0.01, 20.0)
_DOWN: Final = (0.1, 20.0)

# Where a choice is made, and how many choices were made there before.
Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice that differs from its default.

    Attributes:
        value: seconds of a delay; 1 for a kill.
        at: virtual seconds since the run began.
        text: what happened, as one sentence without its time; empty if the schedule does not describe.
    """

    place: str
    number: int
    value: float
    at: float
    text: str

    @property
    def key(self) -> Key:
        """What a replay finds the choice by."""
        return self.place, self.number

    def __str__(self) -> str:
        return f"t={self.at:.3f} s: {self.text}"


@dataclass(frozen=True, slots=True)
class Kill:
    """A kill that a schedule may contain.

    Attributes:
        at, down: virtual seconds, from the test's begin to the kill, and from the kill to the restart.
        victim: number from 0 to 1 that chooses the server.
    """

    at: float
    down: float
    victim: float


class SimulatedSchedule:
    """The choices of one run. The default of each choice is: no delay, no kill.

    Args:
        longest: greatest delay, virtual seconds.
        kept: the choices of a replay; all others take their default. None draws each choice from the seed.
        describes: fill ``Choice.text``, which takes more time than the run itself.

    Attributes:
        taken: the choices that differed from their default, in their order.
    """

    def __init__(
        self,
        seed: int,
        longest: float,
        kept: Mapping[Key, float] | None = None,
        *,
        describes: bool = False,
    ) -> None:
        self._seed = seed
        self._random = random.Random(f"{seed} schedule")
        self._rate = self._random.choice(_RATES)
        self._longest = min(longest, self._random.choice(_LONGEST))
        self._kept = kept
        self._numbers: dict[str, int] = {}
        self.describes = describes
        self.taken: list[Choice] = []

    def delay(self, place: str, now: float, describe: Callable[[], str]) -> float:
        """Choose how many virtual seconds something at ``place`` is late."""
        number = self._numbers.get(place, 0)
        self._numbers[place] = number + 1
        if self._kept is not None:
            value = self._kept.get((place, number), 0.0)
        elif self._random.random() >= self._rate:
            return 0.0
        else:
            value = _readable(self._random.random() * self._longest)
        if value:
            text = f"{describe()} {_shown(value)}" if self.describes else ""
            self.taken.append(Choice(place, number, value, now, text))
        return value

    def kill(self, number: int) -> Kill | None:
        """Choose whether a kill happens, and when."""
        draw = random.Random(f"{self._seed} kill {number}")
        happens = draw.random() < _KILL_RATE
        kill = Kill(_between(draw, _KILLED_AFTER), _between(draw, _DOWN), draw.random())
        if self._kept is not None:
            happens = ("kill", number) in self._kept
        return kill if happens else None

    def note_kill(self, number: int, name: str, kill: Kill, now: float) -> None:
        """Record that a kill happened."""
        text = f"{name} was killed, and started again after {kill.down:g} s"
        self.taken.append(Choice("kill", number, 1.0, now, text))


def _readable(seconds: float) -> float:
    """Round a delay to whole milliseconds, or to 0.1 ms if it is shorter than 10 ms."""
    return round(seconds, 4 if seconds < 0.01 else 3)


def _shown(seconds: float) -> str:
    return f"{seconds * 1000:g} ms"


def _between(draw: random.Random, bounds: tuple[float, float]) -> float:
    """Draw a number whose logarithm is distributed uniformly."""
    low, high = bounds
    return float(f"{low * (high / low) ** draw.random():.3g}")
