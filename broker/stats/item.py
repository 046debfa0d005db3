"""``StatsItem``: the counts of one key, sampled for windows of a minute, an hour and a day."""

from __future__ import annotations

from typing import Final, NamedTuple

# A window has so many samples at most; 7 samples, 10 s apart, span one minute.
MINUTE_SAMPLES: Final = 7
HOUR_SAMPLES: Final = 7
DAY_SAMPLES: Final = 25


class StatsSnapshot(NamedTuple):
    """What one window shows.

    Attributes:
        sum: how much was counted within the window.
        tps: ``sum`` per second of the window.
        avgpt: ``sum`` per request; 0.0 without a request.
    """

    sum: int = 0
    tps: float = 0.0
    avgpt: float = 0.0


class _Sample(NamedTuple):
    at: float
    times: int
    value: int
    size: int


class StatsWindow:
    """The latest samples of an item.

    Args:
        period: seconds between two samples.
        most: samples that the window keeps.
    """

    __slots__ = ("_most", "_period", "_samples")

    def __init__(self, period: float, most: int) -> None:
        self._period = period
        self._most = most
        self._samples: list[_Sample] = []

    def add(self, now: float, times: int, value: int, size: int) -> None:
        """Add a sample. The first also adds an empty sample one period before, as in RocketMQ."""
        samples = self._samples
        if not samples:
            samples.append(_Sample(now - self._period, 0, 0, 0))
        samples.append(_Sample(now, times, value, size))
        if len(samples) > self._most:
            del samples[0]

    def snapshot(self, *, of_size: bool) -> StatsSnapshot:
        """Return the window's figures, all 0 before the first sample (``StatsItem#computeStatsData``).

        Args:
            of_size: the figures of the sizes, instead of the values.
        """
        if not self._samples:
            return StatsSnapshot()
        first, last = self._samples[0], self._samples[-1]
        total = last.size - first.size if of_size else last.value - first.value
        times = last.times - first.times
        seconds = last.at - first.at
        return StatsSnapshot(
            total, total / seconds if seconds > 0 else 0.0, total / times if times > 0 else 0.0
        )


class StatsItem:
    """The counts of one key, such as a topic.

    A statistic of messages (``TOPIC_PUT_NUMS``) and one of their bytes (``TOPIC_PUT_SIZE``) share an item,
    because each request changes both.

    Attributes:
        times: requests.
        extra: messages beyond one for each request.
        size: bytes.
        idle_seconds: how long the counts have not changed, measured every ten minutes.
    """

    __slots__ = ("_times_before", "day", "extra", "hour", "idle_seconds", "minute", "size", "times")

    def __init__(self) -> None:
        self.times = 0
        self.extra = 0
        self.size = 0
        self.idle_seconds = 0.0
        self._times_before = 0
        self.minute = StatsWindow(10.0, MINUTE_SAMPLES)
        self.hour = StatsWindow(600.0, HOUR_SAMPLES)
        self.day = StatsWindow(3_600.0, DAY_SAMPLES)

    @property
    def value(self) -> int:
        """Messages."""
        return self.times + self.extra

    def add(self, value: int, size: int = 0) -> None:
        """Count one request."""
        self.times += 1
        self.extra += value - 1
        self.size += size

    def sample(self, window: StatsWindow, now: float) -> None:
        """Add the counts to one of the item's windows."""
        window.add(now, self.times, self.value, self.size)

    def watch_idle(self, seconds: float) -> None:
        """Measure ``idle_seconds``; called every ``seconds``."""
        if self.times == self._times_before:
            self.idle_seconds += seconds
        else:
            self.idle_seconds = 0.0
            self._times_before = self.times


class LatencyItem(StatsItem):
    """The milliseconds of one key's requests.

    A request counts with 0 ms by ``times`` alone, because nearly all take less than 1 ms.

    Attributes:
        extra: milliseconds.
    """

    __slots__ = ()

    @property
    def value(self) -> int:
        """Milliseconds."""
        return self.extra
