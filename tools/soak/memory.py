"""Memory of the soak's processes over time.

It counts RssAnon of ``/proc/PID/status``: the memory that a process allocated. Pages of mapped files (a
broker's store) do not count: the operating system keeps as many as fit and drops them when it likes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Final

from tools.soak.verdict import SoakVerdict, ViolationKind

GROWTH: Final = 0.10
# In a run of minutes, the tables that the hostile peer fills still grow: the broker's memory by up to 11 %.
SHORT_SECONDS: Final = 300.0
SHORT_GROWTH: Final = 0.25
# The part of the judged time that its beginning and its end each take.
_WINDOW: Final = 0.2
_MIN_SAMPLES: Final = 10


def rss_anon_kib(pid: int) -> int | None:
    """Return a process's RssAnon in KiB, None if the process has ended."""
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
    """The samples of one process: (seconds since the soak began, KiB)."""

    name: str
    samples: list[tuple[float, int]] = field(default_factory=list)


class MemoryWatch:
    """Samples of every process, a second or more apart; about 16 bytes each."""

    def __init__(self) -> None:
        self.lives: dict[int, Life] = {}

    def sample(self, at: float, processes: Mapping[int, str]) -> None:
        """Sample each process, given as pid to name."""
        for pid, name in processes.items():
            kib = rss_anon_kib(pid)
            if kib is not None:
                self.lives.setdefault(pid, Life(name)).samples.append((at, kib))

    def peak_kib(self) -> dict[str, int]:
        """Return the peak memory among the processes of each name."""
        peaks: dict[str, int] = {}
        for life in self.lives.values():
            peaks[life.name] = max(peaks.get(life.name, 0), max(kib for _, kib in life.samples))
        return peaks


def growth(life: Life, settled: float, end: float) -> float | None:
    """Return the relative growth of the median from the first fifth of [settled, end] to the last fifth.

    None if the process did not live through both fifths.
    """
    width = (end - settled) * _WINDOW
    first = [kib for at, kib in life.samples if settled <= at <= settled + width]
    last = [kib for at, kib in life.samples if end - width <= at <= end]
    if len(first) < _MIN_SAMPLES or len(last) < _MIN_SAMPLES:
        return None
    return median(last) / median(first) - 1


def judge_memory(
    watch: MemoryWatch, settled: float, end: float, needed: frozenset[str], verdict: SoakVerdict
) -> dict[str, float]:
    """Add a violation for every process whose memory grew by more than ``GROWTH``.

    In a run of less than ``SHORT_SECONDS``, ``SHORT_GROWTH`` is the limit.

    Args:
        settled: seconds since the soak began; earlier samples are warm-up.
        needed: names of processes; one process of each must have lived throughout.

    Returns:
        Name to growth, for the processes that lived throughout.
    """
    grown: dict[str, float] = {}
    limit = GROWTH if end >= SHORT_SECONDS else SHORT_GROWTH
    for life in watch.lives.values():
        by = growth(life, settled, end)
        if by is None:
            continue
        grown[life.name] = max(by, grown.get(life.name, by))
        if by > limit:
            verdict.add(ViolationKind.MEMORY, f"{life.name} grew by {by:.1%}")
    for name in sorted(needed - grown.keys()):
        verdict.add(ViolationKind.EMPTY, f"memory: no {name} lived long enough to be judged")
    return grown
