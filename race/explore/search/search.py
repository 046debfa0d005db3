"""Runs all schedules of a model, or a random sample, and collects the outcomes."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from rewindmq.race.errors import RaceError
from rewindmq.race.explore.search.explorer import Branch
from rewindmq.race.explore.search.job import ScheduleJob, Setting
from rewindmq.race.explore.search.pool import BATCH, Pool
from rewindmq.race.explore.search.random_draws import RandomDraws
from rewindmq.race.explore.search.run import ScheduleOutcome
from rewindmq.race.explore.search.strategy import Strategy
from rewindmq.race.explore.search.tree import Tree

# One schedule in REPEAT_EVERY is run twice, and at least MIN_REPEATED.
REPEAT_EVERY: Final = 50
MIN_REPEATED: Final = 10
# Number of priority changes in a random schedule, and its approximate number of choices.
_CHANGES: Final = 4
_LENGTH: Final = 30


@dataclass(slots=True)
class Findings:
    """Findings of a search so far.

    Attributes:
        schedules: number of schedules run to their end, or known from an earlier run.
        known: number of random schedules that were drawn again.
        equivalent: number of schedules stopped early because an explored schedule is equivalent.
        broken: number of schedules that broke a law, by law.
        bad: number of schedules that broke any law.
        first: the failing schedule with the fewest deviations.
        first_number: number of the first failing schedule, from 1.
        is_complete: True if every schedule of the model was run.
        repeated: number of schedules run twice.
        seconds: real time spent.
    """

    schedules: int = 0
    known: int = 0
    equivalent: int = 0
    broken: Counter[str] = field(default_factory=Counter)
    bad: int = 0
    first: ScheduleOutcome | None = None
    first_number: int = 0
    is_complete: bool = False
    repeated: int = 0
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Schedules per second, including those stopped early and those drawn again."""
        return (self.schedules + self.equivalent) / self.seconds if self.seconds else 0.0

    @property
    def run_rate(self) -> float:
        """Different schedules run per second, including those stopped early."""
        return (self.schedules - self.known + self.equivalent) / self.seconds if self.seconds else 0.0

    def add(self, outcome: ScheduleOutcome) -> None:
        """Add the outcome of a schedule."""
        if outcome.is_equivalent:
            self.equivalent += 1
            return
        self.schedules += 1
        if not outcome.broken:
            return
        self.bad += 1
        self.broken.update(outcome.laws)
        if self.first is None:
            self.first_number = self.schedules
        if self.first is None or _size(outcome) < _size(self.first):
            self.first = outcome


class Search:
    """Search for schedules that break a law.

    Args:
        setting: parameters of the worlds.
        workers: number of worker processes.
        progress: called after each outcome with the findings so far.
        stop_at_first: True to stop at the first schedule that breaks a law.
    """

    def __init__(
        self,
        setting: Setting,
        workers: int,
        progress: Callable[[Findings], None] = lambda findings: None,
        *,
        stop_at_first: bool = False,
    ) -> None:
        self.findings = Findings()
        self._setting = setting
        self._workers = workers
        self._progress = progress
        self._stop_at_first = stop_at_first
        self._samples: list[ScheduleOutcome] = []
        self._started = 0
        self._began = 0.0

    def run_all(self, limit: int | None = None) -> Findings:
        """Run every schedule, or at most ``limit``.

        Raises:
            RaceError: two runs of one schedule differed, or a worker failed.
        """
        tree = Tree()
        waiting = [Branch()]

        def more() -> Sequence[ScheduleJob]:
            room = BATCH if limit is None else min(BATCH, limit - self._started)
            if self._is_enough() or room <= 0:
                return ()
            # Depth first keeps the number of waiting branches small.
            batch, waiting[-room:] = waiting[-room:], []
            return [self._new_job(ScheduleJob(branch=branch)) for branch in batch]

        for _, outcome in self._runs(more):
            waiting += tree.add(outcome.states)
            self._add(outcome)
        self._repeat()
        self.findings.is_complete = not waiting
        return self.findings

    def run_some(self, count: int, seed: int, strategy: Strategy = Strategy.PCT) -> Findings:
        """Draw ``count`` random schedules, and run those that are not known; see ``run_all``."""

        def new_job(number: int) -> ScheduleJob:
            text = f"{seed} {number}"
            return self._new_job(ScheduleJob(seed=text, strategy=strategy, changes=_CHANGES, length=_LENGTH))

        draws = RandomDraws(count, new_job, self._setting.budget, self._is_enough)
        for job, outcome in self._runs(draws.more):
            draws.settle(job, outcome)
            self._add_drawn(draws)
        self._add_drawn(draws)
        self._repeat()
        return self.findings

    def _add_drawn(self, draws: RandomDraws) -> None:
        for outcome in draws.ready():
            self.findings.known = draws.known_count
            self._add(outcome)

    def _is_enough(self) -> bool:
        return self._stop_at_first and self.findings.first is not None

    def _new_job(self, job: ScheduleJob) -> ScheduleJob:
        number = self._started
        self._started += 1
        is_sample = number < MIN_REPEATED or number % REPEAT_EVERY == 0
        return replace(job, with_account=is_sample)

    def _runs(
        self, more: Callable[[], Sequence[ScheduleJob]]
    ) -> Iterator[tuple[ScheduleJob, ScheduleOutcome]]:
        self._began = time.monotonic()
        with Pool(self._setting, self._workers) as pool:
            for job, outcome in pool.stream(more):
                if outcome.error:
                    raise RaceError(outcome.error)
                if outcome.account is not None:
                    self._samples.append(outcome)
                yield job, outcome

    def _add(self, outcome: ScheduleOutcome) -> None:
        self.findings.add(outcome)
        self.findings.seconds = time.monotonic() - self._began
        self._progress(self.findings)

    def _repeat(self) -> None:
        """Run the sample again in new worlds; raise RaceError if a trace differs."""
        jobs = [
            ScheduleJob(names=outcome.names, is_strict=True, with_account=True) for outcome in self._samples
        ]
        with Pool(self._setting, 1) as pool:
            for known, again in zip(self._samples, pool.run(jobs), strict=True):
                if known.account is None or again.account is None:
                    raise RaceError(f"a schedule could not be run twice: {again.error}")
                if known.account.digest != again.account.digest:
                    raise RaceError(
                        f"a schedule of {self._setting.model.name} gave two different traces when run twice:"
                        f" {_first_difference(known.account.history, again.account.history)}"
                    )
        self.findings.repeated = len(jobs)


def _size(outcome: ScheduleOutcome) -> tuple[int, int]:
    return outcome.deviations, len(outcome.taken)


def _first_difference(one: str, other: str) -> str:
    for line, again in zip(one.splitlines(), other.splitlines(), strict=False):
        if line != again:
            return f"{line} and {again}"
    return "one is longer than the other"
