"""Selection: the conditions on messages that let a query skip parts of a log."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, TypeVar

_T = TypeVar("_T")

_INT64_MIN: Final = -(1 << 63)
_INT64_MAX: Final = (1 << 63) - 1


class Range(NamedTuple):
    """Numbers from ``low`` to ``high``, both included; empty if ``low`` is above ``high``."""

    low: int = _INT64_MIN
    high: int = _INT64_MAX

    def cut(self, low: int = _INT64_MIN, high: int = _INT64_MAX) -> Range:
        """Return the intersection with ``low`` to ``high``."""
        return Range(max(self.low, low), min(self.high, high))

    @property
    def is_all(self) -> bool:
        """Whether the range holds every number."""
        return self.low == _INT64_MIN and self.high == _INT64_MAX

    @property
    def is_empty(self) -> bool:
        """Whether the range holds no number."""
        return self.low > self.high


class Selection(NamedTuple):
    """Conditions that a message must all meet; None and an unbounded range set no condition.

    Attributes:
        topics: topic names, as stored.
        keys: sets of keys; from each set, the message must have at least one as a key or as its unique key.
        unique_keys: the message's unique key is in this set.
        store_times: range of the store timestamp, ms.
    """

    topics: frozenset[str] | None = None
    queue_ids: frozenset[int] | None = None
    keys: tuple[frozenset[str], ...] = ()
    unique_keys: frozenset[str] | None = None
    queue_offsets: Range = Range()
    positions: Range = Range()
    store_times: Range = Range()

    @property
    def is_empty(self) -> bool:
        """Whether no message can meet the conditions."""
        sets = (self.topics, self.queue_ids, self.unique_keys, *self.keys)
        ranges = (self.queue_offsets, self.positions, self.store_times)
        return any(values is not None and not values for values in sets) or any(
            bounds.is_empty for bounds in ranges
        )

    def of_topics(self, topics: Iterable[str]) -> Selection:
        """Return this selection, limited to these topics."""
        return self._replace(topics=_both(self.topics, topics))

    def of_queues(self, queue_ids: Iterable[int]) -> Selection:
        """Return this selection, limited to queues with these ids."""
        return self._replace(queue_ids=_both(self.queue_ids, queue_ids))

    def with_keys(self, keys: Iterable[str]) -> Selection:
        """Return this selection, limited to messages with one of these keys."""
        return self._replace(keys=(*self.keys, frozenset(keys)))

    def with_unique_keys(self, keys: Iterable[str]) -> Selection:
        """Return this selection, limited to messages with one of these unique keys."""
        return self._replace(unique_keys=_both(self.unique_keys, keys))

    def stored_from(self, time_ms: int) -> Selection:
        """Return this selection, limited to messages stored at this time or later."""
        return self._replace(store_times=self.store_times.cut(low=time_ms))

    def stored_to(self, time_ms: int) -> Selection:
        """Return this selection, limited to messages stored at this time or earlier."""
        return self._replace(store_times=self.store_times.cut(high=time_ms))


def _both(before: frozenset[_T] | None, values: Iterable[_T]) -> frozenset[_T]:
    return frozenset(values) if before is None else before.intersection(values)


EVERYTHING: Final = Selection()
