"""Plots: lines of numbers over time as the points of an SVG polyline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

WIDTH: Final = 600
HEIGHT: Final = 120
SPARK_WIDTH: Final = 96
SPARK_HEIGHT: Final = 22
_SPARK_POINTS: Final = 32


@dataclass(frozen=True)
class Plot:
    """A line in a box of ``width`` times ``height``, for an SVG polyline's ``points``.

    Attributes:
        area: the same line, closed along the ground.
        top: the number at the upper edge; the lower edge is 0.
        begin_ms, end_ms: times at the left and right edge.
    """

    points: str
    area: str
    width: int
    height: int
    top: int
    begin_ms: int
    end_ms: int


def line_plot(
    times: Sequence[int], values: Sequence[int], width: int = WIDTH, height: int = HEIGHT
) -> Plot | None:
    """Return the plot of numbers from 0 on; None if there are fewer than two."""
    if len(times) < 2 or len(values) != len(times):
        return None
    begin, end = times[0], times[-1]
    span, top = max(1, end - begin), max(1, *values)
    places = [
        f"{(time - begin) * width / span:.1f},{height - max(0, value) * (height - 2) / top - 1:.1f}"
        for time, value in zip(times, values, strict=True)
    ]
    points = " ".join(places)
    return Plot(points, f"0,{height} {points} {width},{height}", width, height, top, begin, end)


def spark_line(times: Sequence[int], values: Sequence[int]) -> Plot | None:
    """Return a small plot for a row of a table, of at most 32 points and the last."""
    step = -(-len(times) // _SPARK_POINTS) if times else 1
    chosen = sorted({*range(0, len(times), step), len(times) - 1}) if times else []
    if len(values) != len(times):
        return None
    return line_plot(
        [times[place] for place in chosen], [values[place] for place in chosen], SPARK_WIDTH, SPARK_HEIGHT
    )
