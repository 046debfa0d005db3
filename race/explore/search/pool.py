"""Worker processes that run schedules. Each keeps worlds in which many schedules begin."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import select
import signal
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Self

from rewindmq.cluster.signals import stop_signals
from rewindmq.race.errors import RaceError
from rewindmq.race.explore.search.choosers import StepFollower
from rewindmq.race.explore.search.job import ScheduleJob, Setting
from rewindmq.race.explore.search.paused import PausedWorld
from rewindmq.race.explore.search.paused_worlds import PausedWorlds, at_rest
from rewindmq.race.explore.search.pipes import receive, send
from rewindmq.race.explore.search.run import ScheduleOutcome

BATCH: Final = 32
# Batches sent to a worker ahead of time, so that it never waits for the search.
_AHEAD: Final = 2
# Runs before the first fork: they fill caches that all later runs, in every child, then find filled.
_WARM_UP_RUNS: Final = 1


class _Worker:
    """The parent's side of a worker process.

    Args:
        others: the workers started before; the new process closes its copies of their pipes.
    """

    def __init__(self, setting: Setting, others: Sequence[_Worker]) -> None:
        self.waiting: list[Sequence[ScheduleJob]] = []
        with contextlib.ExitStack() as failed, contextlib.ExitStack() as of_child:
            jobs_read, self.jobs = _pipe(of_child, failed)
            self.results, results_write = _pipe(failed, of_child)
            self.pid = os.fork()
            if self.pid == 0:
                for worker in (self, *others):
                    os.close(worker.jobs)
                    os.close(worker.results)
                _serve(setting, jobs_read, results_write)
            failed.pop_all()

    def end(self) -> None:
        """Kill the process and its child."""
        os.close(self.jobs)
        os.close(self.results)
        for kill in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError):
                kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def _pipe(read: contextlib.ExitStack, write: contextlib.ExitStack) -> tuple[int, int]:
    """Return a new pipe's ends; each stack closes the end of its name."""
    ends = os.pipe()
    for end, closing in zip(ends, (read, write), strict=True):
        closing.callback(os.close, end)
    return ends


class Pool:
    """Runs jobs in worker processes; a context manager that ends all processes on exit.

    Args:
        setting: parameters of the worlds.
        workers: number of worker processes.
    """

    def __init__(self, setting: Setting, workers: int) -> None:
        self._setting = setting
        self._count = workers
        self._workers: list[_Worker] = []

    def __enter__(self) -> Self:
        # Python loses an interrupt that arrives during a fork.
        kept = signal.pthread_sigmask(signal.SIG_BLOCK, stop_signals())
        try:
            for _ in range(self._count):
                self._workers.append(_Worker(self._setting, self._workers))
        except BaseException:
            # A fork fails, for example at the limit of processes.
            self.__exit__()
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, kept)
        return self

    def __exit__(self, *exception: object) -> None:
        for worker in self._workers:
            worker.end()
        self._workers.clear()

    def run(self, jobs: Sequence[ScheduleJob]) -> list[ScheduleOutcome]:
        """Run jobs; return their outcomes in the same order."""
        left = list(enumerate(jobs))
        outcomes: dict[int, ScheduleOutcome] = {}
        numbers = {id(job): number for number, job in left}
        queue = list(jobs)

        def more() -> list[ScheduleJob]:
            batch, queue[:] = queue[:BATCH], queue[BATCH:]
            return batch

        for job, outcome in self.stream(more):
            outcomes[numbers[id(job)]] = outcome
        return [outcomes[number] for number in range(len(jobs))]

    def stream(
        self, more: Callable[[], Sequence[ScheduleJob]]
    ) -> Iterator[tuple[ScheduleJob, ScheduleOutcome]]:
        """Run the batches that ``more`` returns, until it returns none and all jobs are done.

        Args:
            more: called whenever a worker has room; may create jobs from the outcomes yielded so far.

        Raises:
            RaceError: a worker failed.
        """
        while True:
            for worker in sorted(self._workers, key=lambda worker: len(worker.waiting)):
                while len(worker.waiting) < _AHEAD and (batch := more()):
                    worker.waiting.append(batch)
                    send(worker.jobs, batch)
            busy = {worker.results: worker for worker in self._workers if worker.waiting}
            if not busy:
                return
            readable, _, _ = select.select(list(busy), [], [])
            for results in readable:
                outcomes = receive(results)
                if outcomes is None:
                    raise RaceError("a worker process of the search ended unexpectedly")
                if isinstance(outcomes, str):
                    raise RaceError(f"a worker process of the search failed: {outcomes}")
                yield from zip(busy[results].waiting.pop(0), outcomes, strict=True)


def _serve(setting: Setting, jobs: int, results: int) -> None:
    """Run the worker process; does not return."""
    try:
        os.setpgid(0, 0)
        for number in stop_signals():
            # A terminal sends these signals to every process; the parent ends this one.
            signal.signal(number, signal.SIG_IGN)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        logging.disable(logging.CRITICAL)
        with setting.fault():
            for _ in range(_WARM_UP_RUNS):
                PausedWorld(at_rest(setting), setting.budget).play(StepFollower((), is_strict=False))
            gc.disable()
            worlds = PausedWorlds(setting)
            while (batch := receive(jobs)) is not None:
                worlds.run(batch, results)
    except RaceError as error:
        send(results, str(error))
    except BaseException:
        send(results, traceback.format_exc(limit=-4))
    os._exit(0)
