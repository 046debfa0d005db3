"""Counters and rates of stored and pulled messages (4.9.4 ``StoreStatsService``, ``BrokerStats``)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from datetime import datetime
from typing import Final, NamedTuple

from rewindmq.broker.limits import MAX_RATED_PAIRS

SAMPLE_SECONDS: Final = 10.0
_WINDOWS_SECONDS: Final = (10.0, 60.0, 600.0)
_GROUP_WINDOW_SECONDS: Final = 60.0


class _Sample(NamedTuple):
    at: float
    put_total: int
    get_total: int
    found_total: int
    missed_total: int


class BrokerStats:
    """Counters, sampled every 10 s.

    Attributes:
        put_total: messages stored since the start.
        put_bytes: size of their records in bytes.
        get_total: messages returned by pulls since the start.
        found_total, missed_total: reads by pulls that found messages, and reads that found none.
        put_at_midnight, get_at_midnight: the totals at the beginnings of yesterday and today, local time.
    """

    def __init__(self, now_ms: int, now: float) -> None:
        self.boot_timestamp = now_ms
        self.put_total = 0
        self.put_bytes = 0
        self.get_total = 0
        self.found_total = 0
        self.missed_total = 0
        self.put_at_midnight = (0, 0)
        self.get_at_midnight = (0, 0)
        # Messages by topic and group since the last sample, and the same between the samples before.
        self._group_gets: dict[tuple[str, str], int] = {}
        self._group_samples = deque(
            [(now, dict[tuple[str, str], int]())], maxlen=int(_GROUP_WINDOW_SECONDS / SAMPLE_SECONDS) + 1
        )
        self._day = datetime.fromtimestamp(now_ms / 1_000).astimezone().date()
        samples = int(_WINDOWS_SECONDS[-1] / SAMPLE_SECONDS) + 1
        self._samples = deque([_Sample(now, 0, 0, 0, 0)], maxlen=samples)

    def count_get(self, topic: str, group: str, count: int) -> None:
        """Count the messages that one pull returned to a group."""
        self.get_total += count
        self.found_total += 1
        key, gets = (topic, group), self._group_gets
        if key in gets or len(gets) < MAX_RATED_PAIRS:
            gets[key] = gets.get(key, 0) + count

    def sample(self, now_ms: int, now: float) -> None:
        """Record the counters; called every ``SAMPLE_SECONDS``."""
        self._samples.append(self._now(now))
        self._group_samples.append((now, self._group_gets))
        self._group_gets = {}
        day = datetime.fromtimestamp(now_ms / 1_000).astimezone().date()
        if day != self._day:
            self._day = day
            self.put_at_midnight = (self.put_at_midnight[1], self.put_total)
            self.get_at_midnight = (self.get_at_midnight[1], self.get_total)

    def put_tps(self) -> str:
        """Return the messages stored per second over the last 10, 60 and 600 s, for the tools."""
        return self._rates(lambda sample: sample.put_total)

    def get_tps(self) -> str:
        """Return the messages pulled per second over the same windows."""
        return self._rates(lambda sample: sample.get_total)

    def found_tps(self) -> str:
        """Return the reads per second that found messages, over the same windows."""
        return self._rates(lambda sample: sample.found_total)

    def missed_tps(self) -> str:
        """Return the reads per second that found none, over the same windows."""
        return self._rates(lambda sample: sample.missed_total)

    def looked_tps(self) -> str:
        """Return all reads per second, over the same windows."""
        return self._rates(lambda sample: sample.found_total + sample.missed_total)

    def consume_tps(self, topic: str, group: str) -> float:
        """Return the messages that a group pulled per second over the last minute."""
        key = (topic, group)
        samples = iter(self._group_samples)
        began, _ = next(samples)
        total = sum(gets.get(key, 0) for _, gets in samples)
        ended = self._group_samples[-1][0]
        return total / (ended - began) if ended > began else 0.0

    def _now(self, now: float) -> _Sample:
        return _Sample(now, self.put_total, self.get_total, self.found_total, self.missed_total)

    def _rates(self, counter: Callable[[_Sample], int]) -> str:
        return " ".join(str(self._rate(window, counter)) for window in _WINDOWS_SECONDS)

    def _rate(self, window: float, counter: Callable[[_Sample], int]) -> float:
        newest = self._samples[-1]
        oldest = next(sample for sample in self._samples if newest.at - sample.at <= window)
        seconds = newest.at - oldest.at
        return (counter(newest) - counter(oldest)) / seconds if seconds else 0.0
