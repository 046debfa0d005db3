"""Bins of a histogram over time, with round widths."""

from __future__ import annotations

from typing import Final

from rewindmq.pipeline.replay.plan import Bins

MAX_BINS: Final = 45
_SECOND: Final = 1_000
_MINUTE: Final = 60 * _SECOND
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_WIDTHS: Final = (
    *(1, 2, 5, 10, 20, 50, 100, 200, 500),
    *(seconds * _SECOND for seconds in (1, 2, 5, 10, 15, 30)),
    *(minutes * _MINUTE for minutes in (1, 2, 5, 10, 15, 30)),
    *(hours * _HOUR for hours in (1, 2, 3, 6, 12)),
    *(days * _DAY for days in (1, 2, 7, 14, 28)),
)


def make_bins(first: int, last: int) -> Bins:
    """Return at most ``MAX_BINS`` bins that hold the times from ``first`` to ``last``, ms, both included."""
    width = next((width for width in _WIDTHS if _count(first, last, width) <= MAX_BINS), 0)
    if not width:
        width = _WIDTHS[-1]
        while _count(first, last, width) > MAX_BINS:
            width *= 2
    return Bins(first - first % width, width, _count(first, last, width))


def _count(first: int, last: int, width: int) -> int:
    return last // width - first // width + 1
