"""Worlds in which many schedules begin: at rest, or paused after the choice that opens the window.

A fork costs about as much as a schedule, so one child runs several, each in its own world. Worlds with the
same beginning are alike. A child's changes to them end with the child.
"""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Sequence

from rewindmq.race.errors import RaceError
from rewindmq.race.explore.model.simulated_cluster import SimulatedCluster
from rewindmq.race.explore.search.job import Path, ScheduleJob, Setting
from rewindmq.race.explore.search.paused import PausedWorld
from rewindmq.race.explore.search.pipes import send
from rewindmq.race.explore.search.run import ScheduleOutcome


class PausedWorlds:
    """The worlds of a worker process, by the choices with which they begin."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._worlds: dict[Path, list[PausedWorld]] = {}

    def run(self, batch: Sequence[ScheduleJob], results: int) -> None:
        """Run a batch in a child, which writes the outcomes to the descriptor ``results``.

        Raises:
            RaceError: the child ended before it had written all outcomes.
        """
        self._build(batch)
        child = os.fork()
        if child == 0:
            worlds = {begin: iter(worlds) for begin, worlds in self._worlds.items()}
            send(results, [_run(next(worlds[_begin(job)]), job, self._setting) for job in batch])
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status:
            raise RaceError(f"a child process of the search was ended {_cause(status)}")

    def _build(self, batch: Sequence[ScheduleJob]) -> None:
        """Build the worlds that a batch needs, as far as they do not exist."""
        missing = Counter(map(_begin, batch))
        missing.subtract({begin: len(worlds) for begin, worlds in self._worlds.items()})
        for begin, count in missing.items():
            for _ in range(count):
                world = PausedWorld(at_rest(self._setting), self._setting.budget)
                if begin:
                    world.advance(begin)
                self._worlds.setdefault(begin, []).append(world)
        if any(count > 0 for count in missing.values()):
            # Frozen objects are not touched by the collector, so a fork does not copy their pages.
            gc.collect()
            gc.freeze()


def at_rest(setting: Setting) -> SimulatedCluster:
    """Return a new cluster that has come to rest."""
    cluster = SimulatedCluster(setting.model, setting.mode, setting.profile)
    cluster.world.play(cluster.come_to_rest())
    return cluster


def _cause(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    return f"by signal {-code}" if code < 0 else f"with status {code}"


def _begin(job: ScheduleJob) -> Path:
    """Return the first choice of a schedule, which opens the window, if another choice is known to follow."""
    return job.path[:1] if len(job.path) > 1 else ()


def _run(world: PausedWorld, job: ScheduleJob, setting: Setting) -> ScheduleOutcome:
    chooser = job.chooser(setting.budget)
    try:
        outcome = world.play(chooser, with_account=job.with_account)
    except RaceError as error:
        return ScheduleOutcome(tuple(chooser.taken), error=str(error))
    if not job.seed:
        return outcome
    new = chooser.options[job.known :]
    return outcome._replace(options=tuple(tuple((step.kind, step.name) for step in steps) for steps in new))
