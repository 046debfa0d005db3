"""Sets of log positions: half-open ranges, in order and disjoint."""

from __future__ import annotations

from collections.abc import Iterable

Ranges = list[tuple[int, int]]


def union(ranges: Iterable[tuple[int, int]], gap: int = 0) -> Ranges:
    """Return the union; ranges with at most ``gap`` bytes between them are joined, empty ones left out."""
    joined: Ranges = []
    for start, stop in sorted(ranges):
        if start >= stop:
            continue
        if joined and start <= joined[-1][1] + gap:
            joined[-1] = (joined[-1][0], max(joined[-1][1], stop))
        else:
            joined.append((start, stop))
    return joined


def intersection(first: Ranges, second: Ranges) -> Ranges:
    """Return the positions that are in both."""
    common = []
    one = two = 0
    while one < len(first) and two < len(second):
        start = max(first[one][0], second[two][0])
        stop = min(first[one][1], second[two][1])
        if start < stop:
            common.append((start, stop))
        if first[one][1] <= second[two][1]:
            one += 1
        else:
            two += 1
    return common


def outside(ranges: Ranges, start: int, stop: int) -> Ranges:
    """Return the positions of [start, stop) that are in none of ``ranges``."""
    rest = []
    for begin, end in ranges:
        if start < begin:
            rest.append((start, min(begin, stop)))
        start = max(start, end)
    rest.append((start, stop))
    return [(begin, end) for begin, end in rest if begin < end]
