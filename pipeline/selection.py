"""What is asked of messages, as far as it may spare reading."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, TypeVar

_T = TypeVar("_T")

_INT64_MIN: Final = -(1 << 63)
_INT64_MAX: Final = (1 << 63) - 1


class Range(NamedTuple):
    """Numbers from ``low`` to ``high``, both included; none when ``low`` is above ``high``."""

    low: int = _INT64_MIN
    high: int = _INT64_MAX

    def cut(self, low: int = _INT64_MIN, high: int = _INT64_MAX) -> Range:
        """Those that are also from ``low`` to ``high``."""
        return Range(max(self.low, low), min(self.high, high))

    @property
    def is_all(self) -> bool:
        """Whether nothing is left out."""
        return self.low == _INT64_MIN and self.high == _INT64_MAX

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left."""
        return self.low > self.high


class Selection(NamedTuple):
    """All of these have to be true of a message; None and an endless range ask for nothing.

    Attributes:
        topics: as stored.
        keys: it has one of each of these sets as its unique key or as a piece of its keys.
        unique_keys: its unique key is one of these.
        store_times: ms.
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
        """Whether no message can be asked for."""
        sets = (self.topics, self.queue_ids, self.unique_keys, *self.keys)
        ranges = (self.queue_offsets, self.positions, self.store_times)
        return any(values is not None and not values for values in sets) or any(
            bounds.is_empty for bounds in ranges
        )

    def of_topics(self, topics: Iterable[str]) -> Selection:
        """Only of these topics."""
        return self._replace(topics=_both(self.topics, topics))

    def of_queues(self, queue_ids: Iterable[int]) -> Selection:
        """Only of queues with these ids."""
        return self._replace(queue_ids=_both(self.queue_ids, queue_ids))

    def with_keys(self, keys: Iterable[str]) -> Selection:
        """Only with one of these keys."""
        return self._replace(keys=(*self.keys, frozenset(keys)))

    def with_unique_keys(self, keys: Iterable[str]) -> Selection:
        """Only with one of these unique keys."""
        return self._replace(unique_keys=_both(self.unique_keys, keys))

    def stored_from(self, time_ms: int) -> Selection:
        """Only stored at this time or later."""
        return self._replace(store_times=self.store_times.cut(low=time_ms))

    def stored_to(self, time_ms: int) -> Selection:
        """Only stored at this time or earlier."""
        return self._replace(store_times=self.store_times.cut(high=time_ms))


def _both(before: frozenset[_T] | None, values: Iterable[_T]) -> frozenset[_T]:
    return frozenset(values) if before is None else before.intersection(values)


EVERYTHING: Final = Selection()
