"""What a broker does by itself while it runs."""

from __future__ import annotations

from typing import Protocol

from rewindmq.broker.background.schedule import Schedule


class BackgroundService(Protocol):
    """Begun when the broker can serve, closed before its store is."""

    def begin(self, schedule: Schedule) -> None:
        """Register what repeats (``schedule.every``); called once."""

    async def close(self) -> None:
        """End what runs and save what has to be saved; the schedule has ended before."""
