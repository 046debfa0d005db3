"""The offset that a search by time must return, computed from store times alone.

The broker bisects its consume queue. These functions read the whole queue and apply the rule of
docs/spec/broker.md B.10, so that a mistake in one of the two is found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from rewindmq.protocol.profile import Profile


def nearest(store_times: Sequence[int], timestamp: int) -> int:
    """Return 4.x's offset: the entry nearest in time, the earlier of two equally near, or the last entry.

    No entry may have the timestamp itself: among several such entries, 4.x returns an arbitrary one.
    """
    if not store_times:
        return 0
    assert timestamp not in store_times, "the result of 4.x is arbitrary"
    later = next((index for index, time in enumerate(store_times) if time > timestamp), None)
    if later is None:
        return len(store_times) - 1
    if later == 0:
        return 0
    return later if store_times[later] - timestamp < timestamp - store_times[later - 1] else later - 1


def lower_bound(store_times: Sequence[int], timestamp: int) -> int:
    """Return 5.x's offset: the first entry stored at the timestamp or later, else one past the last entry."""
    return sum(time < timestamp for time in store_times)


SEARCH_RULES: Final[Mapping[Profile, Callable[[Sequence[int], int], int]]] = MappingProxyType(
    {Profile.V42: nearest, Profile.V49: nearest, Profile.V53: lower_bound}
)
