"""A consumer is through every message that the broker handed out again.

Shows: one consumer has received every message of the redelivery, one pull after the other, and then holds
none of them, while it has not given the queue up. What was sent before the reset and arrives later can do no
harm then: it is about offsets that this consumer has passed.
Cannot see: anything at RocketMQ's brokers, which do not serve LIST_REWINDS (190003).
"""

from __future__ import annotations

from rewindmq.protocol.body.rewind import PullRun, Rewind
from rewindmq.watch.evidence.moment import Case, Moment
from rewindmq.watch.evidence.position import low_of
from rewindmq.watch.evidence.sample import QueueSample
from rewindmq.watch.finding import Finding
from rewindmq.watch.rules.rewound import is_same_rewind, rewind_since_reset


class Finished:
    """Compares two samples in a row.

    The broker is asked before the consumers. So the consumer had received all messages when it was asked, by
    the first sample, and had not given the queue up since, by the second.
    """

    def __init__(self, case: Case) -> None:
        self._case = case
        self._last: QueueSample | None = None

    def add(self, moment: Moment) -> Finding | None:
        """Take in a moment; find ``FINISHED``."""
        last, self._last = self._last, moment.seen
        is_shown = last is not None and not moment.is_after_gap and self._is_through(last, moment.seen)
        return Finding.FINISHED if is_shown else None

    def missing(self, seen: QueueSample) -> str | None:
        """Return what the redelivery still lacks, in one sentence; None if the broker tells no rewind."""
        rewind = rewind_since_reset(self._case, seen)
        if rewind is None:
            return None
        again, all_ = rewind.handed_out - rewind.start, rewind.end - rewind.start
        if rewind.passed is not None:
            return (
                f"offset {rewind.passed} was stored when the broker had handed out {again} of {all_} messages"
            )
        if again < all_:
            return f"the broker has handed out {again} of {all_} messages again"
        current = sum(run.is_current for run in rewind.runs)
        if current != 1:
            return (
                f"the broker has handed out all {all_} messages again, and {current} consumers pull the queue"
            )
        low = min((low_of(position) for position in seen.live), default=None)
        if low is not None and low < max(rewind.end, seen.stored or 0):
            return f"all {all_} messages were handed out again, and a consumer holds those from {low} on"
        return f"the broker has handed out all {all_} messages again, to more than one consumer"

    def _is_through(self, last: QueueSample, now: QueueSample) -> bool:
        earlier, later = rewind_since_reset(self._case, last), rewind_since_reset(self._case, now)
        if earlier is None or later is None or last.stored is None:
            return False
        if not is_same_rewind(earlier, later) or later.passed is not None:
            return False
        run, current = _only_run(earlier), _only_run(later)
        if run is None or current is None:
            return False
        is_same = (current.client_id, current.first) == (run.client_id, run.first)
        has_all = run.first <= earlier.start and min(run.next, run.asked) >= earlier.end
        through = max(earlier.end, last.stored)
        return (
            is_same
            and has_all
            and [position.client_id for position in last.live] == [run.client_id]
            and low_of(last.live[0]) >= through
        )


def _only_run(rewind: Rewind) -> PullRun | None:
    """Return the only run that goes on; None if there is none, or several consumers pull the queue."""
    current = [run for run in rewind.runs if run.is_current]
    return current[0] if len(current) == 1 else None
