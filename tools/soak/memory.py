"""Memory of the soak's processes over time.

What counts is RssAnon of ``/proc/PID/status``: the memory a process has taken for itself. Pages of mapped
files (a broker's store) are left out: the system keeps as many of them as it has room for, and gives them
up at will.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Final

from tools.soak.verdict import Law, Verdict

GROWTH: Final = 0.10
# Of the time that is judged, at its beginning and its end.
_WINDOW: Final = 0.2
_MIN_SAMPLES: Final = 10


def rss_anon_kib(pid: int) -> int | None:
    """KiB, or None when the process is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    for line in status.splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1])
    return None


@dataclass
class Life:
    """One process's samples: seconds since the soak began, KiB."""

    name: str
    samples: list[tuple[float, int]] = field(default_factory=list)


class MemoryWatch:
    """Samples of every process, a second or more apart; 16 bytes or so each."""

    def __init__(self) -> None:
        self.lives: dict[int, Life] = {}

    def sample(self, at: float, processes: Mapping[int, str]) -> None:
        """Look at each process, given as pid to name."""
        for pid, name in processes.items():
            kib = rss_anon_kib(pid)
            if kib is not None:
                self.lives.setdefault(pid, Life(name)).samples.append((at, kib))

    def peak_kib(self) -> dict[str, int]:
        """The most that any process of each name had."""
        peaks: dict[str, int] = {}
        for life in self.lives.values():
            peaks[life.name] = max(peaks.get(life.name, 0), max(kib for _, kib in life.samples))
        return peaks


def growth(life: Life, settled: float, end: float) -> float | None:
    """By which part the median grew from the first fifth of [settled, end] to the last one.

    None when the process did not live through both.
    """
    width = (end - settled) * _WINDOW
    first = [kib for at, kib in life.samples if settled <= at <= settled + width]
    last = [kib for at, kib in life.samples if end - width <= at <= end]
    if len(first) < _MIN_SAMPLES or len(last) < _MIN_SAMPLES:
        return None
    return median(last) / median(first) - 1


def judge_memory(
    watch: MemoryWatch, settled: float, end: float, needed: frozenset[str], verdict: Verdict
) -> dict[str, float]:
    """Whether memory stayed flat.

    Args:
        settled: seconds since the soak began; what came before is warming up.
        needed: names of which one process at least has to have lived all the while.

    Returns:
        Name to growth, of those that lived all the while.
    """
    grown: dict[str, float] = {}
    for life in watch.lives.values():
        by = growth(life, settled, end)
        if by is None:
            continue
        grown[life.name] = max(by, grown.get(life.name, by))
        if by > GROWTH:
            verdict.add(Law.MEMORY, f"{life.name} grew by {by:.1%}")
    for name in sorted(needed - grown.keys()):
        verdict.add(Law.EMPTY, f"memory: no {name} lived long enough to be judged")
    return grown
