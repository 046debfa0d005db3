"""Rows that compare the same load on two clusters, and their table."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class ComparedSide:
    """One cluster's figures of a row.

    Attributes:
        samples: one sample for each round.
        cpu: the broker's processor time for a message, us, for each round; empty if the load has no messages.
    """

    samples: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.samples)


@dataclass(slots=True)
class LoadComparison:
    """One load on both clusters.

    Attributes:
        unit: unit of the samples.
        at_least: the ratio to reach; None if there is no target.
        higher_is_better: True for rates, False for times and sizes.
        note: what the reader must know about the measurement.
    """

    name: str
    unit: str
    at_least: float | None
    higher_is_better: bool = True
    note: str = ""
    rocketmq: ComparedSide = field(default_factory=ComparedSide)
    rewindmq: ComparedSide = field(default_factory=ComparedSide)

    @property
    def ratios(self) -> list[float]:
        """Return, for each round, how many times better RewindMQ was."""
        pairs = zip(self.rocketmq.samples, self.rewindmq.samples, strict=True)
        return [
            rewindmq / rocketmq if self.higher_is_better else rocketmq / rewindmq
            for rocketmq, rewindmq in pairs
        ]

    @property
    def ratio(self) -> float:
        """The median of the rounds' ratios; a machine that is slow for both in a round does not change it."""
        return statistics.median(self.ratios)

    @property
    def reached(self) -> bool | None:
        """True if the target was reached; None if there is no target."""
        return None if self.at_least is None else self.ratio >= self.at_least

    def as_json(self) -> dict[str, object]:
        sides = {"rocketmq": self.rocketmq, "rewindmq": self.rewindmq}
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


def render_comparisons(rows: Sequence[LoadComparison], rocketmq: str, rewindmq: str) -> str:
    """Return the table as text, followed by the notes.

    Args:
        rocketmq, rewindmq: column headings of the two clusters.
    """
    columns: Sequence[tuple[str, str, Callable[[LoadComparison], str]]] = (
        ("load", "<", lambda row: row.name),
        (rocketmq, ">", lambda row: _figure(row.rocketmq.median)),
        (rewindmq, ">", lambda row: _figure(row.rewindmq.median)),
        ("unit", "<", lambda row: row.unit),
        ("ratio", ">", lambda row: f"{row.ratio:.2f}"),
        ("rounds from - to", "<", lambda row: f"{min(row.ratios):.2f} - {max(row.ratios):.2f}"),
        ("target", ">", lambda row: "" if row.at_least is None else f">= {row.at_least:g}"),
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
    text.append(f"ratio: how many times faster or smaller {rewindmq} is; the median of the rounds' ratios")
    text += [f"{row.name}: {row.note}" for row in rows if row.note]
    return "\n".join(text)


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:,.1f}" if value >= 10 else f"{value:,.2f}"


def _cpu(row: LoadComparison) -> str:
    if not row.rocketmq.cpu or not row.rewindmq.cpu:
        return ""
    return f"{statistics.median(row.rocketmq.cpu):.1f} / {statistics.median(row.rewindmq.cpu):.1f}"
