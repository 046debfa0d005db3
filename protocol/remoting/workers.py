"""Worker threads for blocking calls: plain listeners and fsync."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

T = TypeVar("T")


class ThreadWorkers:
    """Up to ``max_workers`` daemon threads; starts one when there are more jobs than threads.

    They are daemons, so that a process can end while a plain listener blocks: the interpreter waits at exit
    for the threads of a ``ThreadPoolExecutor``.
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
            # RuntimeError: the loop closed meanwhile, so no caller waits for the result.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(settle, result, error)

        crew.put(job, self._max_workers)
        return future

    def close(self) -> None:
        """Let the threads end after their jobs; ``run`` starts new ones.

        Idle threads have ended when this returns. It does not wait for threads that run a function.
        """
        crew, self._crew = self._crew, _Crew()
        crew.dismiss()


class _Crew:
    """Threads that take jobs from one queue until each gets None.

    Clients on the event loops of several threads may share a crew, so a lock guards its counts.
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
        """Record that a job is about to end; its thread takes the next one."""
        with self._guard:
            self._busy -= 1

    def dismiss(self) -> None:
        """End every thread after the queued jobs, and wait for the idle threads."""
        with self._guard:
            # After a fork, the child has none of the parent's threads.
            alive = sum(thread.is_alive() for thread in self._threads)
            # A running or queued job occupies one thread at most.
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
    """Call ``function``; return its result and None, or None and the error for the future."""
    try:
        return function(*args), None
    except StopIteration as error:
        # A future refuses StopIteration as its exception.
        return None, RuntimeError(f"raised StopIteration: {error.value!r}")
    except BaseException as error:
        return None, error
