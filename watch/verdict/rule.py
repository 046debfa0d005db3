"""Rule: what the rules of a queue have in common."""

from __future__ import annotations

from typing import Protocol

from rewindmq.watch.evidence.moment import SETTLED, Moment
from rewindmq.watch.finding import Finding


class Rule(Protocol):
    """Takes in the moments of a queue one by one."""

    def add(self, moment: Moment) -> Finding | None:
        """Return what the moments until now show, or None."""
        ...


def waits_for_consumer(moment: Moment) -> str:
    """Return what a queue that no consumer has waits for, in one sentence."""
    sample = moment.group.sample
    if unanswered := sorted(sample.silent | sample.shared):
        return f"an answer of consumer {unanswered[0]}, which may have the queue"
    if any(position.dropped for position in moment.seen.positions):
        return "the consumer that gave the queue up to take it again, 10 s after a classic reset"
    if not moment.group.known:
        left = max(0.0, SETTLED - moment.seconds)
        return f"a consumer of the group: the queue is unknown if none connects within {left:.0f} s"
    return f"a consumer that takes the queue, where {moment.stored} is stored"
