"""Workers that work when a test says so, and a disk that refuses."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from rewindmq.broker.store import StoreError
from rewindmq.broker.store.files.disk import OsDisk


class HandWorkers:
    """Each job runs when the test says so."""

    def __init__(self) -> None:
        self.jobs: list[tuple[asyncio.Future[Any], Callable[[], Any]]] = []

    def run(self, function: Callable[..., Any], *args: Any) -> Awaitable[Any]:
        future = asyncio.get_running_loop().create_future()
        self.jobs.append((future, lambda: function(*args)))
        return future

    def close(self) -> None:
        """Nothing to let go of."""

    async def finish(self) -> None:
        """Let the one job there is do its work."""
        ((future, job),) = self.jobs
        self.jobs.clear()
        try:
            future.set_result(job())
        except StoreError as error:
            future.set_exception(error)
        await asyncio.sleep(0)


class RefusingDisk(OsDisk):
    """Refuses to rename while told so, as the last step of a save."""

    refuses = False

    def replace(self, source: Path, target: Path) -> None:
        if self.refuses:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().replace(source, target)
