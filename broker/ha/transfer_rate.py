"""Counts the bytes of a replication connection in each second (5.3.3 ``FlowMonitor``)."""

from __future__ import annotations


class TransferRate:
    """The bytes of the last whole second; seconds begin at whole values of the clock.

    RocketMQ counts with a thread for each connection; this counts when bytes arrive, without a timer.
    """

    def __init__(self) -> None:
        self._second = 0
        self._count = 0
        self._before = 0

    def add(self, count: int, now: float) -> None:
        """Count bytes.

        Args:
            now: the monotonic clock, s; it must not decrease.
        """
        self._move_to(now)
        self._count += count

    def last_second(self, now: float) -> int:
        """Return the number of bytes in the last whole second before ``now``."""
        self._move_to(now)
        return self._before

    def _move_to(self, now: float) -> None:
        second = int(now)
        if second != self._second:
            self._before = self._count if second == self._second + 1 else 0
            self._second, self._count = second, 0
