"""Counts messages in flight: popped, and neither acknowledged nor revived (``PopInflightMessageCounter``).

As in RocketMQ, the counts begin at 0 with the broker's start, and an ack that is repeated counts twice.
"""

from __future__ import annotations


class PopInflightMessageCounter:
    """The messages in flight of each queue of a group.

    Args:
        started_at: ms; messages that were popped before are not counted.
    """

    def __init__(self, started_at: int) -> None:
        self._started_at = started_at
        # Topic and group to queue id to count; only counts above 0.
        self._counts: dict[tuple[str, str], dict[int, int]] = {}

    def add(self, topic: str, group: str, queue_id: int, count: int) -> None:
        """Count popped messages."""
        queues = self._counts.get((topic, group))
        if queues is None:
            queues = self._counts[topic, group] = {}
        queues[queue_id] = queues.get(queue_id, 0) + count

    def remove(self, topic: str, group: str, queue_id: int, pop_time: int, count: int = 1) -> None:
        """Count messages that were popped at ``pop_time`` and are acknowledged or revived."""
        queues = self._counts.get((topic, group))
        if queues is None or pop_time < self._started_at:
            return
        left = queues.get(queue_id, 0) - count
        if left > 0:
            queues[queue_id] = left
            return
        queues.pop(queue_id, None)
        if not queues:
            del self._counts[topic, group]

    def count(self, topic: str, group: str, queue_id: int) -> int:
        """Return the messages in flight of one queue."""
        return self._counts.get((topic, group), {}).get(queue_id, 0)

    def clear_queue(self, topic: str, group: str, queue_id: int) -> None:
        """Set the count of a queue to 0."""
        queues = self._counts.get((topic, group))
        if queues is not None and queues.pop(queue_id, None) is not None and not queues:
            del self._counts[topic, group]

    def clear(self, *, topic: str | None = None, group: str | None = None) -> None:
        """Forget the counts of a topic or of a group that is deleted."""
        for key in [key for key in self._counts if key[0] == topic or key[1] == group]:
            del self._counts[key]
