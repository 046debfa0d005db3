"""Where a timestamp must lead, worked out from store times alone.

The broker searches its consume queue by bisection; this reads the whole queue and applies the rule of
docs/spec/broker.md B.10 to it, so that neither can hide a mistake of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from rewindmq.protocol.profile import Profile


def nearest(store_times: Sequence[int], timestamp: int) -> int:
    """4.x: the entry nearest in time; of two equally near the earlier; past the end the last one.

    Only for timestamps that no entry has: among several equal entries 4.x takes an arbitrary one.
    """
    if not store_times:
        return 0
    assert timestamp not in store_times, "the answer of 4.x is not determined"
    later = next((index for index, time in enumerate(store_times) if time > timestamp), None)
    if later is None:
        return len(store_times) - 1
    if later == 0:
        return 0
    return later if store_times[later] - timestamp < timestamp - store_times[later - 1] else later - 1


def lower_bound(store_times: Sequence[int], timestamp: int) -> int:
    """5.x: the first entry stored at the timestamp or after; past the end one beyond the last."""
    return sum(time < timestamp for time in store_times)


SEARCH_RULES: Final[Mapping[Profile, Callable[[Sequence[int], int], int]]] = MappingProxyType(
    {Profile.V42: nearest, Profile.V49: nearest, Profile.V53: lower_bound}
)
