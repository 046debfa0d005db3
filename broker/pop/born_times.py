"""BornTimes: when clients sent their requests, by the broker's clock.

A test may move a broker's clock ahead of the clocks of all clients (docs/testkit/faults.md). Without this,
every POP would then arrive after its poll time.
"""

from __future__ import annotations

from rewindmq.broker.background.schedule import Schedule
from rewindmq.protocol.remoting.runtime import Clock


class BornTimes:
    """Translates the times in requests; they change only if a test has moved the clock."""

    def __init__(self, clock: Clock) -> None:
        self._now_ms = clock.now_ms
        self._ahead_ms = 0

    def begin(self, schedule: Schedule) -> None:
        """See ``BackgroundService``."""
        schedule.when_clock_changes(self._move)

    async def close(self) -> None:
        """See ``BackgroundService``."""

    def of(self, born_time: int) -> int:
        """Return when a request was sent, ms; for 0, which some clients send, the present time."""
        return born_time + self._ahead_ms if born_time else self._now_ms()

    def _move(self, moved_ms: int) -> None:
        self._ahead_ms += moved_ms
