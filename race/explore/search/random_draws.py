"""Draws random schedules, and has those run that the search does not know."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from rewindmq.race.explore.search.job import Job
from rewindmq.race.explore.search.known import Draw, KnownSchedules
from rewindmq.race.explore.search.pool import BATCH
from rewindmq.race.explore.search.run import Outcome

# Schedules drawn ahead of the first that has no outcome yet.
_WINDOW: Final = 32 * BATCH


class RandomDraws:
    """Random schedules in the order of their numbers, each run at most once.

    A schedule whose job wants an account is always run, so the sample also checks what the search knows.

    Args:
        count: how many schedules to draw.
        new_job: returns the job of the schedule with a number.
        is_enough: True if no further schedule must be run.

    Attributes:
        known_count: number of schedules drawn again and not run again, among those that ``ready`` returned.
    """

    def __init__(
        self, count: int, new_job: Callable[[int], Job], budget: int, is_enough: Callable[[], bool]
    ) -> None:
        self._count = count
        self._new_job = new_job
        self._budget = budget
        self._is_enough = is_enough
        self._schedules = KnownSchedules()
        self._drawn = 0
        # Jobs that no worker has yet.
        self._jobs: list[Job] = []
        # Schedules that are being run, by the seed of their job.
        self._running: dict[str, Draw] = {}
        # Jobs of the schedules that wait for one that is being run, by number.
        self._waiting: dict[int, Job] = {}
        # Outcomes by number that ``ready`` has not returned, and whether each schedule was known.
        self._outcomes: dict[int, tuple[Outcome, bool]] = {}
        self._returned = 0
        self.known_count = 0

    def more(self) -> Sequence[Job]:
        """Return the next jobs; see ``Pool.stream``."""
        if self._is_enough():
            return ()
        while (
            len(self._jobs) < BATCH
            and self._drawn < self._count
            and self._drawn < self._returned + len(self._outcomes) + _WINDOW
        ):
            job = self._new_job(self._drawn)
            draw = self._schedules.draw(self._drawn, job.chooser(self._budget))
            self._drawn += 1
            self._take(job, draw)
        # A small batch costs a fork like a large one, so it waits while workers are busy.
        if len(self._jobs) < BATCH // 2 and len(self._running) > len(self._jobs):
            return ()
        batch, self._jobs = self._jobs[:BATCH], self._jobs[BATCH:]
        return batch

    def _take(self, job: Job, draw: Draw) -> None:
        outcome = self._schedules.advance(draw)
        if not job.with_account:
            if outcome is not None:
                self._outcomes[draw.number] = outcome, True
                return
            if not self._schedules.begin(draw):
                self._waiting[draw.number] = job
                return
            job = replace(job, known=len(draw.path))
        self._running[job.seed] = draw
        self._jobs.append(replace(job, begins=draw.path))

    def settle(self, job: Job, outcome: Outcome) -> None:
        """Take the outcome of a job.

        Raises:
            RaceError: the outcome differs from an earlier one of the same schedule.
        """
        draw = self._running.pop(job.seed)
        self._outcomes[draw.number] = outcome, False
        if job.with_account:
            self._schedules.add(outcome)
            return
        for waiting in self._schedules.end(draw, outcome):
            self._take(self._waiting.pop(waiting.number), waiting)

    def ready(self) -> Iterator[Outcome]:
        """Yield the outcomes that have come, in the order of the schedules' numbers."""
        while self._returned in self._outcomes:
            outcome, is_known = self._outcomes.pop(self._returned)
            self._returned += 1
            self.known_count += is_known
            yield outcome
