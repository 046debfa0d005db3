"""A run as text for a terminal: a column per process, and on the right the stored offset and the replay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rewindmq.protocol.text import escape_lines
from rewindmq.race.checker import ProgressChange, Verdict
from rewindmq.race.history import History
from rewindmq.race.report.axis import QUIET_SECONDS
from rewindmq.race.report.meta import LOSS_TEXTS, ReportMeta, headline
from rewindmq.race.report.scene import Arrow, DrawnDelivery, Scene, make_scene

_TIME_COLUMNS: Final = 12
_STORED_COLUMNS: Final = 17
_MIN_LANE_COLUMNS: Final = 12
_MARKER: Final = ">> "


@dataclass(frozen=True, slots=True)
class _Line:
    at: float
    index: int
    cells: str


def render_text(history: History, verdict: Verdict, meta: ReportMeta, width: int = 100) -> str:
    """Return the run as lines of at most ``width`` characters (at least 60); ``>>`` marks offending steps."""
    width = max(width, 60)
    scene = make_scene(history, verdict)
    facts = ", ".join(f"{name} {value}" for name, value in meta.facts.items())
    lines = [*_wrapped(meta.title, width), *_wrapped(facts, width), headline(verdict)]
    for violation in verdict.violations:
        lines += _wrapped(f"{violation.loss} at {violation.at:.3f} s: {violation.text}.", width, "  ")
        lines += _wrapped(f"({LOSS_TEXTS[violation.loss]})", width, "     ")
    lines += ["", *_Table(scene, width).lines()]
    return escape_lines(line.rstrip() for line in lines) + "\n"


class _Table:
    def __init__(self, scene: Scene, width: int) -> None:
        self._scene = scene
        lanes = max(len(scene.lanes), 1)
        room = width - _TIME_COLUMNS - _STORED_COLUMNS
        self._lane_columns = max(room // lanes, _MIN_LANE_COLUMNS)
        # If there are too many processes for the width, the last ones are cut off.
        self._room = min(self._lane_columns * lanes, room)
        self._centres = {
            name: number * self._lane_columns + self._lane_columns // 2
            for number, name in enumerate(scene.lanes)
        }

    def lines(self) -> list[str]:
        names = "".join(f"{name:^{self._lane_columns}.{self._lane_columns}}" for name in self._scene.lanes)
        lines = [f"{'s':>{_TIME_COLUMNS - 2}}  {names[: self._room]:{self._room}}  stored  replay"]
        previous: float | None = None
        shown: tuple[int | None, int | None] | None = None
        for line in self._ordered():
            if previous is not None and line.at - previous >= QUIET_SECONDS:
                lines.append(f"{'':{_TIME_COLUMNS}}{self._empty()}")
            previous = line.at
            moment = self._moment(line)
            values = (None, None) if moment is None else (moment.stored, moment.finished_until)
            mark = _MARKER if self._scene.is_offending(line.index) else ""
            time = f"{line.at:.3f}"
            text = f"{mark:<3}{time:>{_TIME_COLUMNS - 5}}  {line.cells:{self._room}}"
            if values != shown:
                text += "".join(f"{'-' if value is None else value:>8}" for value in values)
                shown = values
            lines.append(text)
        return lines

    def _ordered(self) -> list[_Line]:
        scene = self._scene
        lines = [_Line(arrow.at, arrow.index, self._arrow(arrow)) for arrow in scene.arrows]
        lines += [_Line(mark.at, mark.index, self._cell(mark.process, mark.label)) for mark in scene.marks]
        lines += self._deliveries(scene.deliveries, [line.index for line in lines])
        shown = {line.index for line in lines}
        for offence in scene.offences:
            if offence.index not in shown:
                lines.append(_Line(offence.at, offence.index, self._empty()))
        return sorted(lines, key=lambda line: (line.at, line.index))

    def _deliveries(self, deliveries: Sequence[DrawnDelivery], others: Sequence[int]) -> list[_Line]:
        """Join consecutive deliveries of one process into one line."""
        lines: list[_Line] = []
        run: list[DrawnDelivery] = []
        for delivery in sorted(deliveries, key=lambda delivery: delivery.index):
            if run and (
                delivery.process != run[0].process
                or delivery.at - run[-1].at >= QUIET_SECONDS
                or any(run[-1].index < index < delivery.index for index in others)
            ):
                lines.append(self._delivered(run))
                run = []
            run.append(delivery)
        if run:
            lines.append(self._delivered(run))
        return lines

    def _delivered(self, run: Sequence[DrawnDelivery]) -> _Line:
        first, last = run[0].offsets[0], run[-1].offsets[-1]
        text = f"gets {first}" if first == last else f"gets {first} to {last}"
        return _Line(run[0].at, run[0].index, self._cell(run[0].process, text))

    def _moment(self, line: _Line) -> ProgressChange | None:
        """Return the stored offset and the redelivery after this step."""
        latest = None
        for moment in self._scene.moments:
            if moment.at > line.at or (line.index >= 0 and moment.event_index > line.index):
                break
            latest = moment
        return latest

    def _empty(self, *, dots: bool = True) -> str:
        cells = [" "] * self._room
        if dots:
            for centre in self._centres.values():
                if centre < self._room:
                    cells[centre] = "│"
        return "".join(cells)

    def _cell(self, process: str, text: str) -> str:
        centre = self._centres.get(process)
        return self._empty() if centre is None else self._over(self._empty(), centre, text)

    def _over(self, line: str, centre: int, text: str) -> str:
        """Write ``text`` into the middle of a column; move it inwards at the edges, cut it to the width."""
        text = text[: self._room]
        start = min(max(centre - len(text) // 2, 0), self._room - len(text))
        return line[:start] + text + line[start + len(text) :]

    def _arrow(self, arrow: Arrow) -> str:
        source, target = self._centres.get(arrow.source), self._centres.get(arrow.target)
        line = self._empty()
        if source is None or target is None or max(source, target) >= self._room:
            return line
        if source == target:
            return self._over(line, source, arrow.label)
        left, right = min(source, target), max(source, target)
        body = ["─"] * (right - left - 1)
        if arrow.lost:
            body[len(body) // 2 :] = " " * (len(body) - len(body) // 2)
            body[len(body) // 2] = "x"
            if target < source:
                body.reverse()
        else:
            body[-1 if target > source else 0] = ">" if target > source else "<"
        room = max(len(body) - 2, 0)
        text = f" {arrow.label} " if len(arrow.label) + 2 <= room else arrow.label
        if len(text) > room:
            # An offset that does not fit is left out: half an offset would be misread.
            text = text[: max(room - 1, 0)].rstrip("0123456789→( ") + "…"
        start = 1 + (len(body) - 2 - len(text)) // 2
        drawn = "".join(body[:start]) + text + "".join(body[start + len(text) :])
        return line[: left + 1] + drawn + line[right:]


def _wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """Break ``text`` into lines of at most ``width`` characters."""
    lines: list[str] = []
    line = indent
    for word in text.split():
        if len(line) + len(word) + 1 > width and line.strip():
            lines.append(line)
            line = indent
        line += word if not line.strip() else f" {word}"
    return [*lines, line] if line.strip() else lines
