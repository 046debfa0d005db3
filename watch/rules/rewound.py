"""The rewind of a queue that began with the watched reset, as RewindMQ's brokers tell it."""

from __future__ import annotations

from rewindmq.protocol.body.rewind import Rewind
from rewindmq.watch.evidence.moment import Case
from rewindmq.watch.evidence.sample import QueueSample


def rewind_since_reset(case: Case, seen: QueueSample) -> Rewind | None:
    """Return the queue's rewind if it began after the sample right before the reset, to its target.

    The broker's target may be below the case's, where all messages have expired.
    """
    known, rewind = case.before.rewind, seen.rewind
    if rewind is None or not rewind.target <= case.target <= rewind.start:
        return None
    if known is not None and (known.number, known.at) == (rewind.number, rewind.at):
        return None
    return rewind
