"""Rows that hold the same load on two clusters against each other, and how they are printed."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class Side:
    """One cluster's part of a row.

    Attributes:
        samples: one per round.
        cpu: microseconds of the broker's processor time per message, one per round; empty without messages.
    """

    samples: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.samples)


@dataclass(slots=True)
class Comparison:
    """One load.

    Attributes:
        unit: of the samples.
        at_least: how many times better RewindMQ must be: faster, or smaller.
        higher_is_better: rates are, times and sizes are not.
        note: anything the reader has to know about how it was measured.
    """

    name: str
    unit: str
    at_least: float | None
    higher_is_better: bool = True
    note: str = ""
    real: Side = field(default_factory=Side)
    ours: Side = field(default_factory=Side)

    @property
    def ratios(self) -> list[float]:
        """Return, for each round, how many times better RewindMQ was."""
        pairs = zip(self.real.samples, self.ours.samples, strict=True)
        return [ours / real if self.higher_is_better else real / ours for real, ours in pairs]

    @property
    def ratio(self) -> float:
        """The median of the rounds' ratios: what both met in one round leaves it alone."""
        return statistics.median(self.ratios)

    @property
    def reached(self) -> bool | None:
        """Whether the figure asked for was reached; None when none is asked."""
        return None if self.at_least is None else self.ratio >= self.at_least

    def as_json(self) -> dict[str, object]:
        sides = {"real": self.real, "ours": self.ours}
        return {
            "name": self.name,
            "unit": self.unit,
            "ratio": self.ratio,
            "ratios": self.ratios,
            "at_least": self.at_least,
            "reached": self.reached,
            "note": self.note,
            **{
                name: {"median": side.median, "samples": side.samples, "broker_cpu_us": side.cpu}
                for name, side in sides.items()
            },
        }


def render_comparisons(rows: Sequence[Comparison], real: str, ours: str) -> str:
    """The table as text, then the notes.

    Args:
        real, ours: what the two are called.
    """
    columns: Sequence[tuple[str, str, Callable[[Comparison], str]]] = (
        ("load", "<", lambda row: row.name),
        (real, ">", lambda row: _figure(row.real.median)),
        (ours, ">", lambda row: _figure(row.ours.median)),
        ("unit", "<", lambda row: row.unit),
        ("ratio", ">", lambda row: f"{row.ratio:.2f}"),
        ("rounds from - to", "<", lambda row: f"{min(row.ratios):.2f} - {max(row.ratios):.2f}"),
        ("to reach", ">", lambda row: "" if row.at_least is None else f">= {row.at_least:g}"),
        ("reached", "<", lambda row: {True: "yes", False: "NO", None: ""}[row.reached]),
        ("CPU us/msg of the brokers", "<", _cpu),
    )
    lines = [[title for title, _, _ in columns]]
    lines += [[cell(row) for _, _, cell in columns] for row in rows]
    widths = [max(len(line[index]) for line in lines) for index in range(len(columns))]
    text = [
        "  ".join(
            f"{cell:{align}{width}}" for cell, width, (_, align, _) in zip(line, widths, columns, strict=True)
        ).rstrip()
        for line in lines
    ]
    text.insert(1, "  ".join("-" * width for width in widths))
    text.append(f"ratio: how many times faster or smaller {ours} is; the median of the rounds' own ratios")
    text += [f"{row.name}: {row.note}" for row in rows if row.note]
    return "\n".join(text)


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:,.1f}" if value >= 10 else f"{value:,.2f}"


def _cpu(row: Comparison) -> str:
    if not row.real.cpu or not row.ours.cpu:
        return ""
    return f"{statistics.median(row.real.cpu):.1f} / {statistics.median(row.ours.cpu):.1f}"
