"""The stored offset is above what the broker has handed out since the rewind.

Shows: no consumer can have come to that offset, so the commit is of a delivery from before the reset, and
no commit has repaired it for 6 s. A consumer that takes the queue over from it leaves the rest out.
Cannot see: a late commit of an offset that was handed out again already; a rewind that no reset began;
anything at a broker whose slaves serve pulls, that was away for a while, or that is RocketMQ's.
"""

from __future__ import annotations

from rewindmq.protocol.body.rewind import Rewind
from rewindmq.watch.evidence.moment import SETTLED, Case, Moment
from rewindmq.watch.finding import Finding
from rewindmq.watch.rules.jump import REPAIR
from rewindmq.watch.rules.rewound import rewind_since_reset


class Overtaken:
    """Looks at the rewind when the consumers have settled: until then, it is open which race it was."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._since: float | None = None
        # Meanwhile, consumers may have pulled from the broker's slave.
        self._was_away = False

    def add(self, moment: Moment) -> Finding | None:
        """Take in a moment; find ``OVERTAKEN``."""
        self._was_away = self._was_away or moment.is_after_gap
        rewind = rewind_since_reset(self._case, moment.seen)
        if self._was_away or rewind is None or not _is_above(moment.stored, rewind):
            self._since = None
            return None
        if self._since is None:
            self._since = moment.seconds
        is_shown = moment.seconds >= SETTLED and moment.seconds - self._since >= REPAIR
        return Finding.OVERTAKEN if is_shown else None


def _is_above(stored: int, rewind: Rewind) -> bool:
    """True if the stored offset is above what was handed out, and not every message was handed out yet."""
    is_told = rewind.notes_all_pulls and rewind.passed is not None
    return is_told and rewind.handed_out < min(stored, rewind.end)
