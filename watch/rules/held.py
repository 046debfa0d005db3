"""A redelivery that was seen goes on, or has ended, without a contradiction for 40 s.

Shows: in this time a suspended pull ends, a rebalance runs, and consumers commit; whatever contradicts a
redelivery shows.
Cannot see: what ``Redelivery`` and ``Jump`` cannot.
"""

from __future__ import annotations

from typing import Final

from rewindmq.watch.evidence.moment import Moment
from rewindmq.watch.finding import Finding
from rewindmq.watch.rules.jump import Jump
from rewindmq.watch.rules.redelivery import Redelivery

# Seconds. A suspended pull ends 20 s after it was sent, a rebalance comes every 20 s, and consumers commit
# every 5 s.
HOLD: Final = 40.0


class Held:
    """Waits until a redelivery without a gap has been held for ``HOLD`` seconds."""

    def __init__(self, redelivery: Redelivery, jump: Jump) -> None:
        self._redelivery = redelivery
        self._jump = jump

    @property
    def has_gap(self) -> bool:
        """True if a consumer may have left messages out."""
        return self._redelivery.leaps.are_open or self._jump.was_followed

    def add(self, moment: Moment) -> Finding | None:
        """Take in a moment, after redelivery and jump have; find ``HELD``."""
        since = self._redelivery.since
        if since is None or self._jump.is_open or moment.seconds - since < HOLD or self.has_gap:
            return None
        return Finding.HELD
