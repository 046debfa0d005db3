"""``StatsItemSet``: the items of one kind of statistic, by key."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from rewindmq.broker.limits import MAX_STATS_ITEMS
from rewindmq.broker.stats.item import StatsItem

# A full set drops the items that are idle for longer, RocketMQ's shortest limit.
FULL_SET_IDLE_SECONDS: Final = 1_800.0

_log = logging.getLogger(__name__)


class StatsItemSet(dict[str, StatsItem]):
    """Items by key; an item appears when its key is first counted.

    A set has ``MAX_STATS_ITEMS`` items at most. The counts of other keys are lost.

    Args:
        name: of the statistic, for the log.
        is_watched: whether ``watched_value`` includes the items of a key; asked once for each new item.
        make: the class of the items.
    """

    __slots__ = ("_is_watched", "_lost", "_make", "_name", "_watched", "_watched_before")

    def __init__(
        self,
        name: str,
        is_watched: Callable[[str], bool] | None = None,
        make: Callable[[], StatsItem] = StatsItem,
    ) -> None:
        super().__init__()
        self._name = name
        self._make = make
        self._is_watched = is_watched
        self._watched: dict[str, StatsItem] = {}
        # Of watched items that are removed.
        self._watched_before = 0
        # Takes the counts of keys for which there is no room.
        self._lost: StatsItem | None = None

    def __missing__(self, key: str) -> StatsItem:
        if len(self) < MAX_STATS_ITEMS:
            item = self[key] = self._make()
            if self._is_watched is not None and self._is_watched(key):
                self._watched[key] = item
            return item
        if self._lost is None:
            self._lost = self._make()
            _log.warning(
                "%s: %d keys are counted, the limit; further keys are not counted", self._name, len(self)
            )
        return self._lost

    @property
    def is_full(self) -> bool:
        """True if a further key would not be counted."""
        return len(self) >= MAX_STATS_ITEMS

    @property
    def watched_value(self) -> int:
        """What the watched keys have counted since the start, also those whose items are removed."""
        return self._watched_before + sum(item.value for item in self._watched.values())

    def remove_key(self, key: str) -> None:
        """Remove the item of a key, if there is one."""
        self.pop(key, None)
        watched = self._watched.pop(key, None)
        if watched is not None:
            self._watched_before += watched.value

    def remove(self, name: str, is_removed: Callable[[list[str]], bool]) -> None:
        """Remove items with ``name`` in their key, if ``is_removed`` returns True for the split key."""
        # The first test leaves few of 100,000 keys.
        for key in [key for key in self if name in key and is_removed(key.split("@"))]:
            self.remove_key(key)

    def remove_idle(self, limit: float | None) -> None:
        """Remove the items that are idle for more than ``limit`` seconds; None only limits a full set."""
        if self.is_full:
            limit = FULL_SET_IDLE_SECONDS if limit is None else min(limit, FULL_SET_IDLE_SECONDS)
        if limit is None:
            return
        for key in [key for key, item in self.items() if item.idle_seconds > limit]:
            self.remove_key(key)
        if not self.is_full:
            self._lost = None
