"""The order in which Java's ``HashMap`` lists its ``Long`` keys."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_FIRST_CAPACITY: Final = 16
_INT: Final = 0xFFFF_FFFF
_LONG: Final = 0xFFFF_FFFF_FFFF_FFFF


def hash_order(keys: Iterable[int]) -> list[int]:
    """Return keys, which were inserted in this order, as ``HashMap<Long, …>`` lists them.

    The order is exact unless nine keys share one bucket: then Java enlarges the table early, or makes a tree
    of the bucket.
    """
    inserted = list(keys)
    capacity = _FIRST_CAPACITY
    # Java doubles the table when it is more than three quarters full.
    while len(inserted) * 4 > capacity * 3:
        capacity *= 2
    return sorted(inserted, key=lambda key: _spread(key) & (capacity - 1))


def _spread(key: int) -> int:
    key &= _LONG
    folded = (key ^ key >> 32) & _INT
    return folded ^ folded >> 16
