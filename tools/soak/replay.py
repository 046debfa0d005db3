"""Checks resets: every message from a reset's target on is delivered again.

Fenced mode promises it without exception. The known races of the other modes may lose a reset, so the checker
only counts those.
"""

from __future__ import annotations

from tools.soak.bitmap import Bitmap
from tools.soak.journal import Delivered


class Replay:
    """One reset of one queue of a group: the offsets in [begin, end) that must be delivered again."""

    def __init__(self, queue: str, mode: str, begin: int, end: int) -> None:
        self.queue = queue
        self.mode = mode
        self.begin = begin
        self.end = end
        self._came = Bitmap()

    @property
    def is_whole(self) -> bool:
        return self._came.count == self.end - self.begin

    @property
    def missing(self) -> int:
        """Number of messages that were not delivered again."""
        return self.end - self.begin - self._came.count

    def delivered(self, delivery: Delivered) -> None:
        """Record a delivery of the queue after the reset."""
        if self.begin <= delivery.offset < self.end:
            self._came.add(delivery.offset - self.begin)
