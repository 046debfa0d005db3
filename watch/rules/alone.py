"""The group has no consumer: the stored offset takes effect when one takes the queue.

Shows: no consumer was connected right before the reset, and none has connected for 30 s since.
"""

from __future__ import annotations

from rewindmq.watch.evidence.moment import SETTLED, Moment
from rewindmq.watch.finding import Finding


class Alone:
    """Waits for a consumer."""

    def add(self, moment: Moment) -> Finding | None:
        """Take in a moment; find ``ALONE``."""
        is_alone = not moment.group.known and moment.group.sample.is_complete
        return Finding.ALONE if is_alone and moment.seconds >= SETTLED else None
