"""Runs the check of half messages every ``transactionCheckInterval``, one run at a time.

Source: RocketMQ 4.9.4 ``TransactionalMessageCheckService``; 4.2.0 has no such service.
"""

from __future__ import annotations

import asyncio
import logging

from rewindmq.broker.background.schedule import Schedule
from rewindmq.broker.store.errors import cause_of
from rewindmq.broker.transaction.check import CheckParts, CheckRun
from rewindmq.protocol.names import TRANS_HALF_TOPIC
from rewindmq.protocol.remoting.tasks import end_tasks

_log = logging.getLogger(__name__)


class TransactionCheckService:
    """The background service that checks half messages.

    Args:
        interval: protocol seconds before the first run and between two runs; None means no checks.
    """

    def __init__(self, parts: CheckParts, interval: float | None) -> None:
        self._parts = parts
        self._interval = interval
        self._run: asyncio.Task[None] | None = None

    def begin(self, schedule: Schedule) -> None:
        if self._interval is not None:
            schedule.every(self._interval, self._interval, self._begin_run)

    async def close(self) -> None:
        """Cancel the current run; its completed checks stay."""
        if self._run is not None:
            await end_tasks((self._run,))

    def _begin_run(self) -> None:
        # Without half messages there is nothing to read and no progress to save.
        if self._run is None and self._parts.store.max_offset(TRANS_HALF_TOPIC, 0):
            self._run = asyncio.get_running_loop().create_task(CheckRun(self._parts).run())
            self._run.add_done_callback(self._ended)

    def _ended(self, run: asyncio.Task[None]) -> None:
        self._run = None
        error = None if run.cancelled() else run.exception()
        if isinstance(error, OSError):
            _log.error("check of half messages failed, will try again: %s", cause_of(error))
        elif error is not None:
            _log.error("check of half messages failed, will try again", exc_info=error)
