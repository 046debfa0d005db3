"""The stored offset is above messages that a consumer still holds: the rest is lost if the consumer ends.

Shows: a late commit was stored, and the consumer's next one, within 6 s, has not repaired it; or the
consumer has left the queue before.
Cannot see: a jump that is repaired, or consumed through, between two samples; by one sample alone, whether
the offset jumped, or the consumer went back after the broker had told it.
"""

from __future__ import annotations

from typing import Final

from rewindmq.watch.evidence.clues import Clues
from rewindmq.watch.evidence.moment import Moment
from rewindmq.watch.evidence.position import Position, low_of
from rewindmq.watch.finding import Finding
from rewindmq.watch.rules.redelivery import Redelivery

# Seconds. A commit that was overtaken is repeated within 5 s.
REPAIR: Final = 6.0


class Jump:
    """A stored offset above messages of the redelivery that a consumer holds.

    Attributes:
        is_open: there is one.
        was_followed: there was one, and the consumer moved up to it: it may have left messages out.
    """

    def __init__(self, clues: Clues, redelivery: Redelivery) -> None:
        self._clues = clues
        self._redelivery = redelivery
        self.was_followed = False
        self._since: float | None = None
        self._to = 0
        self._holder = ""
        # The stored offset may be that of before the reset: the consumer applied it during the sample.
        self._may_be_early = False

    @property
    def is_open(self) -> bool:
        return self._since is not None

    def add(self, moment: Moment) -> Finding | None:
        """Take in a moment, after the redelivery has; find ``JUMPED``."""
        if moment.is_after_gap:
            self._since = None
        redelivery, is_complete = self._redelivery, moment.group.sample.is_complete
        if redelivery.holding is not None:
            self._note(moment, redelivery.holding)
        is_through = is_complete and not redelivery.is_working
        has_left = all(position.client_id != self._holder for position in moment.seen.live)
        is_kept = redelivery.is_finished or self._may_be_early or not has_left
        if is_through and self._since is not None and is_kept:
            # It may have consumed everything before its next commit, or have moved up to the stored offset.
            # Its offset in memory may have jumped, too, while it holds nothing for a moment.
            self.was_followed = True
            self._since = None
        if self._since is not None and (moment.seconds - self._since >= REPAIR or is_through):
            return Finding.JUMPED
        return None

    def _note(self, moment: Moment, holding: Position) -> None:
        """Note whether the stored offset is above a message that a consumer holds.

        While two consumers have the queue, the offset may be that of the other.
        """
        stored, low = moment.stored, low_of(holding)
        others = [other for other in moment.seen.live if other.client_id != holding.client_id]
        if stored <= low or any(stored <= low_of(other) for other in others):
            if self._since is not None and low >= self._to:
                self.was_followed = True
            self._since = None
        elif self._since is not None:
            self._may_be_early = False
        elif moment.group.sample.is_complete:
            self._since, self._to, self._holder = moment.seconds, stored, holding.client_id
            self._may_be_early = not self._clues.was_stored
