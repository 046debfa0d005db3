"""The stage of a race for real whose administrator watches the reset (docs/watched_reset.md)."""

from __future__ import annotations

from rewindmq.race.stage.stage import BROKER
from tools.interop.races.stage import JavaStage
from tools.interop.races.watching_operator import WatchingOperator


class WatchedStage(JavaStage):
    """A ``JavaStage`` that is at rest when the watcher has its verdict, too.

    Attributes:
        idle: seconds without new messages before each reset, so that the watcher may count the redelivery.
    """

    operator_type = WatchingOperator
    idle = 0.0

    async def reset(
        self,
        offset: int,
        *,
        queue: int = 0,
        broker: str = BROKER,
        wait: bool = True,
        is_direct: bool = False,
    ) -> None:
        """See ``Stage``."""
        await self.sleep(self.idle)
        await super().reset(offset, queue=queue, broker=broker, wait=wait, is_direct=is_direct)

    async def at_rest(self) -> None:
        """See ``JavaStage``."""
        await super().at_rest()
        assert isinstance(self._operator, WatchingOperator)
        self.watched = await self._operator.watched()


class IdleWatchedStage(WatchedStage):
    """A ``WatchedStage`` whose group has consumed nothing for more than a minute before the reset."""

    idle = 90.0
