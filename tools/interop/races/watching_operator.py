"""The administrator of a race who resets as ``rewindmq admin resetOffsetByTime --watch`` does."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from rewindmq.client.admin.commands.command import Printed
from rewindmq.client.admin.commands.reset_watch import watch_reset
from rewindmq.client.admin.watched_reset.make_preview import make_preview
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.race.stage.operator import Operator

# Seconds (docs/watched_reset.md). A loss is named within 80 s of the reset, or not at all. A redelivery that
# is counted is proven within 120 s.
PATIENCE: Final = 90.0
PATIENCE_TO_COUNT: Final = 130.0


@dataclass(frozen=True, slots=True)
class WatchedReset:
    """What the command found.

    Attributes:
        summary: the last object that it prints with ``--json``.
        lines: what it prints without ``--json``.
        code: its exit code.
    """

    summary: Mapping[str, Any]
    lines: tuple[str, ...]
    code: int


class WatchingOperator(Operator):
    """Previews each reset, carries it out, and watches it to its verdict."""

    _watcher: asyncio.Task[list[Printed]] | None = None

    async def close(self) -> None:
        """Stop watching, and disconnect."""
        if self._watcher is not None:
            self._watcher.cancel()
            await asyncio.gather(self._watcher, return_exceptions=True)
        await super().close()

    async def watched(self) -> WatchedReset | None:
        """Wait for the verdict of the last reset; return None if there was no reset.

        Raises:
            ClientError, ResponseError, RemotingError: the reset failed.
        """
        if self._watcher is None:
            return None
        printed = await self._watcher
        lines = tuple(line for item in printed for line in item.lines)
        return WatchedReset(printed[-1].data, lines, printed[-1].exit_code)

    async def _ask(self, timestamp: int) -> Mapping[MessageQueue, int]:
        """Begin to watch; return the targets of the preview when the brokers have accepted the reset."""
        preview = await make_preview(self._admin, self.topic, self._group, timestamp)
        accepted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._watcher = asyncio.create_task(self._watch(timestamp, accepted))
        either: set[asyncio.Future[Any]] = {accepted, self._watcher}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not accepted.done():
            # The command ended without a reset: this raises its error.
            await self._watcher
        return {row.queue: row.target for row in preview.queues}

    async def _watch(self, timestamp: int, accepted: asyncio.Future[None]) -> list[Printed]:
        printed = []
        async for item in watch_reset(
            self._admin,
            self.topic,
            self._group,
            timestamp,
            force=True,
            mode=None,
            patience=PATIENCE,
            times=0,
        ):
            # The first item says that the brokers have accepted the reset.
            if not accepted.done():
                accepted.set_result(None)
            printed.append(item)
        return printed
