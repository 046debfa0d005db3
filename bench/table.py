"""Rows of the benchmark table, and their text and JSON forms."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


@dataclass(slots=True)
class Row:
    """One load, its samples and its targets.

    Attributes:
        name: the load's name.
        unit: unit of the samples, such as ``msg/s`` or ``ms``.
        samples: one sample for each round.
        target: the figure to reach; None if there is no target.
        higher_is_better: True for rates, False for times and sizes.
        limit: a row to compare with, such as the same load without a protocol, measured in the same rounds.
        limit_share: the share of ``limit`` to reach; None if there is no such target.
        limit_name: a short name of ``limit``.
        note: what the reader must know about the measurement.
    """

    name: str
    unit: str
    target: float | None = None
    higher_is_better: bool = True
    limit: Row | None = None
    limit_share: float | None = None
    limit_name: str = "echo"
    note: str = ""
    samples: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    @property
    def ratio(self) -> float | None:
        """The median's share of the limit's median."""
        return None if self.limit is None else self.median / self.limit.median

    @property
    def reached(self) -> bool | None:
        """True if all targets of this row were reached; None if there is no target."""
        checks = []
        if self.target is not None:
            checks.append(self.median >= self.target if self.higher_is_better else self.median <= self.target)
        if self.limit_share is not None and self.ratio is not None:
            checks.append(self.ratio >= self.limit_share)
        return all(checks) if checks else None

    def as_json(self) -> dict[str, object]:
        return {
            "name": self.name,
            "unit": self.unit,
            "median": self.median,
            "samples": self.samples,
            "target": self.target,
            "ratio": self.ratio,
            "ratio_to": None if self.limit is None else self.limit_name,
            "ratio_target": self.limit_share,
            "reached": self.reached,
            "note": self.note,
        }


def _figure(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.1f}" if abs(value) >= 10 else f"{value:,.2f}"


def _target(row: Row) -> str:
    parts = []
    if row.target is not None:
        parts.append(f"{'>=' if row.higher_is_better else '<='} {_figure(row.target)}")
    if row.limit_share is not None:
        parts.append(f">= {row.limit_share:.2f} x {row.limit_name}")
    return ", ".join(parts)


def _verdict(row: Row) -> str:
    return {True: "yes", False: "NO", None: ""}[row.reached]


_COLUMNS: Sequence[tuple[str, str, Callable[[Row], str]]] = (
    ("load", "<", lambda row: row.name),
    ("median", ">", lambda row: _figure(row.median)),
    ("min", ">", lambda row: _figure(min(row.samples))),
    ("max", ">", lambda row: _figure(max(row.samples))),
    ("unit", "<", lambda row: row.unit),
    ("ratio", "<", lambda row: "" if row.ratio is None else f"{row.ratio:.3f} x {row.limit_name}"),
    ("target", "<", _target),
    ("reached", "<", _verdict),
)


def render(rows: Sequence[Row]) -> str:
    """Return the table as text, followed by the notes."""
    lines = [[title for title, _, _ in _COLUMNS]]
    lines += [[cell(row) for _, _, cell in _COLUMNS] for row in rows]
    widths = [max(len(line[index]) for line in lines) for index in range(len(_COLUMNS))]
    text = [
        "  ".join(
            f"{cell:{align}{width}}"
            for cell, width, (_, align, _) in zip(line, widths, _COLUMNS, strict=True)
        ).rstrip()
        for line in lines
    ]
    text.insert(1, "  ".join("-" * width for width in widths))
    text += [f"{row.name}: {row.note}" for row in rows if row.note]
    return "\n".join(text)


class _Jsonable(Protocol):
    def as_json(self) -> dict[str, object]: ...


def write_json(rows: Sequence[_Jsonable], path: Path) -> None:
    path.write_text(json.dumps([row.as_json() for row in rows], indent=2) + "\n")
