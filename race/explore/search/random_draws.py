"""Draws random schedules, and has those run that the search does not know."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from rewindmq.race.explore.search.job import ScheduleJob
from rewindmq.race.explore.search.known import Draw, KnownSchedules
from rewindmq.race.explore.search.pool import BATCH
from rewindmq.race.explore.search.run import ScheduleOutcome

# Drawn schedules that have no outcome yet: at most this many.
_WINDOW: Final = 32 * BATCH


class RandomDraws:
    """Random schedules in the order of their numbers; those that the search knows are not run again.

    Two kinds of schedules may run more than once. A schedule whose job wants an account is always run, so the
    sample also checks what the search knows. Beyond the limit of known states, a schedule may be unknown when
    it is drawn again.

    Args:
        count: how many schedules to draw.
        new_job: returns the job of the schedule with a number.
        is_enough: True if no further schedule must be run.

    Attributes:
        known_count: number of schedules that ``ready`` returned and that equal one with a smaller number.
    """

    def __init__(
        self, count: int, new_job: Callable[[int], ScheduleJob], budget: int, is_enough: Callable[[], bool]
    ) -> None:
        self._count = count
        self._new_job = new_job
        self._budget = budget
        self._is_enough = is_enough
        self._schedules = KnownSchedules()
        self._drawn = 0
        # Jobs that no worker has yet.
        self._jobs: list[ScheduleJob] = []
        # Schedules that are being run, by the seed of their job.
        self._running: dict[str, Draw] = {}
        # Jobs of the schedules that wait for one that is being run, by number.
        self._waiting: dict[int, ScheduleJob] = {}
        # Outcomes by number that ``ready`` has not returned.
        self._outcomes: dict[int, ScheduleOutcome] = {}
        self._returned = 0
        # Choices of the schedules that ``ready`` returned.
        self._different: set[tuple[int, ...]] = set()
        self.known_count = 0

    def more(self) -> Sequence[ScheduleJob]:
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

    def _take(self, job: ScheduleJob, draw: Draw) -> None:
        outcome = self._schedules.advance(draw)
        if not job.with_account:
            if outcome is not None:
                self._outcomes[draw.number] = outcome
                return
            if not self._schedules.begin(draw):
                self._waiting[draw.number] = job
                return
            job = replace(job, known=len(draw.path))
        self._running[job.seed] = draw
        self._jobs.append(replace(job, begins=draw.path))

    def settle(self, job: ScheduleJob, outcome: ScheduleOutcome) -> None:
        """Take the outcome of a job.

        Raises:
            RaceError: the outcome differs from an earlier one of the same schedule.
        """
        draw = self._running.pop(job.seed)
        self._outcomes[draw.number] = outcome
        if job.with_account:
            self._schedules.add(outcome)
            return
        for waiting in self._schedules.end(draw, outcome):
            self._take(self._waiting.pop(waiting.number), waiting)

    def ready(self) -> Iterator[ScheduleOutcome]:
        """Yield the outcomes that have come, in the order of the schedules' numbers."""
        while self._returned in self._outcomes:
            outcome = self._outcomes.pop(self._returned)
            self._returned += 1
            # What the workers knew in time depends on their number; this count does not.
            self.known_count += outcome.taken in self._different
            self._different.add(outcome.taken)
            yield outcome
