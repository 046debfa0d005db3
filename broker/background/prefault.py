"""Brings the log's next pages into memory on a worker thread, while the event loop writes those before."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

from rewindmq.broker.store.files.disk import Disk
from rewindmq.protocol.remoting.runtime import Workers


class LogPrefault:
    """Prefaults the end of a log that grows, one part at a time.

    Without it, the event loop waits for the system to clear the log's pages at the first write to each
    (docs/benchmarks.md). The loop still waits for the first 8 MiB of a segment, and for a part that comes
    while an earlier one is being prefaulted.
    """

    def __init__(self, workers: Workers, disk: Disk) -> None:
        self._workers = workers
        self._disk = disk
        self._running: asyncio.Future[None] | None = None

    def begin(self, path: Path, start: int, end: int) -> None:
        """Prefault a part of a file, unless an earlier part is not finished. Called in the event loop."""
        if self._running is not None and not self._running.done():
            return
        # RuntimeError: the process can have no further thread. The log is written without this help.
        with suppress(RuntimeError):
            self._running = asyncio.ensure_future(self._workers.run(self._disk.prefault, path, start, end))
