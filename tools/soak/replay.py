"""The law of rewinds: everything from a reset's target on is delivered again.

In fenced mode without exception. The other modes may lose a reset to their known races, so there it is
counted.
"""

from __future__ import annotations

from tools.soak.bitmap import Bitmap
from tools.soak.journal import Delivery


class Replay:
    """One reset of one queue of a group: the offsets in [begin, end) that still have to come again."""

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
        """How many did not come."""
        return self.end - self.begin - self._came.count

    def delivered(self, delivery: Delivery) -> None:
        """Something of the queue was delivered after the reset."""
        if self.begin <= delivery.offset < self.end:
            self._came.add(delivery.offset - self.begin)
