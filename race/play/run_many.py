"""Plays a race many times: simulated runs on every core, real runs concurrently in one event loop."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from types import FrameType
from typing import Any, Final, TypeVar

from rewindmq.cluster.signals import stop_signals
from rewindmq.protocol.remoting.process.runner import loop_factory
from rewindmq.race.history import History
from rewindmq.race.play.run import Plan, PlayOutcome, Staging, play_for_real, play_simulated

# Seeds in a batch for another process.
_CHUNK: Final = 10
_LOOK_SECONDS: Final = 0.1

T = TypeVar("T")
OnDone = Callable[[PlayOutcome], None]


class StoppedError(KeyboardInterrupt):
    """A signal to stop came; every started process has ended."""


def default_jobs(plan: Plan, count: int) -> int:
    """Return how many runs at a time suit this machine.

    A simulated run uses a whole core. A run in real time mostly waits. A held run mostly starts and ends
    processes.
    """
    cores = os.cpu_count() or 1
    if plan.staging is Staging.SIMULATED:
        return cores if count > 2 * _CHUNK else 1
    return 1 if plan.staging is Staging.HELD else min(count, 2 * cores)


def play_many(plan: Plan, numbers: range, jobs: int, on_done: OnDone) -> list[PlayOutcome]:
    """Play each seed (or number); return the outcomes in this order.

    The outcome of a simulated run in another process has no history; to get it, play the seed again.

    Args:
        on_done: called after each run, in the order in which runs end.

    Raises:
        StoppedError: SIGINT, SIGTERM or SIGHUP came.
    """
    if plan.staging is not Staging.SIMULATED:
        return _play_for_real(plan, numbers, jobs, on_done)
    with _stop_flag() as stopping:
        if jobs == 1:
            outcomes = []
            for seed in numbers:
                outcomes.append(_note(play_simulated(plan, seed), on_done))
                stopping.check()
            return outcomes
        return _play_in_pool(plan, numbers, jobs, on_done, stopping)


def _note(outcome: PlayOutcome, on_done: OnDone) -> PlayOutcome:
    on_done(outcome)
    return outcome


def _play_in_pool(
    plan: Plan, numbers: range, jobs: int, on_done: OnDone, stopping: _StopFlag
) -> list[PlayOutcome]:
    # Not forked: this process may have threads.
    context = multiprocessing.get_context("spawn")
    chunks = iter([numbers[start : start + _CHUNK] for start in range(0, len(numbers), _CHUNK)])
    outcomes: list[PlayOutcome] = []
    with ProcessPoolExecutor(jobs, context, initializer=_depend_on_parent) as pool:
        # Only as many batches as keep the processes busy: a stop waits for every submitted batch.
        waiting = deque(pool.submit(_play_chunk, plan, chunk) for chunk in islice(chunks, 2 * jobs))
        while waiting:
            done, _ = wait([waiting[0]], timeout=_LOOK_SECONDS)
            stopping.check()
            if done:
                outcomes += [_note(outcome, on_done) for outcome in waiting.popleft().result()]
                waiting.extend(pool.submit(_play_chunk, plan, chunk) for chunk in islice(chunks, 1))
    return outcomes


def _play_chunk(plan: Plan, numbers: range) -> list[PlayOutcome]:
    """Play seeds in a process of the pool; drop the histories, which are costly to send."""
    return [replace(play_simulated(plan, seed), history=History()) for seed in numbers]


def _depend_on_parent() -> None:
    """Ignore signals to stop in a process of the pool: the parent gets them too and ends the pool."""
    for number in stop_signals():
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    # A killed parent does not end the pool, and each process of the pool holds the pipes of the others open.
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


class _StopFlag:
    """Remembers a signal to stop. A handler that raises could interrupt the pool while it holds a lock."""

    def __init__(self) -> None:
        self._is_set = False

    def set(self, number: int, frame: FrameType | None) -> None:
        self._is_set = True

    def check(self) -> None:
        if self._is_set:
            raise StoppedError


@contextmanager
def _stop_flag() -> Iterator[_StopFlag]:
    flag = _StopFlag()
    before = {number: signal.signal(number, flag.set) for number in stop_signals()}
    try:
        yield flag
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _play_for_real(plan: Plan, numbers: range, jobs: int, on_done: OnDone) -> list[PlayOutcome]:
    async def main() -> list[PlayOutcome]:
        permits = asyncio.Semaphore(jobs)

        async def play(number: int) -> PlayOutcome:
            async with permits:
                return _note(await play_for_real(plan, number), on_done)

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(play(number)) for number in numbers]
        except BaseExceptionGroup as failures:
            # One reason is enough.
            raise failures.exceptions[0] from None
        return [task.result() for task in tasks]

    return run_until_stopped(main)


def run_until_stopped(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine in an event loop of its own.

    A signal to stop cancels the coroutine; further signals do not interrupt its cleanup.

    Raises:
        StoppedError: a signal to stop came.
    """

    async def guarded() -> T:
        work = asyncio.create_task(main())
        was_stopped = False

        def stop() -> None:
            nonlocal was_stopped
            if not was_stopped:
                was_stopped = True
                work.cancel()

        loop = asyncio.get_running_loop()
        for number in stop_signals():
            loop.add_signal_handler(number, stop)
        await asyncio.wait((work,))
        if was_stopped:
            if not work.cancelled():
                # The stop replaces the coroutine's own result or error.
                work.exception()
            raise StoppedError
        return work.result()

    log_level = logging.root.manager.disable
    # Consumers log to their files; the laboratory's own clients log errors that the race provokes.
    logging.disable(logging.CRITICAL)
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            return runner.run(guarded())
    finally:
        logging.disable(log_level)
