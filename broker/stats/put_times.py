"""How long puts take: their distribution and percentiles over the last minute (``StoreStatsService``)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate, chain, repeat
from typing import Final

# The lower bounds in milliseconds of all intervals but the first two, and the texts of all.
_BOUNDS: Final = (10, 50, 100, 200, 500, 1_000, 2_000, 3_000, 4_000, 5_000, 10_000)
_TEXTS: Final = (
    "[<=0ms]",
    "[0~10ms]",
    "[10~50ms]",
    "[50~100ms]",
    "[100~200ms]",
    "[200~500ms]",
    "[500ms~1s]",
    "[1~2s]",
    "[2~3s]",
    "[3~4s]",
    "[4~5s]",
    "[5~10s]",
    "[10s~]",
)
# PUT_MESSAGE_ENTIRE_TIME_BUCKETS: step in ms and number of steps. The upper bounds are 1, 2, ... 20, 22, ...
_STEPS: Final = ((1, 20), (2, 15), (5, 10), (10, 10), (50, 6), (100, 5), (1_000, 9))
_UPPER: Final = tuple(accumulate(chain.from_iterable(repeat(step, times) for step, times in _STEPS)))
_NO_BOUND: Final = 2**63 - 1
_SAMPLES_PER_MINUTE: Final = 6


class PutTimes:
    """Counts the puts of a minute by their duration in whole milliseconds.

    Nearly all puts take less than a millisecond. Only the others are reported one by one; the number of all
    puts comes with each sample.

    Attributes:
        longest: milliseconds of the longest put since the start (``putMessageEntireTimeMax``).
    """

    def __init__(self) -> None:
        self.longest = 0
        self._samples = 0
        self._total_before = 0
        # Durations above 0, and how often they occurred.
        self._slow: dict[int, int] = {}
        # Durations and counts of the last whole minute, with 0 ms; None before the first minute ended.
        self._last: dict[int, int] | None = None

    def add_slow(self, ms: int) -> None:
        """Count a put that took ``ms`` > 0 milliseconds."""
        self._slow[ms] = self._slow.get(ms, 0) + 1
        self.longest = max(self.longest, ms)

    def sample(self, total: int) -> None:
        """Begin a new minute with every sixth call; called every 10 s.

        Args:
            total: puts since the start, the slow ones included.
        """
        self._samples += 1
        if self._samples % _SAMPLES_PER_MINUTE:
            return
        slow, self._slow = self._slow, {}
        quick = total - self._total_before - sum(slow.values())
        self._total_before = total
        self._last = {0: max(0, quick), **slow}

    def distribution(self) -> str:
        """Return the last minute's puts in each interval, ``null`` in the first minute, as RocketMQ does."""
        if self._last is None:
            return "null"
        counts = [0] * len(_TEXTS)
        for ms, count in self._last.items():
            counts[bisect_right(_BOUNDS, ms) + 1 if ms > 0 else 0] += count
        return "".join(f"{text}:{count} " for text, count in zip(_TEXTS, counts, strict=True))

    def percentile(self, part: float) -> float:
        """Return the duration in ms that ``part`` of the last minute's puts do not exceed.

        RocketMQ interpolates within its interval: if all puts took less than 1 ms, 99 % took 0.99 ms.
        """
        uppers = (*_UPPER, _NO_BOUND)
        counts = [0] * len(uppers)
        for ms, count in (self._last or {}).items():
            counts[bisect_left(uppers, ms)] += count
        wanted = int(sum(counts) * part)
        passed, lower = 0, 0
        for upper, count in zip(uppers, counts, strict=True):
            if wanted <= passed + count:
                return lower + (upper - lower) * (wanted - passed) / count if count else float(lower)
            passed += count
            lower = upper
        return 0.0
