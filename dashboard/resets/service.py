"""ResetService: checks, carries out and watches resets, each as a task of the dashboard."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from rewindmq.client.admin.reset_target import Target
from rewindmq.client.admin.watched_reset.expected import Expected, moved_since
from rewindmq.client.admin.watched_reset.run import Began, run_watched
from rewindmq.dashboard.data.cluster_source import ClusterSource
from rewindmq.dashboard.data.reset_previews import MAX_QUEUES, Previewed, preview_of
from rewindmq.dashboard.resets.history import ResetHistory
from rewindmq.dashboard.resets.record import VERSION, ResetRecord, Status
from rewindmq.dashboard.resets.recorder import ResetRecorder
from rewindmq.protocol.errors import ClientError, RemotingError, RewindMQError
from rewindmq.protocol.remoting.tasks import end_tasks

# Resets that are watched at the same time. Each asks brokers and consumers twice a second.
MAX_RUNNING: Final = 8
# Protocol seconds between two writes of a record whose reset is watched.
_SAVE_SECONDS: Final = 2.0
_STOPPED: Final = (
    "the dashboard was stopped during the watch, so it is not known what became of the queues without a"
    " verdict"
)
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Confirmed:
    """A reset that a person confirmed.

    Attributes:
        expected: what the preview showed.
        target: what the preview was of.
        repairs: how often lost queues may be reset again, 0 to 100.
        as_group: the group whose stored offsets the target is; "": none.
    """

    expected: Expected
    target: Target
    repairs: int = 0
    as_group: str = ""


@dataclass(frozen=True)
class Refused:
    """Why nothing was reset.

    Attributes:
        text: a sentence.
        moved: a line for each thing that has moved since the preview.
        running: id of the reset of the same group and topic that runs already.
    """

    text: str
    moved: list[str] = field(default_factory=list)
    running: str | None = None


class ResetService:
    """Carries out the resets that visitors confirm; ``working`` must be entered."""

    def __init__(self, source: ClusterSource, history: ResetHistory) -> None:
        self.history = history
        self._source = source
        self._runtime = source.runtime
        # By group and topic, from the confirmation on.
        self._running: dict[tuple[str, str], ResetRecord] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Let resets run until the block ends; those that still run are interrupted, and say so."""
        try:
            yield
        finally:
            await end_tasks(self._tasks)

    def running_id(self, group: str, topic: str) -> str | None:
        """Return the id of the reset of this group and topic that runs; None if none does."""
        record = self._running.get((group, topic))
        return None if record is None else record.id

    async def read(self, record_id: str) -> ResetRecord | None:
        """Return a record, which changes while its reset is watched; None if there is none.

        Raises:
            DamagedError: its file is damaged.
        """
        running = next((each for each in self._running.values() if each.id == record_id), None)
        return running or await self.history.read(record_id)

    async def confirm(self, confirmed: Confirmed) -> ResetRecord | Refused:
        """Begin a reset if nothing has moved since its preview.

        The group and topic are taken before anything is awaited, so of two people the second is refused.
        """
        expected = confirmed.expected
        key = (expected.group, expected.topic)
        if (running := self._running.get(key)) is not None:
            return Refused(
                f"Another reset of group {key[0]} in topic {key[1]} is running.", running=running.id
            )
        if len(self._running) >= MAX_RUNNING:
            return Refused(
                f"{MAX_RUNNING} resets are being watched, which is the most: wait until one has its verdict."
            )
        record = self._new_record(confirmed)
        self._running[key] = record
        task = None
        try:
            found = await self._check(confirmed, record)
            if isinstance(found, Refused):
                return found
            task = asyncio.create_task(self._carry_out(confirmed, record, found))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        finally:
            if task is None:
                del self._running[key]
        return record

    def _new_record(self, confirmed: Confirmed) -> ResetRecord:
        now_ms = self._runtime.clock.now_ms()
        time = datetime.fromtimestamp(now_ms / 1000, UTC).strftime("%Y%m%dT%H%M%S")
        return ResetRecord(
            version=VERSION,
            id=f"{time}-{self._runtime.random.getrandbits(32):08x}",
            group=confirmed.expected.group,
            topic=confirmed.expected.topic,
            timestamp=confirmed.expected.timestamp,
            began_ms=now_ms,
            mode=str(confirmed.expected.mode or ""),
            max_repairs=confirmed.repairs,
            as_group=confirmed.as_group,
        )

    async def _check(self, confirmed: Confirmed, record: ResetRecord) -> Refused | Previewed:
        """Keep the record, and return what the cluster told; or return why the reset must not begin."""
        expected = confirmed.expected
        now = await preview_of(self._source, expected.group, expected.topic, confirmed.target, expected.mode)
        if now.preview is None:
            return Refused(now.problem or "There is no preview.")
        if len(now.preview.queues) > MAX_QUEUES:
            return Refused(f"The topic has {len(now.preview.queues):,} queues, more than {MAX_QUEUES:,}.")
        try:
            moved = moved_since(expected, now.preview)
        except ClientError as error:
            return Refused(f"{error}.")
        if moved:
            return Refused("The cluster has moved since the preview.", moved)
        try:
            await self.history.save(record)
        except OSError as error:
            return Refused(f"The history cannot be written: {error.strerror}.")
        return now

    async def _carry_out(self, confirmed: Confirmed, record: ResetRecord, found: Previewed) -> None:
        try:
            await self._watch(confirmed, record, found)
        except RewindMQError as error:
            record.status = Status.FAILED
            record.problem = _failure(error, has_begun=bool(record.queues))
        except asyncio.CancelledError:
            record.interrupt(_STOPPED)
            raise
        except Exception:
            _log.exception("the watched reset %s failed", record.id)
            record.status = Status.FAILED
            record.problem = "the dashboard failed, and its log says how"
        finally:
            record.ended_ms = self._runtime.clock.now_ms()
            # First, so that the group is free for the next reset as soon as a page shows the verdict.
            del self._running[record.group, record.topic]
            await self._save(record)

    async def _watch(self, confirmed: Confirmed, record: ResetRecord, found: Previewed) -> None:
        recorder = ResetRecorder(record)
        clock = self._runtime.clock
        running = run_watched(
            self._source.admin,
            record.topic,
            record.group,
            confirmed.target,
            mode=confirmed.expected.mode,
            times=confirmed.repairs,
            observe=recorder.observe,
            # The page shows after each sample what the watch waits for.
            remind_after=0.0,
            preview=found.preview,
            brokers=found.brokers,
        )
        saving = asyncio.create_task(self._save_often(record))
        try:
            async with contextlib.aclosing(running) as items:
                async for item in items:
                    recorder.add(item, clock.monotonic())
                    if isinstance(item, Began):
                        # A dashboard that is killed from now on has noted that brokers accepted the reset.
                        await self._save(record)
        finally:
            await end_tasks((saving,))

    async def _save_often(self, record: ResetRecord) -> None:
        """Keep what the samples show; most of them change no state."""
        while True:
            await self._runtime.timers.sleep(_SAVE_SECONDS)
            await self._save(record)

    async def _save(self, record: ResetRecord) -> None:
        """Keep the record; a watch goes on without it."""
        record.unsaved = ""
        try:
            await self.history.save(record)
        except OSError as error:
            _log.error("cannot write the record of the reset %s: %s", record.id, error)
            record.unsaved = f"This record is not on disk: {error.strerror}"


def _failure(error: RewindMQError, *, has_begun: bool) -> str:
    if has_begun:
        return f"the watch failed: {error}"
    if isinstance(error, RemotingError):
        return f"the reset may have been carried out or not: {error}"
    if isinstance(error, ClientError):
        return f"the reset failed: {error}"
    # Brokers are asked one after the other.
    return f"the reset was refused, and brokers that were asked before may have carried it out: {error}"
