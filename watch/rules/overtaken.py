"""The stored offset is above what the broker has handed out since the rewind.

Shows: no consumer can have come to that offset, so the commit is of a delivery from before the reset, and
no commit has repaired it for 6 s. A consumer that takes the queue over from it leaves the rest out.
Cannot see: a late commit of an offset that was handed out again already; anything at RocketMQ's brokers.
"""

from __future__ import annotations

from rewindmq.watch.evidence.moment import SETTLED, Case, Moment
from rewindmq.watch.finding import Finding
from rewindmq.watch.rules.jump import REPAIR
from rewindmq.watch.rules.rewound import rewind_since_reset


class Overtaken:
    """Looks at the rewind when the consumers have settled: until then, it is open which race it was."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._since: float | None = None

    def add(self, moment: Moment) -> Finding | None:
        """Take in a moment; find ``OVERTAKEN``."""
        rewind = rewind_since_reset(self._case, moment.seen)
        if rewind is None or rewind.passed is None or moment.stored <= rewind.handed_out:
            self._since = None
            return None
        if self._since is None:
            self._since = moment.seconds
        is_shown = moment.seconds >= SETTLED and moment.seconds - self._since >= REPAIR
        return Finding.OVERTAKEN if is_shown else None
