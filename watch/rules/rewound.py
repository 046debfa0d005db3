"""The rewind of a queue that began with the watched reset, as RewindMQ's brokers tell it."""

from __future__ import annotations

from rewindmq.protocol.body.rewind import Rewind
from rewindmq.watch.evidence.moment import Case
from rewindmq.watch.evidence.sample import QueueSample


def rewind_since_reset(case: Case, seen: QueueSample) -> Rewind | None:
    """Return the queue's rewind if it began after the sample right before the reset, to its target.

    The broker's target may be below the case's, where all messages have expired.
    """
    rewind = seen.rewind
    if rewind is None or is_same_rewind(case.before.rewind, rewind):
        return None
    return rewind if rewind.target <= case.target <= rewind.start else None


def is_same_rewind(one: Rewind | None, other: Rewind) -> bool:
    """Return True if a broker told the same rewind twice. After its restart, it numbers from 1 again."""
    return one is not None and (one.number, one.at) == (other.number, other.at)
