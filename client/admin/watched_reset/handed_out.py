"""Proves a rewind by what the broker has handed out since (LIST_REWINDS, 190003): RewindMQ's brokers only.

It is proven as soon as one consumer has received every message of the redelivery, one pull after the other,
and then holds none of them, while it has not given the queue up. What was sent before the reset and arrives
later can do no harm then: it is about offsets that this consumer has passed.
"""

from __future__ import annotations

from rewindmq.client.admin.watched_reset.positions import low_of
from rewindmq.client.admin.watched_reset.sample import QueueSample
from rewindmq.protocol.body.rewind import Rewind, Run


def is_redelivered(before: QueueSample, last: QueueSample, now: QueueSample, target: int) -> bool:
    """Return True if a consumer has gone through every message of the redelivery.

    The broker is asked before the consumers. So the consumer had received all messages when it was asked, by
    the last sample, and had not given the queue up since, by this one.

    Args:
        before: the sample right before the reset.
        last, now: the last two samples.
        target: the offset that the reset asked for.
    """
    earlier, later = _since_reset(before, last), _since_reset(before, now)
    if earlier is None or later is None or earlier.number != later.number or earlier.target != target:
        return False
    if later.passed is not None or last.stored is None:
        return False
    run = _only_run(earlier)
    if run is None or run.first > earlier.start or min(run.next, run.asked) < earlier.end:
        return False
    current = _only_run(later)
    if current is None or (current.client_id, current.first) != (run.client_id, run.first):
        return False
    return [position.client_id for position in last.live] == [run.client_id] and all(
        max(earlier.end, last.stored) <= low_of(position) for position in last.live
    )


def _since_reset(before: QueueSample, seen: QueueSample) -> Rewind | None:
    """Return the queue's rewind if it began after the sample right before the reset."""
    known, rewind = before.rewind, seen.rewind
    if known is not None and rewind is not None and (known.number, known.at) == (rewind.number, rewind.at):
        return None
    return rewind


def _only_run(rewind: Rewind) -> Run | None:
    """Return the only run that goes on; None if there is none, or several consumers pull the queue."""
    current = [run for run in rewind.runs if run.is_current]
    return current[0] if len(current) == 1 else None
