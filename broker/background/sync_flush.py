"""Holds the responses to sends until the messages are on disk (docs/spec/store.md 10.2).

Source: RocketMQ 4.9.4 ``GroupCommitService``.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from rewindmq.protocol.remoting.runtime import Cancellable, Timers, Workers

_log = logging.getLogger(__name__)
# Real seconds between a failed flush and the next one for the same sends.
_RETRY_SECONDS: Final = 0.1


@dataclass(slots=True)
class _Waiter:
    position: int
    done: Callable[[bool], None]
    timeout: Cancellable


class SyncFlush:
    """Group commit: all sends that arrive during one flush share the next flush.

    Args:
        flush: flushes the log and returns the flushed position; runs on a worker thread.
        timeout_seconds: how long a send waits (``syncFlushTimeout``), real seconds.
    """

    def __init__(
        self, workers: Workers, timers: Timers, flush: Callable[[], int], timeout_seconds: float
    ) -> None:
        self._workers = workers
        self._timers = timers
        self._flush = flush
        self._timeout_seconds = timeout_seconds
        self._waiting: deque[_Waiter] = deque()
        self._flushing: asyncio.Future[int] | None = None
        # The failure that was logged last, until a flush succeeds.
        self._failure = ""
        self._retry: Cancellable | None = None

    def wait(self, position: int, done: Callable[[bool], None]) -> None:
        """Call ``done(True)`` when the log is durable up to ``position``, ``done(False)`` at the timeout."""
        waiter = _Waiter(position, done, self._timers.call_timeout(self._timeout_seconds, self._on_timeout))
        self._waiting.append(waiter)
        self.begin()

    def begin(self) -> None:
        """Start a flush unless one is running."""
        if self._flushing is None:
            self._flushing = asyncio.ensure_future(self._workers.run(self._flush))
            self._flushing.add_done_callback(self._on_flushed)

    async def drain(self) -> None:
        """Wait until the waiting sends have their responses: at most two flushes."""
        for _ in range(2):
            if self._flushing is not None:
                await asyncio.wait((self._flushing,))

    async def close(self) -> None:
        """Wait for the running flush; the sends that still wait get no response."""
        for waiter in self._waiting:
            waiter.timeout.cancel()
        self._waiting.clear()
        if self._retry is not None:
            self._retry.cancel()
        if self._flushing is not None:
            await asyncio.wait((self._flushing,))

    def _on_flushed(self, flushing: asyncio.Future[int]) -> None:
        self._flushing = None
        if flushing.cancelled():
            return
        error = flushing.exception()
        if error is not None:
            self._on_failure(str(error))
            return
        self._failure = ""
        durable = flushing.result()
        # Waiters are in the order of their positions.
        while self._waiting and self._waiting[0].position <= durable:
            waiter = self._waiting.popleft()
            waiter.timeout.cancel()
            waiter.done(True)
        if self._waiting:
            self.begin()

    def _on_failure(self, failure: str) -> None:
        if failure != self._failure:
            self._failure = failure
            _log.error("flush failed: %s", failure)
        if self._waiting and self._retry is None:
            # A retry at once on a broken disk would loop without pause.
            self._retry = self._timers.call_timeout(_RETRY_SECONDS, self._flush_again)

    def _flush_again(self) -> None:
        self._retry = None
        if self._waiting:
            self.begin()

    def _on_timeout(self) -> None:
        # All waiters have the same timeout, so the first one is due.
        self._waiting.popleft().done(False)
