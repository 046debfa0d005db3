"""What a group has in flight of one queue after an orderly POP (docs/spec/pop.md 10).

Source: RocketMQ 5.5.1 ``QueueLevelConsumerManager.OrderInfo``. The values are immutable and know no clock:
each event is a function of the state, and of the time where the time matters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Self

# Results of an ack that are no offset.
ILLEGAL_OFFSET: Final = -1
NOTHING_TO_COMMIT: Final = -2
_SIGN: Final = 2**63


class OrderInfo(NamedTuple):
    """The messages that the latest POP delivered from a queue.

    Attributes:
        pop_time: ms; it names the delivery.
        invisible_time: ms from ``pop_time``; None or below 1 until a caller gives a longer one.
        distances: the first queue offset, then the distance of each other message from it, as in the file.
        last_consume_timestamp: ms, when the messages were popped.
        acked: a bit for each acknowledged message.
        attempt_id: names the call that popped them; a call of the same name gets them again.
        next_visible_times: by queue offset, in ms, for the messages whose time was changed.
        consumed_counts: by queue offset, how often the message was popped before; in the order of insertion.
    """

    pop_time: int
    invisible_time: int | None
    distances: tuple[int, ...]
    last_consume_timestamp: int
    acked: int = 0
    attempt_id: str | None = None
    next_visible_times: Mapping[int, int] | None = None
    consumed_counts: Mapping[int, int] | None = None

    @classmethod
    def popped(
        cls,
        before: OrderInfo | None,
        attempt_id: str | None,
        pop_time: int,
        invisible_time: int,
        offsets: Sequence[int],
        now_ms: int,
    ) -> Self:
        """Return the state after a POP of at least one message.

        A message of the state before counts one more attempt, unless the same attempt popped it again.
        """
        counts: Mapping[int, int] | None = None
        if before is not None:
            counts = before.consumed_counts or {}
            if before.attempt_id is None or before.attempt_id != attempt_id:
                known = set(before.offsets)
                counts = {offset: counts.get(offset, 0) + 1 for offset in offsets if offset in known}
        first = offsets[0]
        distances = (first, *(offset - first for offset in offsets[1:]))
        return cls(pop_time, invisible_time, distances, now_ms, 0, attempt_id, None, counts)

    @property
    def offsets(self) -> list[int]:
        """The queue offsets of the messages."""
        if not self.distances:
            return []
        first = self.distances[0]
        return [first, *(first + distance for distance in self.distances[1:])]

    @property
    def open_offsets(self) -> list[int]:
        """The queue offsets of the messages that are not acknowledged."""
        return [offset for place, offset in enumerate(self.offsets) if not self.acked >> place & 1]

    @property
    def lowest_count(self) -> int:
        """The smallest number of earlier attempts of the messages."""
        counts = self.consumed_counts
        # Messages without an earlier attempt are not in the table.
        return min(counts.values()) if counts and len(counts) == len(self.distances) else 0

    def is_blocking(self, attempt_id: str | None, now_ms: int) -> bool:
        """Return True if a POP must wait: an open message is not visible yet, and the attempt is another."""
        if self.attempt_id is not None and self.attempt_id == attempt_id:
            return False
        return any(now_ms < self._visible_ms(offset) for offset in self.open_offsets)

    def with_invisible_time(self, attempt_id: str | None, invisible_time: int) -> Self:
        """Return the state after another attempt has asked: it gives an absent invisible time its own."""
        is_same = self.attempt_id is not None and self.attempt_id == attempt_id
        if is_same or not self.distances or (self.invisible_time or 0) > 0 or invisible_time <= 0:
            return self
        return self._replace(invisible_time=invisible_time)

    def acknowledge(self, offset: int, pop_time: int) -> tuple[Self, int]:
        """Return the state after an ack, and the offset to commit.

        It is that of the first open message, or one past the last message. ``ILLEGAL_OFFSET`` if the POP did
        not deliver the message, ``NOTHING_TO_COMMIT`` if the ack belongs to an earlier delivery.
        """
        if not self.distances:
            return self, ILLEGAL_OFFSET
        if pop_time != self.pop_time:
            return self, NOTHING_TO_COMMIT
        offsets = self.offsets
        if offset not in offsets:
            return self, ILLEGAL_OFFSET
        after = self._replace(acked=self.acked | 1 << offsets.index(offset))
        left = after.open_offsets
        return after, left[0] if left else offsets[-1] + 1

    def change_visible_time(self, offset: int, pop_time: int, next_visible_ms: int) -> Self:
        """Return the state after a change of a message's invisible time.

        A change for an earlier delivery, or for a message that is not in flight, is ignored.
        """
        if pop_time != self.pop_time or offset not in self.offsets:
            return self
        return self._replace(next_visible_times={**(self.next_visible_times or {}), offset: next_visible_ms})

    @property
    def end_ms(self) -> int | None:
        """When the last open message is visible, in ms; None if no message is open, or without a time."""
        left = self.open_offsets
        if not left or (self.invisible_time or 0) <= 0:
            return None
        return max(map(self._visible_ms, left))

    def _visible_ms(self, offset: int) -> int:
        changed = (self.next_visible_times or {}).get(offset)
        return java_long(self.pop_time + (self.invisible_time or 0)) if changed is None else changed


def java_long(number: int) -> int:
    """Return the sum of two longs as Java computes it: beyond 64 bits, it goes on at the other end."""
    return (number + _SIGN) % (2 * _SIGN) - _SIGN
