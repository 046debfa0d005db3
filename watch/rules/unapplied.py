"""No consumer has applied a classic reset.

Shows: the broker still waits for a commit of the target, so the stored offset never moved back.
Cannot see: a consumer that pulls by itself, and keeps its own offsets; anything at RocketMQ's brokers.
"""

from __future__ import annotations

from rewindmq.watch.evidence.moment import SETTLED, Case, Moment
from rewindmq.watch.finding import Finding
from rewindmq.watch.rules.rewound import rewind_since_reset


class Unapplied:
    """Waits until the consumers have settled.

    Attributes:
        is_same_holder: only consumers have the queue that had it before the reset.
    """

    def __init__(self, case: Case) -> None:
        self._case = case
        self.is_same_holder = False

    def add(self, moment: Moment) -> Finding | None:
        """Take in a moment; find ``UNTOUCHED``."""
        case, seen, sample = self._case, moment.seen, moment.group.sample
        is_waiting = seen.awaited is not None and rewind_since_reset(case, seen) is None
        # A consumer that has dropped the queue may be in the classic wait, and commit the target after it.
        is_settled = moment.seconds >= SETTLED and not any(each.dropped for each in seen.positions)
        if not is_waiting or not is_settled or not sample.is_complete or sample.is_pulling:
            return None
        holders = {position.client_id for position in seen.live}
        self.is_same_holder = bool(holders) and holders <= {each.client_id for each in case.before.live}
        return Finding.UNTOUCHED
