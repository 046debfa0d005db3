"""SVG drawing of a scene: lanes, arrows and the chart of offsets on one time axis."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rewindmq.protocol.text import escape_html as escape
from rewindmq.race.report.axis import TimeAxis
from rewindmq.race.report.labels import CHARACTER_PIXELS, Box, Labels
from rewindmq.race.report.scene import Arrow, DrawnDelivery, DrawnStep, Scene, Tone
from rewindmq.race.report.style import PALETTE, PICTURE

_TOP: Final = 46.0
_LANE_HEIGHT: Final = 96.0
_CHART_GAP: Final = 26.0
_CHART_HEIGHT: Final = 170.0
_BOTTOM: Final = 34.0
_PAD: Final = 16.0
_SIDE: Final = 118
_TITLE_HEIGHT: Final = 30
_TICK_PIXELS: Final = 72.0
_IMPORTANT: Final = {Tone.RESET: 0, Tone.END: 1, Tone.COMMIT: 2, Tone.PULL: 3, Tone.STEP: 4}
# Baselines of a mark's label, in pixels from its lane: above it, else below.
_LEVELS: Final = (-9, -23, -37, 24, 38)
# Pixels from a mark to a label beside it; leaves room for arrows that end at the mark.
_BESIDE: Final = 6.0
_MAX_OFFSET_TICKS: Final = 5
_SMALL_WIDTH: Final = 320
_SMALL_HEIGHT: Final = 130


class Drawing:
    """Two pictures side by side: the lanes' names, which stay in place, and the timeline, which scrolls."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._axis = TimeAxis(scene.times())
        self._width = self._axis.width + 2 * _PAD
        self._lane_y = {name: _TOP + 46 + number * _LANE_HEIGHT for number, name in enumerate(scene.lanes)}
        self._chart_top = _TOP + len(scene.lanes) * _LANE_HEIGHT + _CHART_GAP
        self._height = self._chart_top + _CHART_HEIGHT + _BOTTOM
        self._labels = Labels(self._width)
        self._low, self._high = _offset_range(scene)

    def html(self) -> str:
        """Return both pictures as HTML."""
        side, body = "".join(self._side()), "".join(self._body())
        height = f'height="{self._height:.0f}"'
        names = f'<svg class="side" width="{_SIDE}" {height} aria-hidden="true">{side}</svg>'
        label = 'role="img" aria-label="steps of each process over time"'
        picture = f'<svg width="{self._width:.0f}" {height} {label}>{body}</svg>'
        region = 'class="scroll" tabindex="0" role="region" aria-label="timeline"'
        return f'<div class="figure">{names}<div {region}>{picture}</div></div>'

    def svg(self, title: str) -> str:
        """Return both as one standalone picture with a title."""
        width, height = _SIDE + self._width, self._height + _TITLE_HEIGHT
        side, body = "".join(self._side()), "".join(self._body())
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img"'
            f' width="{width:.0f}" height="{height:.0f}"><title>{escape(title)}</title>'
            f"<style>{PALETTE}{PICTURE}</style>"
            f'<rect class="paper" width="{width:.0f}" height="{height:.0f}" rx="8"/>'
            f"{_text('title', _PAD, _TITLE_HEIGHT - 6, title, 'start')}"
            f'<g transform="translate(0 {_TITLE_HEIGHT})">{side}'
            f'<g transform="translate({_SIDE} 0)">{body}</g></g></svg>\n'
        )

    def _x(self, at: float) -> float:
        return _PAD + self._axis.place(at)

    def _y(self, offset: float) -> float:
        share = (offset - self._low) / (self._high - self._low)
        return self._chart_top + _CHART_HEIGHT - share * _CHART_HEIGHT

    def _side(self) -> Iterator[str]:
        for name, y in self._lane_y.items():
            yield _text("name", _SIDE - 10, y + 4, name, "end")
        yield _text("name", _SIDE - 34, self._chart_top + 14, "offsets", "end")
        for offset in _ticks(self._low, self._high):
            yield _text("tick", _SIDE - 6, self._y(offset) + 4, str(offset), "end")

    def _body(self) -> Iterator[str]:
        yield _ARROW_HEADS
        yield from self._draw_time()
        yield from self._draw_lanes()
        # Lines come first, so that none covers a label; then labels, the important ones first.
        scene = self._scene
        yield from self._draw_offence_lines()
        for delivery in scene.deliveries:
            yield self._draw_delivery(delivery)
        for arrow in scene.arrows:
            self._keep_clear(arrow)
            yield self._draw_arrow(arrow)
        for mark in scene.marks:
            yield self._draw_mark(mark)
        items: list[Arrow | DrawnStep] = [*scene.arrows, *scene.marks]
        for item in sorted(items, key=self._importance):
            yield self._label_arrow(item) if isinstance(item, Arrow) else self._label_mark(item)
        yield from self._label_deliveries()
        yield from self._draw_chart()

    def _importance(self, item: Arrow | DrawnStep) -> tuple[bool, int, int]:
        return (not self._scene.is_offending(item.index), _IMPORTANT[item.tone], item.index)

    # Time and lanes.

    def _draw_time(self) -> Iterator[str]:
        bottom = self._chart_top + _CHART_HEIGHT
        for gap in self._axis.gaps():
            left, right = gap.first + _PAD, gap.last + _PAD
            inset = min((right - left) / 4, 10)
            width = right - left - 2 * inset
            yield (
                f'<rect class="gap" x="{left + inset:.1f}" y="{_TOP - 14:.1f}" width="{width:.1f}"'
                f' height="{bottom - _TOP + 14:.1f}"/>'
            )
            text = f"{gap.seconds:.1f} s"
            if width > len(text) * CHARACTER_PIXELS:
                yield _text("tick", (left + right) / 2, _TOP - 3, text, "middle")
                self._labels.block(Box(left, _TOP - 14, right, _TOP))
        for time, place in self._axis.ticks(_TICK_PIXELS):
            x = place + _PAD
            yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP - 18:.1f}" y2="{bottom:.1f}"/>'
            anchor = "start" if x < 30 else "end" if x > self._width - 30 else "middle"
            yield _text("tick", x, _TOP - 24, f"{time:.3f}".rstrip("0").rstrip(".") + " s", anchor)

    def _draw_lanes(self) -> Iterator[str]:
        for y in self._lane_y.values():
            yield f'<line class="lane" x1="0" x2="{self._width:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
            self._labels.block(Box(0, y - 1, self._width, y + 1))

    def _draw_offence_lines(self) -> Iterator[str]:
        bottom = self._chart_top + _CHART_HEIGHT
        for offence in self._scene.offences:
            x = self._x(offence.at)
            yield f'<line class="offence" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP - 14:.1f}" y2="{bottom:.1f}"/>'

    # Items.

    def _draw_arrow(self, arrow: Arrow) -> str:
        if arrow.source not in self._lane_y or arrow.target not in self._lane_y:
            return ""
        x1, y1 = self._x(arrow.sent_at), self._lane_y[arrow.source]
        x2, y2 = self._x(arrow.at), self._lane_y[arrow.target]
        tone = "bad" if self._scene.is_offending(arrow.index) else str(arrow.tone)
        if arrow.lost:
            # A lost frame's arrow ends half way.
            x2, y2 = x1 + 14, (y1 + y2) / 2
            cross = f"M{x2 - 4:.1f} {y2 - 4:.1f}l8 8m0 -8l-8 8"
            return f'<path class="arrow {tone} lost" d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}{cross}"/>'
        shift = 5 if y2 > y1 else -5
        title = f"<title>{escape(arrow.label)}: {arrow.sent_at:.3f} s to {arrow.at:.3f} s</title>"
        path = f"M{x1:.1f} {y1:.1f}L{x2:.1f} {y2 - shift:.1f}"
        return f'<path class="arrow {tone}" d="{path}" marker-end="url(#head-{tone})">{title}</path>'

    def _keep_clear(self, arrow: Arrow) -> None:
        """Keep the ends of an arrow free of labels."""
        if arrow.source not in self._lane_y or arrow.target not in self._lane_y:
            return
        x1, y1 = self._x(arrow.sent_at), self._lane_y[arrow.source]
        x2, y2 = self._x(arrow.at), self._lane_y[arrow.target]
        for distance in range(4, 28, 4):
            share = min(distance / max(abs(y2 - y1), 1.0), 0.5)
            for part in (share, 1 - share):
                x, y = x1 + part * (x2 - x1), y1 + part * (y2 - y1)
                self._labels.block(Box(x - 1, y - 2, x + 1, y + 2))

    def _label_arrow(self, arrow: Arrow) -> str:
        if arrow.source not in self._lane_y or arrow.target not in self._lane_y:
            return ""
        x1, y1 = self._x(arrow.sent_at), self._lane_y[arrow.source]
        x2, y2 = self._x(arrow.at), self._lane_y[arrow.target]
        size = len(arrow.label) * CHARACTER_PIXELS
        shares = [0.5, 0.35, 0.65, 0.25, 0.75, 0.42, 0.58]
        if arrow.lost:
            x2, shares = x1 + 28, [0.5, 0.4, 0.3, 0.6]
        places = []
        for share in shares:
            x, y = x1 + share * (x2 - x1), y1 + share * (y2 - y1) + 4
            places += [(x + 7, y), (x - 7 - size, y)]
        tone = "bad" if self._scene.is_offending(arrow.index) else str(arrow.tone)
        return self._label(arrow.label, places, tone, must=self._scene.is_offending(arrow.index))

    def _draw_mark(self, mark: DrawnStep) -> str:
        x, y = self._x(mark.at), self._lane_y[mark.process]
        tone = "bad" if self._scene.is_offending(mark.index) else str(mark.tone)
        title = f"<title>{escape(mark.label)}: {mark.at:.3f} s</title>"
        if mark.tone is Tone.END:
            return (
                f'<path class="arrow {tone}" d="M{x - 5:.1f} {y - 5:.1f}l10 10m0 -10l-10 10">{title}</path>'
            )
        return f'<circle class="mark {tone}" cx="{x:.1f}" cy="{y:.1f}" r="4">{title}</circle>'

    def _label_mark(self, mark: DrawnStep) -> str:
        x, y = self._x(mark.at), self._lane_y[mark.process]
        size = len(mark.label) * CHARACTER_PIXELS
        lefts = (x - size / 2, x - size / 4, x - size * 3 / 4, x + _BESIDE, x - size - _BESIDE)
        places = [(left, y + level) for level in _LEVELS for left in lefts]
        tone = "bad" if self._scene.is_offending(mark.index) else str(mark.tone)
        return self._label(mark.label, places, tone, must=self._scene.is_offending(mark.index))

    def _draw_delivery(self, delivery: DrawnDelivery) -> str:
        y = self._lane_y[delivery.process] + 5
        until = delivery.until if delivery.until is not None else self._scene.end
        x1, x2 = self._x(delivery.at), self._x(until)
        text = f"{_offsets_text(delivery.offsets)} in the listener, {delivery.at:.3f} s to {until:.3f} s"
        size = f'width="{max(x2 - x1, 2.5):.1f}" height="6" rx="1.5"'
        return f'<rect class="delivery" x="{x1:.1f}" y="{y:.1f}" {size}><title>{text}</title></rect>'

    def _label_deliveries(self) -> Iterator[str]:
        """Label deliveries with their offsets where there is room; the longest deliveries come first."""
        ordered = sorted(
            self._scene.deliveries,
            key=lambda delivery: delivery.at - (delivery.until or self._scene.end),
        )
        for delivery in ordered:
            y = self._lane_y[delivery.process] + 23
            text = _offsets_text(delivery.offsets)
            yield self._label(text, [(self._x(delivery.at), y)], "delivered", must=False)

    def _label(self, text: str, places: list[tuple[float, float]], tone: str, *, must: bool) -> str:
        place = self._labels.put(text, places, must=must)
        if place is None:
            return ""
        return f'<text class="label {tone}" x="{place[0]:.1f}" y="{place[1]:.1f}">{escape(text)}</text>'

    # The chart.

    def _draw_chart(self) -> Iterator[str]:
        scene = self._scene
        bottom = self._chart_top + _CHART_HEIGHT
        for offset in _ticks(self._low, self._high):
            y = self._y(offset)
            yield f'<line class="grid" x1="0" x2="{self._width:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<line class="lane" x1="0" x2="{self._width:.1f}" y1="{bottom:.1f}" y2="{bottom:.1f}"/>'
        if scene.target is not None:
            y = self._y(scene.target)
            yield f'<line class="target" x1="0" x2="{self._width:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<path class="progress" d="{self._steps([(m.at, m.finished_until) for m in scene.moments])}"/>'
        yield f'<path class="stored" d="{self._steps([(m.at, m.stored) for m in scene.moments])}"/>'
        for offence in scene.offences:
            stored = scene.stored_at(offence)
            if stored is not None:
                x, y = self._x(offence.at), self._y(stored)
                yield f'<circle class="offence-point" cx="{x:.1f}" cy="{y:.1f}" r="9"/>'
                yield _text("offence-number", x, y + 4, str(offence.number), "middle")

    def _steps(self, values: list[tuple[float, int | None]]) -> str:
        """Return the path of a step line: each value holds until the next."""
        path = ""
        last: int | None = None
        for at, value in values:
            if value is None or value == last:
                continue
            x, y = self._x(max(at, self._scene.start)), self._y(value)
            path += f"M{x:.1f} {y:.1f}" if last is None else f"H{x:.1f}V{y:.1f}"
            last = value
        return path + (f"H{self._x(self._scene.end):.1f}" if path else "")


def small_chart(scene: Scene) -> str:
    """Return the chart of offsets alone, small enough to put several side by side."""
    low, high = _offset_range(scene)
    times = [time for time in scene.times() if time >= scene.start]
    axis = TimeAxis(times)

    def point(at: float, offset: float) -> tuple[float, float]:
        share = (offset - low) / (high - low)
        across = axis.place(max(at, scene.start)) / axis.width
        return 6 + across * (_SMALL_WIDTH - 12), 8 + (1 - share) * (_SMALL_HEIGHT - 16)

    def steps(values: list[tuple[float, int | None]]) -> str:
        path = ""
        for at, value in values:
            if value is not None:
                x, y = point(at, value)
                path += f"H{x:.1f}V{y:.1f}" if path else f"M{x:.1f} {y:.1f}"
        return path + (f"H{_SMALL_WIDTH - 6}" if path else "")

    parts = [
        f'<svg class="small" viewBox="0 0 {_SMALL_WIDTH} {_SMALL_HEIGHT}" role="img" aria-label="offsets">'
    ]
    if scene.target is not None:
        _, y = point(scene.start, scene.target)
        parts.append(f'<line class="target" x1="0" x2="{_SMALL_WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>')
    moments = scene.moments
    parts.append(f'<path class="progress" d="{steps([(m.at, m.finished_until) for m in moments])}"/>')
    parts.append(f'<path class="stored" d="{steps([(m.at, m.stored) for m in moments])}"/>')
    for offence in scene.offences:
        stored = scene.stored_at(offence)
        if stored is not None:
            x, y = point(offence.at, stored)
            parts.append(f'<circle class="offence-point" cx="{x:.1f}" cy="{y:.1f}" r="5"/>')
    return "".join(parts) + "</svg>"


def _offset_range(scene: Scene) -> tuple[float, float]:
    values = [
        value
        for moment in scene.moments
        for value in (moment.stored, moment.finished_until)
        if value is not None
    ]
    if scene.target is not None:
        values.append(scene.target)
    low, high = min(values, default=0), max(values, default=1)
    return low, max(high, low + 1)


def _ticks(low: float, high: float) -> list[int]:
    """Return at most six round numbers from ``low`` to ``high``."""
    step = 1
    factors = (2, 5, 10)
    base = 1
    while (high - low) / step > _MAX_OFFSET_TICKS:
        for factor in factors:
            step = base * factor
            if (high - low) / step <= _MAX_OFFSET_TICKS:
                break
        else:
            base *= 10
    first = -(-int(low) // step) * step
    return list(range(first, int(high) + 1, step))


def _offsets_text(offsets: object) -> str:
    numbers = list(offsets) if isinstance(offsets, (list, tuple)) else []
    if len(numbers) == 1:
        return str(numbers[0])
    return f"{numbers[0]}–{numbers[-1]}" if numbers else ""


def _text(kind: str, x: float, y: float, text: str, anchor: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


_ARROW_HEADS: Final = (
    "<defs>"
    + "".join(
        f'<marker id="head-{tone}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"'
        f' orient="auto-start-reverse"><path class="head {tone}" d="M0 0L8 4L0 8z"/></marker>'
        for tone in (*Tone, "bad")
    )
    + "</defs>"
)
