"""What the rules of one queue get: the case, and a moment for each sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.watch.evidence.group import GroupSample
from rewindmq.watch.evidence.position import Position, low_of
from rewindmq.watch.evidence.sample import QueueSample

# Seconds after which the classic wait of 10 s, and a rebalance, are over.
SETTLED: Final = 30.0
# Consumers report times in ms; RewindMQ's compute them from another clock.
_SAME_MS: Final = 50


@dataclass(frozen=True, slots=True)
class Case:
    """A queue that was reset.

    Attributes:
        old: where the group was right before the reset: the stored offset, or ``group_offset``.
        target: the offset that the reset asks for.
        before: the queue right before the reset.
        clients: the group's consumers right before the reset.
        is_known: the broker and each consumer answered right before the reset.
    """

    queue: MessageQueue
    old: int
    target: int
    before: QueueSample
    clients: frozenset[str]
    is_known: bool = True

    @property
    def is_rewind(self) -> bool:
        return self.target < self.old

    def is_moved(self, stored: int) -> bool:
        """True if the stored offset of a rewind is at the target, or between it and the old offset."""
        return self.target <= stored < self.old

    def is_untouched_by(self, position: Position) -> bool:
        """True if the consumer has had the queue since before the reset, and consumed nothing of it since."""
        return any(
            earlier.client_id == position.client_id
            and abs(earlier.last_consume - position.last_consume) <= _SAME_MS
            for earlier in self.before.live
        )


class Counted(NamedTuple):
    """What the broker's counts of fetched messages show of a queue (``FetchCount``).

    Attributes:
        is_fetched: the consumers fetched every message to be redelivered.
        obstacle: why the counts cannot show it; "" if they may.
        is_counting: the minute after the reset lasts, whose count may show it (``ClassicMinute``).
    """

    is_fetched: bool = False
    obstacle: str = ""
    is_counting: bool = False


class Moment(NamedTuple):
    """The queue in one sample whose broker answered.

    Attributes:
        seconds: after the reset.
        last: the seconds of the moment before; 0 at the first.
        stored: the stored offset.
        is_after_gap: the broker did not answer since the moment before.
    """

    seconds: float
    last: float
    stored: int
    seen: QueueSample
    group: GroupSample
    counted: Counted
    is_after_gap: bool


def group_offset(seen: QueueSample, target: int) -> int:
    """Return where a group is that may be reset to ``target``.

    It is the stored offset; brokers correct one above the queue's end. Consumers store what they have
    consumed every 5 s. If the target is what they have consumed since, it is the lowest offset that they have
    not consumed.
    """
    stored = min(seen.stored or 0, seen.max_offset)
    low = max((low_of(position) for position in seen.live), default=stored)
    return min(low, seen.max_offset) if stored <= target < low else stored
