"""Draws the plots of a plan's page as SVG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rewindmq.pipeline.replay.plan import Bins, Direction, Mode, Move, QueueReplay, ReplayPlan
from rewindmq.pipeline.replay.words import format_duration, format_time, local_time
from rewindmq.protocol.text import escape_html as escape

_WIDTH: Final = 1_060
_HEIGHT: Final = 300
_LEFT: Final = 64
_RIGHT: Final = 14
_TOP: Final = 12
_BOTTOM: Final = 46
_X_TICKS: Final = 6
_Y_TICKS: Final = 5
_DAY_MS: Final = 86_400_000
_MINUTE_MS: Final = 60_000
_SECOND_MS: Final = 1_000
_SPARK_WIDTH: Final = 130
_SPARK_HEIGHT: Final = 24
_TRACK_WIDTH: Final = 130
_SHORTEST: Final = 1.5
# Differences smaller than this share are about a pixel.
_VISIBLE: Final = 150


def draw_histogram(plan: ReplayPlan) -> str:
    """Draw messages by store time: bars for the boundary search, and a line for the nearest search if it
    differs visibly."""
    back = plan.histogram(Mode.BOUNDARY, Direction.BACK)
    ahead = plan.histogram(Mode.BOUNDARY, Direction.AHEAD)
    nearest = nearest_outline(plan)
    plot = _Plot(plan.bins, nice_step(max(*_concerned(plan, Mode.BOUNDARY), *nearest, 1)))
    parts = [*plot.axes(), *plot.bars(back, [0] * len(back), "back"), *plot.bars(ahead, back, "ahead")]
    if nearest:
        parts.append(plot.outline(nearest))
    label = f"messages by store time, {sum(back) + sum(ahead):,} in all"
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(label)}">'
        f"{''.join(parts)}</svg>"
    )


def nearest_outline(plan: ReplayPlan) -> Sequence[int]:
    """Return the bins of the nearest search; empty if the difference would be invisible."""
    boundary, nearest = _concerned(plan, Mode.BOUNDARY), _concerned(plan, Mode.NEAREST)
    widest = max((abs(one - other) for one, other in zip(boundary, nearest, strict=True)), default=0)
    return nearest if widest * _VISIBLE > max(*boundary, *nearest, 0) else ()


def _concerned(plan: ReplayPlan, mode: Mode) -> list[int]:
    back, ahead = plan.histogram(mode, Direction.BACK), plan.histogram(mode, Direction.AHEAD)
    return [some + more for some, more in zip(back, ahead, strict=True)]


def nice_step(highest: int) -> int:
    """Return the distance between marks of an axis: at least 1, and 1, 2 or 5 times a power of ten."""
    step = 1
    while step * _Y_TICKS < highest:
        digits = int(str(step).rstrip("0"))
        step = step * 5 // 2 if digits == 2 else step * 2
    return step


class _Plot:
    def __init__(self, bins: Bins, step: int) -> None:
        self._bins = bins
        self._step = step
        self._highest = step * _Y_TICKS
        self._bar = (_WIDTH - _LEFT - _RIGHT) / bins.count

    def _x(self, number: float) -> float:
        return _LEFT + number * self._bar

    def _y(self, count: float) -> float:
        return _HEIGHT - _BOTTOM - count / self._highest * (_HEIGHT - _TOP - _BOTTOM)

    def axes(self) -> Iterator[str]:
        for number in range(_Y_TICKS + 1):
            count = number * self._step
            y = self._y(count)
            kind = "grid" if number else "axis"
            yield f'<line class="{kind}" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            yield f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{count:,}</text>'
        every = max(1, -(-self._bins.count // _X_TICKS))
        for number in range(0, self._bins.count + 1, every):
            x = self._x(number)
            y = _HEIGHT - _BOTTOM
            clock, day = _tick(self._bins.start + number * self._bins.width, self._bins.width)
            anchor = "end" if x > _WIDTH - 60 else "middle"
            yield f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="{y}" y2="{y + 5}"/>'
            yield f'<text x="{x:.1f}" y="{y + 19}" text-anchor="{anchor}">{clock}</text>'
            yield f'<text x="{x:.1f}" y="{y + 35}" text-anchor="{anchor}">{day}</text>'

    def bars(self, counts: Sequence[int], below: Sequence[int], kind: str) -> Iterator[str]:
        for number, (count, base) in enumerate(zip(counts, below, strict=True)):
            if count:
                # One message among many must stay visible.
                height = max(self._y(base) - self._y(base + count), _SHORTEST)
                time = format_time(self._bins.start + number * self._bins.width)
                yield (
                    f'<rect class="{kind}" x="{self._x(number) + 0.5:.1f}" y="{self._y(base) - height:.1f}"'
                    f' width="{max(self._bar - 1, 1):.1f}" height="{height:.1f}">'
                    f"<title>{escape(time)}: {count:,}</title></rect>"
                )

    def outline(self, counts: Sequence[int]) -> str:
        steps = [f"M{self._x(0):.1f} {self._y(0):.1f}"]
        for number, count in enumerate(counts):
            steps.append(f"V{self._y(count):.1f}H{self._x(number + 1):.1f}")
        return f'<path class="nearest" d="{"".join(steps)}V{self._y(0):.1f}"/>'


def _tick(ms: int, width: int) -> tuple[str, str]:
    """Return the two lines below a mark, as precise as the bins."""
    time = local_time(ms)
    if width >= _DAY_MS:
        return f"{time:%b} {time.day}", f"{time:%Y}"
    clock = f"{time:%H:%M}"
    if width < _MINUTE_MS:
        clock = f"{time:%H:%M:%S}"
    if width < _SECOND_MS:
        clock += f".{ms % 1000:03d}"
    return clock, f"{time:%Y-%m-%d}"


def draw_spark(move: Move) -> str:
    """Draw one queue's histogram for a table cell."""
    if not any(move.histogram):
        return ""
    highest = max(move.histogram)
    width = _SPARK_WIDTH / len(move.histogram)
    kind = "ahead" if move.direction is Direction.AHEAD else "back"
    bars = []
    for number, count in enumerate(move.histogram):
        if count:
            height = max(count / highest * _SPARK_HEIGHT, _SHORTEST)
            x, y = number * width, _SPARK_HEIGHT - height
            bars.append(f"M{x:.1f} {_SPARK_HEIGHT}V{y:.1f}h{max(width - 0.4, 0.6):.1f}V{_SPARK_HEIGHT}z")
    label = f"at most {highest:,} messages in a bin"
    return (
        f'<svg width="{_SPARK_WIDTH}" height="{_SPARK_HEIGHT}" role="img" aria-label="{label}">'
        f'<path class="{kind}" d="{"".join(bars)}"/></svg>'
    )


def draw_track(queue: QueueReplay, mode: Mode) -> str:
    """Draw a queue from min to max: messages redelivered or skipped, and the group's position."""
    length = queue.max_offset - queue.min_offset
    if not length or queue.position is None:
        return ""
    move = queue.moves[mode]

    def place(offset: int) -> float:
        return (offset - queue.min_offset) / length * (_TRACK_WIDTH - 4) + 2

    low, high = sorted((place(queue.position), place(move.start)))
    kind = "ahead" if move.direction is Direction.AHEAD else "back"
    label = f"from {queue.min_offset:,} to {queue.max_offset:,}: {queue.position:,} to {move.start:,}"
    return (
        f'<svg width="{_TRACK_WIDTH}" height="16" role="img" aria-label="{label}"><title>{label}</title>'
        f'<rect class="track" x="0" y="6" width="{_TRACK_WIDTH}" height="4" rx="2"/>'
        f'<rect class="{kind}" x="{low:.1f}" y="4" width="{max(high - low, 0):.1f}" height="8"/>'
        f'<path class="here" d="M{place(queue.position):.1f} 1V15"/></svg>'
    )


def describe_bins(bins: Bins) -> str:
    """Return the meaning of one bar."""
    return f"Each bar is {format_duration(bins.width)} of store time."
