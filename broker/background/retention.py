"""Deletes log files that are too old, or for which the disk has no room.

Specification: docs/spec/broker.md B.11, docs/spec/store.md 11. Source: RocketMQ 4.9.4 ``DefaultMessageStore``
with its ``CleanCommitLogService`` and ``CleanConsumeQueueService``.
Changed: a file in use is deleted at the first attempt, because reads copy its data. Log and queues are on the
same disk, so there is only one disk ratio.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from typing import Final

from rewindmq.broker.background.schedule import Schedule
from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.store.errors import StoreError, cause_of
from rewindmq.broker.store.store import MessageStore
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.protocol.remoting.slices.run import run_slices
from rewindmq.protocol.remoting.tasks import end_tasks

_log = logging.getLogger(__name__)

FIRST_SECONDS: Final = 60.0
_FILES_PER_RUN: Final = 10
# How many runs delete at any hour after DELETE_EXPIRED_COMMITLOG (329).
_MANUAL_RUNS: Final = 20
_HOUR_MS: Final = 3_600_000
_MIN_RATIO, _MAX_RATIO = 10, 95


class Retention:
    """Deletes expired files; one run at a time.

    Args:
        ends_idle: see ``ConsumeQueue.expire``.
    """

    def __init__(
        self, runtime: Runtime, config: BrokerConfig, store: MessageStore, *, ends_idle: bool
    ) -> None:
        self._clock = runtime.clock
        self._timers = runtime.timers
        self._workers = runtime.workers
        self._store = store
        self._ends_idle = ends_idle
        self._reserved_ms = config.file_reserved_time * _HOUR_MS
        self._hours = frozenset(int(hour) for hour in config.delete_when.split(";") if hour.strip())
        self._used = min(max(config.disk_max_used_space_ratio, _MIN_RATIO), _MAX_RATIO) / 100
        self._forced = config.disk_space_clean_forcibly_ratio / 100
        self._full = config.disk_space_warning_level_ratio / 100
        self._may_force = config.clean_file_forcibly_enable
        self._period = config.clean_resource_interval / 1_000
        self._pause = config.delete_commit_log_files_interval / 1_000
        self._manual_runs = 0
        self._running: asyncio.Task[None] | None = None
        self._deleting: asyncio.Future[None] | None = None

    def begin(self, schedule: Schedule) -> None:
        """See ``BackgroundService``."""
        schedule.every(FIRST_SECONDS, self._period, self._begin_run)

    async def close(self) -> None:
        """Stop the running deletion; wait for the file that is being deleted."""
        if self._running is not None:
            await end_tasks((self._running,))
        if self._deleting is not None and not self._deleting.done():
            await asyncio.wait((self._deleting,))
            if error := self._deleting.exception():
                _log.error("can not delete expired files: %s", error)

    def delete_soon(self) -> None:
        """Make the next 20 runs delete expired files at any hour."""
        self._manual_runs = _MANUAL_RUNS

    def pretend_disk_full(self, is_full: bool) -> None:
        """Act as if no byte of the disk were free, or no longer; sends are refused as soon as it returns."""
        self._store.pretends_disk_full = self._store.is_disk_full = is_full
        self._disk_ratio()

    def _begin_run(self) -> None:
        if self._running is None or self._running.done():
            self._running = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        try:
            await self._delete_segments()
            cleaner = self._store.cleaner
            # At a slave, whose master has deleted topics; elsewhere after a failure of the disk.
            if cleaner.has_former:
                await self._delete(cleaner.delete_former_files)
                await run_slices(self._timers, cleaner.delete_former())
            await run_slices(self._timers, cleaner.expire_queues(ends_idle=self._ends_idle))
            if cleaner.has_index_files:
                await self._delete(cleaner.delete_index_files)
        except StoreError as error:
            _log.error("can not delete expired files, will try again: %s", error)

    async def _delete_segments(self) -> None:
        ratio = self._disk_ratio()
        is_short = ratio is None or ratio > self._used
        is_time = datetime.fromtimestamp(self._clock.now_ms() / 1_000).astimezone().hour in self._hours
        if not (is_time or is_short or self._manual_runs):
            return
        self._manual_runs = max(0, self._manual_runs - 1)
        at_once = self._may_force and ratio is not None and ratio > self._forced
        count = 0
        while count < _FILES_PER_RUN and await self._drop_segment(at_once=at_once):
            count += 1
            await self._timers.sleep(self._pause)
        if is_short and not count:
            _log.warning("disk space will be full soon, but there is no file to delete")

    async def _drop_segment(self, *, at_once: bool) -> bool:
        """Delete the log's first segment if it is expired: on a worker, because it may take some 100 ms."""
        cleaner = self._store.cleaner
        segment = cleaner.take_segment(None if at_once else self._clock.now_ms() - self._reserved_ms)
        if segment is None:
            return False
        try:
            await self._delete(cleaner.delete, segment)
        except StoreError:
            cleaner.put_back(segment)
            raise
        return True

    async def _delete(self, delete: Callable[..., None], *args: object) -> None:
        self._deleting = asyncio.ensure_future(self._workers.run(delete, *args))
        await asyncio.shield(self._deleting)

    def _disk_ratio(self) -> float | None:
        """Return the used part of the disk, or None if unknown; set whether the store accepts messages."""
        try:
            ratio = self._store.disk_used_ratio()
        except OSError as error:
            _log.error("can not read the disk usage: %s", cause_of(error))
            return None
        # Between the two limits the previous decision applies, as in 4.9.4.
        if ratio > self._full and not self._store.is_disk_full:
            _log.error("disk used %.2f, the broker refuses messages", ratio)
            self._store.is_disk_full = True
        elif ratio <= self._forced and self._store.is_disk_full:
            _log.info("disk used %.2f, the broker accepts messages again", ratio)
            self._store.is_disk_full = False
        return ratio
