"""The report that a soak prints at its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tools.soak.options import SoakOptions
from tools.soak.verdict import SoakVerdict


@dataclass(frozen=True)
class SoakReport:
    """The results of a soak.

    Attributes:
        actions: how often each action was carried out.
        grown: process to the growth of its memory, for the processes that were judged.
        peak_kib: process to its peak memory, KiB.
        disk: peak of the disk space, bytes.
    """

    options: SoakOptions
    verdict: SoakVerdict
    actions: Counter[str]
    grown: Mapping[str, float]
    peak_kib: Mapping[str, int]
    disk: int

    def lines(self) -> Iterator[str]:
        options, verdict = self.options, self.verdict
        yield ""
        given = f"{options.minutes:g} min, seed {options.seed}, time scale {options.time_scale:g}"
        yield f"{given}, {options.profile}"
        yield from _table("actions", {what: f"{count:,}" for what, count in sorted(self.actions.items())})
        yield from _table("counted", {what: f"{count:,}" for what, count in verdict.counts.items()})
        memory = {
            name: f"{kib / 1024:8.1f} MiB at most"
            + (f", grew by {self.grown[name]:+.1%}" if name in self.grown else "")
            for name, kib in sorted(self.peak_kib.items())
        }
        yield from _table("memory", memory)
        yield from _table("disk", {"at most": f"{self.disk >> 20} MiB"})
        if verdict.is_ok:
            yield "no promise was broken"
            return
        yield from _table("VIOLATIONS", {str(kind): f"{count:,}" for kind, count in verdict.totals.items()})
        yield from (f"  {violation.kind.name}: {violation.text}" for violation in verdict.violations)


def _table(title: str, rows: Mapping[str, str]) -> Iterator[str]:
    if rows:
        yield title
        width = max(map(len, rows))
        yield from (f"  {name:{width}}  {value}" for name, value in rows.items())
