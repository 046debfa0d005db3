"""Time as a place on paper: quiet stretches take little of it, what happens at once is drawn apart."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, NamedTuple

# Seconds from which a stretch in which nothing happens is marked as left out.
QUIET_SECONDS: Final = 1.5
# What is nearer than this is one moment.
_SAME_SECONDS: Final = 0.0004
_UNIT_PIXELS: Final = 13.0
_MIN_WIDTH: Final = 1_150.0
_MAX_WIDTH: Final = 4_000.0


class Gap(NamedTuple):
    """A quiet stretch."""

    first: float
    last: float
    seconds: float


class TimeAxis:
    """Places for moments, from left to right.

    Args:
        times: every moment at which something shown happens, in order.
    """

    def __init__(self, times: Sequence[float]) -> None:
        self._times = list(times) or [0.0]
        shares = [0.0]
        for before, after in zip(self._times, self._times[1:], strict=False):
            shares.append(shares[-1] + _share(after - before))
        self.width = min(max(shares[-1] * _UNIT_PIXELS, _MIN_WIDTH), _MAX_WIDTH)
        scale = self.width / shares[-1] if shares[-1] else 0.0
        self._places = [share * scale for share in shares]

    def place(self, at: float) -> float:
        """Pixels from the left; moments outside are moved to the ends."""
        times, places = self._times, self._places
        position = bisect_right(times, at)
        if position == 0:
            return places[0]
        if position == len(times):
            return places[-1]
        before, after = times[position - 1], times[position]
        share = (at - before) / (after - before)
        return places[position - 1] + share * (places[position] - places[position - 1])

    def gaps(self) -> list[Gap]:
        """The quiet stretches."""
        pairs = zip(self._times, self._times[1:], strict=False)
        return [
            Gap(self.place(before), self.place(after), after - before)
            for before, after in pairs
            if after - before >= QUIET_SECONDS
        ]

    def ticks(self, distance: float) -> list[tuple[float, float]]:
        """Moments and their places, at least ``distance`` pixels apart."""
        chosen: list[tuple[float, float]] = []
        for time, place in zip(self._times, self._places, strict=True):
            if not chosen or place - chosen[-1][1] >= distance:
                chosen.append((time, place))
        return chosen


def _share(seconds: float) -> float:
    if seconds <= _SAME_SECONDS:
        return 0.4
    return 1.6 + min(max(math.log10(seconds / 0.001), 0.0), 4.0)
