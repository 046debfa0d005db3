"""The stage of a race for real whose administrator watches the reset (docs/watched_reset.md)."""

from __future__ import annotations

from tools.interop.races.stage import JavaStage
from tools.interop.races.watching_operator import WatchingOperator


class WatchedStage(JavaStage):
    """A ``JavaStage`` that is at rest when the watcher has its verdict, too."""

    operator_type = WatchingOperator

    async def at_rest(self) -> None:
        """See ``JavaStage``."""
        await super().at_rest()
        assert isinstance(self._operator, WatchingOperator)
        self.watched = await self._operator.watched()
