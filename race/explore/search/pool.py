"""Worker processes that run schedules: each keeps worlds at rest and forks a child per batch of schedules.

A fork costs about as much as a schedule, so one child runs several, each in its own world. All worlds are
built alike. A child's changes to them end with the child.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import pickle
import select
import signal
import struct
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final, Self

from rewindmq.cluster.signals import stop_signals
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.errors import RaceError
from rewindmq.race.explore.model.model import Model
from rewindmq.race.explore.model.simulated_cluster import SimulatedCluster
from rewindmq.race.explore.search.choosers import Chooser, Follower, PctChooser, UniformChooser
from rewindmq.race.explore.search.explorer import Branch, Explorer
from rewindmq.race.explore.search.run import Outcome, play_schedule
from rewindmq.race.explore.search.strategy import Strategy

BATCH: Final = 32
# Batches sent to a worker ahead of time, so that it never waits for the search.
_AHEAD: Final = 2
_LENGTH: Final = struct.Struct(">I")
# Runs before the first fork: they fill caches that all later runs, in every child, then find filled.
_WARM_UP_RUNS: Final = 1


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
class Job:
    """One schedule to run, given by exactly one of ``branch``, ``names`` and ``seed``.

    Attributes:
        branch: a path of an exhaustive search.
        names: the names of the steps to take, see ``Follower``.
        is_strict: see ``Follower``.
        seed, strategy: a random schedule.
        changes, length: only for ``Strategy.PCT``, see ``PctChooser``.
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
    known: int = 0
    with_account: bool = False

    def chooser(self, budget: int) -> Chooser:
        """Return the chooser that runs this schedule."""
        if self.branch is not None:
            return Explorer(self.branch, budget)
        if self.names is not None:
            return Follower(self.names, is_strict=self.is_strict)
        if self.strategy is Strategy.UNIFORM:
            return UniformChooser(self.seed)
        return PctChooser(self.seed, changes=self.changes, length=self.length)


class _Worker:
    """The parent's side of a worker process.

    Args:
        others: the workers started before; the new process closes its copies of their pipes.
    """

    def __init__(self, setting: Setting, others: Sequence[_Worker]) -> None:
        jobs_read, self.jobs = os.pipe()
        self.results, results_write = os.pipe()
        self.waiting: list[Sequence[Job]] = []
        self.pid = os.fork()
        if self.pid == 0:
            for worker in (self, *others):
                os.close(worker.jobs)
                os.close(worker.results)
            _serve(setting, jobs_read, results_write)
        os.close(jobs_read)
        os.close(results_write)

    def end(self) -> None:
        """Kill the process and its child."""
        os.close(self.jobs)
        os.close(self.results)
        for kill in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError):
                kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


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
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, kept)
        return self

    def __exit__(self, *exception: object) -> None:
        for worker in self._workers:
            worker.end()
        self._workers.clear()

    def run(self, jobs: Sequence[Job]) -> list[Outcome]:
        """Run jobs; return their outcomes in the same order."""
        left = list(enumerate(jobs))
        outcomes: dict[int, Outcome] = {}
        numbers = {id(job): number for number, job in left}
        queue = list(jobs)

        def more() -> list[Job]:
            batch, queue[:] = queue[:BATCH], queue[BATCH:]
            return batch

        for job, outcome in self.stream(more):
            outcomes[numbers[id(job)]] = outcome
        return [outcomes[number] for number in range(len(jobs))]

    def stream(self, more: Callable[[], Sequence[Job]]) -> Iterator[tuple[Job, Outcome]]:
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
                    _send(worker.jobs, batch)
            busy = {worker.results: worker for worker in self._workers if worker.waiting}
            if not busy:
                return
            readable, _, _ = select.select(list(busy), [], [])
            for results in readable:
                outcomes = _receive(results)
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
                play_schedule(_at_rest(setting), Follower((), is_strict=False), budget=setting.budget)
            worlds: list[SimulatedCluster] = []
            gc.disable()
            while (batch := _receive(jobs)) is not None:
                if len(worlds) < len(batch):
                    worlds += [_at_rest(setting) for _ in range(len(batch) - len(worlds))]
                    # Frozen objects are not touched by the collector, so a fork does not copy their pages.
                    gc.collect()
                    gc.freeze()
                child = os.fork()
                if child == 0:
                    _send(
                        results,
                        [_run(world, job, setting) for world, job in zip(worlds, batch, strict=False)],
                    )
                    os._exit(0)
                os.waitpid(child, 0)
    except BaseException:
        _send(results, traceback.format_exc(limit=-4))
    os._exit(0)


def _at_rest(setting: Setting) -> SimulatedCluster:
    cluster = SimulatedCluster(setting.model, setting.mode, setting.profile)
    cluster.world.play(cluster.come_to_rest())
    return cluster


def _run(world: SimulatedCluster, job: Job, setting: Setting) -> Outcome:
    chooser = job.chooser(setting.budget)
    try:
        outcome = play_schedule(world, chooser, budget=setting.budget, with_account=job.with_account)
    except RaceError as error:
        return Outcome(tuple(chooser.taken), error=str(error))
    if not job.seed:
        return outcome
    new = chooser.options[job.known :]
    return outcome._replace(options=tuple(tuple((step.kind, step.name) for step in steps) for steps in new))


def _send(descriptor: int, value: Any) -> None:
    data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    view = memoryview(_LENGTH.pack(len(data)) + data)
    while view:
        view = view[os.write(descriptor, view) :]


def _receive(descriptor: int) -> Any:
    """Read one value; None at the end of the pipe."""
    head = _read(descriptor, _LENGTH.size)
    return None if head is None else pickle.loads(_read(descriptor, _LENGTH.unpack(head)[0]) or b"")  # noqa: S301


def _read(descriptor: int, size: int) -> bytes | None:
    data = b""
    while len(data) < size:
        piece = os.read(descriptor, size - len(data))
        if not piece:
            return None
        data += piece
    return data
