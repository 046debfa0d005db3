"""Runs the schedules of a model, all or some by chance, and takes down what came of them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from rewindmq.race.errors import RaceError
from rewindmq.race.explore.search.explorer import Branch
from rewindmq.race.explore.search.pool import BATCH, Job, Pool, Setting
from rewindmq.race.explore.search.run import Outcome
from rewindmq.race.explore.search.tree import Tree

# One in so many schedules is run twice, and so many at least.
REPEAT_EVERY: Final = 50
MIN_REPEATED: Final = 10
# Change points of a random schedule, and about how many choices it has.
_CHANGES: Final = 4
_LENGTH: Final = 30


@dataclass(slots=True)
class Findings:
    """What a search has found so far.

    Attributes:
        schedules: run to their end.
        equivalent: stopped early, because they are equivalent to schedules already explored.
        broken: schedules that broke a law, by law.
        bad: schedules that broke any.
        first: the failing schedule with the fewest deviations.
        first_number: how many schedules had been run when one failed for the first time.
        is_complete: every schedule of the model was run.
        repeated: schedules run twice.
        seconds: of real time.
    """

    schedules: int = 0
    equivalent: int = 0
    broken: Counter[str] = field(default_factory=Counter)
    bad: int = 0
    first: Outcome | None = None
    first_number: int = 0
    is_complete: bool = False
    repeated: int = 0
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Schedules per second, those given up too."""
        return (self.schedules + self.equivalent) / self.seconds if self.seconds else 0.0

    def add(self, outcome: Outcome) -> None:
        """One more."""
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
    """One search.

    Args:
        progress: called now and then.
        stop_at_first: a schedule that breaks a law is enough.
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
        self._samples: list[Outcome] = []
        self._started = 0

    def run_all(self, limit: int | None = None) -> Findings:
        """Every schedule; ``limit`` bounds how many are begun.

        Raises:
            RaceError: two runs of one schedule differed, or a worker broke down.
        """
        tree = Tree()
        waiting = [Branch()]

        def more() -> Sequence[Job]:
            room = BATCH if limit is None else min(BATCH, limit - self._started)
            if self._is_enough() or room <= 0:
                return ()
            # The latest first: what they branch off is still being explored, so little is remembered.
            batch, waiting[-room:] = waiting[-room:], []
            return [self._new_job(branch=branch) for branch in batch]

        for outcome in self._outcomes(more):
            waiting += tree.add(outcome.states)
        self.findings.is_complete = not waiting
        return self.findings

    def run_some(self, count: int, seed: int) -> Findings:
        """``count`` schedules by chance; see ``run_all``."""

        def more() -> Sequence[Job]:
            first = self._started
            if self._is_enough():
                return ()
            numbers = range(first, min(first + BATCH, count))
            return [self._new_job(seed=f"{seed} {n}", changes=_CHANGES, length=_LENGTH) for n in numbers]

        for _ in self._outcomes(more):
            pass
        return self.findings

    def _is_enough(self) -> bool:
        return self._stop_at_first and self.findings.first is not None

    def _new_job(
        self, *, branch: Branch | None = None, seed: str = "", changes: int = 0, length: int = 0
    ) -> Job:
        number = self._started
        self._started += 1
        is_sample = number < MIN_REPEATED or number % REPEAT_EVERY == 0
        return Job(branch=branch, seed=seed, changes=changes, length=length, with_account=is_sample)

    def _outcomes(self, more: Callable[[], Sequence[Job]]) -> Iterator[Outcome]:
        began = time.monotonic()
        with Pool(self._setting, self._workers) as pool:
            for _, outcome in pool.stream(more):
                if outcome.error:
                    raise RaceError(outcome.error)
                self.findings.add(outcome)
                if outcome.account is not None:
                    self._samples.append(outcome)
                yield outcome
                self.findings.seconds = time.monotonic() - began
                self._progress(self.findings)
        self._repeat()

    def _repeat(self) -> None:
        """Run the sample again in worlds built anew. RaceError where anything is not as it was."""
        jobs = [Job(names=outcome.names, is_strict=True, with_account=True) for outcome in self._samples]
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


def _size(outcome: Outcome) -> tuple[int, int]:
    return outcome.deviations, len(outcome.taken)


def _first_difference(one: str, other: str) -> str:
    for line, again in zip(one.splitlines(), other.splitlines(), strict=False):
        if line != again:
            return f"{line} and {again}"
    return "one is longer than the other"
