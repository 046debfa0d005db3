"""ConsumeTally: counts the messages that ``rewindmq consume`` receives."""

from __future__ import annotations

from collections.abc import Sequence

from rewindmq.protocol.message import MessageExt

_Queue = tuple[str, int]


class _QueueTally:
    __slots__ = ("fresh_count", "fresh_first", "fresh_last", "offsets", "received")

    def __init__(self) -> None:
        self.received = 0
        self.offsets: set[int] = set()
        self.fresh_count = 0
        self.fresh_first = 0
        self.fresh_last = 0


class ConsumeTally:
    """Counts received messages per queue, and remembers every offset, to count duplicates."""

    def __init__(self) -> None:
        self.received = 0
        self._queues: dict[_Queue, _QueueTally] = {}

    def note(self, messages: Sequence[MessageExt]) -> None:
        """Count a batch of messages of one queue that the listener received."""
        queue = (messages[0].broker_name, messages[0].queue_id)
        tally = self._queues.get(queue)
        if tally is None:
            tally = self._queues[queue] = _QueueTally()
        offsets = [message.queue_offset for message in messages]
        if not tally.fresh_count:
            tally.fresh_first = offsets[0]
        tally.fresh_count += len(offsets)
        tally.fresh_last = offsets[-1]
        tally.received += len(offsets)
        tally.offsets.update(offsets)
        self.received += len(offsets)

    def take_fresh(self) -> list[dict[str, object]]:
        """Return the messages since the last call: a row per queue with count, first and last offset."""
        rows: list[dict[str, object]] = []
        for (broker, queue_id), tally in self._queues.items():
            if tally.fresh_count:
                rows.append(
                    {
                        "queue": [broker, queue_id],
                        "count": tally.fresh_count,
                        "first": tally.fresh_first,
                        "offset": tally.fresh_last,
                    }
                )
                tally.fresh_count = 0
        return rows

    def summary(self) -> list[dict[str, object]]:
        """Return the totals, a row per queue."""
        return [
            {
                "broker": broker,
                "queue": queue_id,
                "received": tally.received,
                "first": min(tally.offsets),
                "last": max(tally.offsets),
                "duplicates": tally.received - len(tally.offsets),
            }
            for (broker, queue_id), tally in sorted(self._queues.items())
        ]
