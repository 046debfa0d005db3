"""Messages a second, as RocketMQ 5's runtime information shows them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

# RocketMQ 5.5.1 ``PerfCounter.Ticks``: a period ends with this many events, or after this time.
_MAX_EVENTS: Final = 1_000_000
_PERIOD_MS: Final = 10_000
_STALE_MS: Final = _PERIOD_MS + 3_000


class Rate:
    """Events a second in the last full period; a period ends with an event (``PerfCounter#getLastTps``)."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._begin_ms = now_ms()
        self._count = 0
        self._last = 0.0

    def count(self) -> None:
        """Count an event."""
        self._count += 1
        # The clock is read with every sixteenth event only, and with the first of a period.
        if self._count & 15 == 1 or self._count >= _MAX_EVENTS:
            now_ms = self._now_ms()
            elapsed = now_ms - self._begin_ms
            if elapsed >= _PERIOD_MS or self._count >= _MAX_EVENTS:
                self._last = (self._count + 0.1) * 1_000 / max(elapsed, 1)
                self._count, self._begin_ms = 0, now_ms

    @property
    def value(self) -> float:
        """The rate; 0 if no event has ended a period lately."""
        return self._last if self._now_ms() - self._begin_ms <= _STALE_MS else 0.0
