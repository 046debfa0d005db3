"""A schedule to run, and the parameters of the worlds that run it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.explore.model.model import Model
from rewindmq.race.explore.search.choosers import PctChooser, RecordingChooser, StepFollower, UniformChooser
from rewindmq.race.explore.search.explorer import Branch, Explorer
from rewindmq.race.explore.search.strategy import Strategy

# Indexes of the steps taken at the first states with a choice.
Path = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Setting:
    """Parameters of the worlds in which a search runs its schedules.

    Attributes:
        budget: how many messages of a schedule may be late.
        fault: context manager that puts a deliberate fault into the code.
    """

    model: Model
    mode: ResetMode
    profile: Profile
    budget: int
    fault: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext


@dataclass(frozen=True, slots=True)
class ScheduleJob:
    """One schedule to run, given by exactly one of ``branch``, ``names`` and ``seed``.

    Attributes:
        branch: a path of an exhaustive search.
        names: the names of the steps to take, see ``StepFollower``.
        is_strict: see ``StepFollower``.
        seed, strategy: a random schedule.
        changes, length: only for ``Strategy.PCT``, see ``PctChooser``.
        begins: indexes of the steps with which a random schedule begins, as far as the search knows them.
        known: number of states at the beginning of a random schedule whose possible steps the search knows.
        with_account: True to return the run's steps and history.
    """

    branch: Branch | None = None
    names: tuple[str, ...] | None = None
    is_strict: bool = False
    seed: str = ""
    strategy: Strategy = Strategy.PCT
    changes: int = 0
    length: int = 0
    begins: Path = ()
    known: int = 0
    with_account: bool = False

    @property
    def path(self) -> Path:
        """Indexes of the steps with which the schedule begins, as far as the search knows them."""
        return self.begins if self.branch is None else self.branch.path

    def chooser(self, budget: int) -> RecordingChooser:
        """Return the chooser that runs this schedule."""
        if self.branch is not None:
            return Explorer(self.branch, budget)
        if self.names is not None:
            return StepFollower(self.names, is_strict=self.is_strict)
        if self.strategy is Strategy.UNIFORM:
            return UniformChooser(self.seed)
        return PctChooser(self.seed, changes=self.changes, length=self.length)
