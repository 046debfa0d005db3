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
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        # Jobs given out and not finished yet; counted on the event loop's thread alone.
        self._busy = 0

    def run(self, function: Callable[..., T], *args: Any) -> Awaitable[T]:
        """Run ``function(*args)`` on a thread; cancelling the result only stops waiting for it."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def settle(result: Any, error: BaseException | None) -> None:
            self._busy -= 1
            if future.done():
                return
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

        def job() -> None:
            result, error = outcome(function, args) if not future.cancelled() else (None, None)
            # RuntimeError: the loop was closed while this ran, and nobody waits any more.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(settle, result, error)

        self._busy += 1
        if self._busy > len(self._threads) < self._max_workers:
            self._start_thread()
        self._jobs.put(job)
        return future

    def close(self) -> None:
        """Let the threads end when they have done what they were given; nobody waits for them."""
        for _ in self._threads:
            self._jobs.put(None)
        self._threads.clear()

    def _start_thread(self) -> None:
        name = f"rewindmq-worker-{len(self._threads)}"
        thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()


def outcome(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, BaseException | None]:
    """Call ``function``: its result, or the error to give to the future that stands for the call."""
    try:
        return function(*args), None
    except StopIteration as error:
        # A future takes any exception but this one.
        return None, RuntimeError(f"raised StopIteration: {error.value!r}")
    except BaseException as error:
        return None, error
