"""Brings the log's next pages into memory on a worker thread, while the event loop writes those before."""

from __future__ import annotations

import asyncio
from pathlib import Path

from rewindmq.broker.store.files.disk import Disk
from rewindmq.protocol.remoting.runtime import Workers


class LogPrefault:
    """Prefaults the end of a log that grows, one part at a time.

    Without it, the event loop waits whenever the first write to a page lets the system clear it and those
    behind it (docs/benchmarks.md).
    """

    def __init__(self, workers: Workers, disk: Disk) -> None:
        self._workers = workers
        self._disk = disk
        self._running: asyncio.Future[None] | None = None

    def begin(self, path: Path, start: int, end: int) -> None:
        """Prefault a part of a file, unless an earlier part is not finished."""
        if self._running is None or self._running.done():
            self._running = asyncio.ensure_future(self._workers.run(self._disk.prefault, path, start, end))
