"""Time axis: shortens stretches without events, and draws events of the same moment apart."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, NamedTuple

# A stretch without events that lasts this long is marked as shortened.
QUIET_SECONDS: Final = 1.5
# Events that are at most this far apart belong to the same moment.
_SAME_SECONDS: Final = 0.0004
_WEIGHT_PIXELS: Final = 13.0
_MIN_WIDTH: Final = 1_150.0
_MAX_WIDTH: Final = 4_000.0


class QuietStretch(NamedTuple):
    """A stretch without events: its ends in pixels from the left, and its duration."""

    first: float
    last: float
    seconds: float


class TimeAxis:
    """Maps times to pixels, from left to right.

    Args:
        times: the times of all shown items, in order.
    """

    def __init__(self, times: Sequence[float]) -> None:
        self._times = list(times) or [0.0]
        weights = [0.0]
        for before, after in zip(self._times, self._times[1:], strict=False):
            weights.append(weights[-1] + _weight(after - before))
        self.width = min(max(weights[-1] * _WEIGHT_PIXELS, _MIN_WIDTH), _MAX_WIDTH)
        scale = self.width / weights[-1] if weights[-1] else 0.0
        self._places = [weight * scale for weight in weights]

    def place(self, at: float) -> float:
        """Return the pixels from the left; a time outside the axis is moved to the nearer end."""
        times, places = self._times, self._places
        position = bisect_right(times, at)
        if position == 0:
            return places[0]
        if position == len(times):
            return places[-1]
        before, after = times[position - 1], times[position]
        share = (at - before) / (after - before)
        return places[position - 1] + share * (places[position] - places[position - 1])

    def gaps(self) -> list[QuietStretch]:
        """Return the stretches of at least ``QUIET_SECONDS`` without events."""
        pairs = zip(self._times, self._times[1:], strict=False)
        return [
            QuietStretch(self.place(before), self.place(after), after - before)
            for before, after in pairs
            if after - before >= QUIET_SECONDS
        ]

    def ticks(self, distance: float) -> list[tuple[float, float]]:
        """Return times and their pixels from the left, at least ``distance`` pixels apart."""
        chosen: list[tuple[float, float]] = []
        for time, place in zip(self._times, self._places, strict=True):
            if not chosen or place - chosen[-1][1] >= distance:
                chosen.append((time, place))
        return chosen


def _weight(seconds: float) -> float:
    if seconds <= _SAME_SECONDS:
        return 0.4
    return 1.6 + min(max(math.log10(seconds / 0.001), 0.0), 4.0)
