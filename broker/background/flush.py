"""Flushes the log, the ConsumeQueues and the checkpoint in the background.

Specification: docs/spec/store.md 10.1; RocketMQ 4.9.4 ``FlushRealTimeService``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from rewindmq.broker.store.errors import StoreError
from rewindmq.broker.store.store import MessageStore
from rewindmq.protocol.remoting.runtime import Workers

_log = logging.getLogger(__name__)


class BackgroundFlush:
    """Runs flushes on a worker thread, each kind at most once at a time.

    Changed from 4.9.4: this broker flushes the log if any byte is unflushed; 4.9.4 waits for four pages. It
    flushes ConsumeQueues only together with the checkpoint; 4.9.4 also flushes, every second, each queue with
    at least two unflushed pages. After a crash of the machine, recovery rebuilds lost entries from the log.
    """

    def __init__(self, workers: Workers, store: MessageStore) -> None:
        self._workers = workers
        self._store = store
        self._running: dict[str, asyncio.Future[object]] = {}
        # The error that was logged last, until a flush succeeds.
        self._failures: dict[str, str] = {}

    def flush_log(self) -> None:
        """Flush the log unless it is durable already; after a failed flush, flush everything."""
        if self._store.flush_failure:
            self._retry()
        elif self._store.flushed_offset < self._store.max_commit_log_offset:
            self._run("commit log", self._store.flush)

    def _retry(self) -> None:
        try:
            self._store.prepare_retry()
        except StoreError as error:
            self._failed("store", error)
        else:
            self.flush_all()

    def flush_all(self) -> None:
        """Flush the log, the ConsumeQueues and the checkpoint."""
        self._run("store", self._store.flush_all)

    async def close(self) -> None:
        """Wait for the running flushes."""
        if self._running:
            await asyncio.wait(list(self._running.values()))

    def _run(self, what: str, flush: Callable[[], object]) -> None:
        if what in self._running:
            return
        running = self._running[what] = asyncio.ensure_future(self._workers.run(flush))
        running.add_done_callback(lambda done: self._finished(what, done))

    def _finished(self, what: str, done: asyncio.Future[object]) -> None:
        del self._running[what]
        if done.cancelled():
            return
        error = done.exception()
        if error is not None:
            self._failed(what, error)
        elif self._failures.pop(what, None) is not None:
            _log.info("%s flushed again", what)

    def _failed(self, what: str, error: BaseException) -> None:
        # A retry every 500 ms fails in the same way.
        text = str(error)
        if self._failures.get(what) != text:
            self._failures[what] = text
            _log.error("%s not flushed, will try again: %s", what, text)
