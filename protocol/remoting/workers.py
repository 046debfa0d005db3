"""Threads for what blocks: plain listeners and fsync."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

T = TypeVar("T")


class ThreadWorkers:
    """Up to ``max_workers`` daemon threads, started while there is more to do than they are.

    Daemons, because a process must be able to end while a plain listener blocks for ever: the threads of a
    ``ThreadPoolExecutor`` are waited for when the interpreter exits.
    """

    def __init__(self, max_workers: int = 20) -> None:
        self._max_workers = max_workers
        self._crew = _Crew()

    def run(self, function: Callable[..., T], *args: Any) -> Awaitable[T]:
        """Run ``function(*args)`` on a thread; cancelling the result only stops waiting for it."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        crew = self._crew

        def settle(result: Any, error: BaseException | None) -> None:
            if future.done():
                return
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

        def job() -> None:
            result, error = outcome(function, args) if not future.cancelled() else (None, None)
            crew.finished()
            # RuntimeError: the loop was closed while this ran, and nobody waits any more.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(settle, result, error)

        crew.put(job, self._max_workers)
        return future

    def close(self) -> None:
        """Let the threads end when they have done what they were given; ``run`` starts new ones.

        Idle threads have ended when this returns. It does not wait for those that still run a function.
        """
        crew, self._crew = self._crew, _Crew()
        crew.dismiss()


class _Crew:
    """Threads that take jobs from one queue until it gives each of them None.

    Clients on the event loops of several threads may share a crew, so its numbers have a lock.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._ended: queue.SimpleQueue[threading.Thread] = queue.SimpleQueue()
        # Jobs that were put and have not finished.
        self._busy = 0

    def put(self, job: Callable[[], None], max_threads: int) -> None:
        with self._guard:
            self._busy += 1
            if self._busy > len(self._threads) < max_threads:
                self._start_thread()
            self._jobs.put(job)

    def finished(self) -> None:
        """A job is about to end; its thread takes the next one."""
        with self._guard:
            self._busy -= 1

    def dismiss(self) -> None:
        """End every thread after the jobs that were put, and wait for as many as have no job to do."""
        with self._guard:
            # None is alive in a forked child.
            alive = sum(thread.is_alive() for thread in self._threads)
            # A job occupies one thread at most, whether it runs or is still in the queue.
            idle = alive - self._busy
            for _ in self._threads:
                self._jobs.put(None)
        for _ in range(idle):
            self._ended.get().join()

    def _start_thread(self) -> None:
        name = f"rewindmq-worker-{len(self._threads)}"
        thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
        self._ended.put(threading.current_thread())


def outcome(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, BaseException | None]:
    """Call ``function``: its result, or the error to give to the future that stands for the call."""
    try:
        return function(*args), None
    except StopIteration as error:
        # A future takes any exception but this one.
        return None, RuntimeError(f"raised StopIteration: {error.value!r}")
    except BaseException as error:
        return None, error
