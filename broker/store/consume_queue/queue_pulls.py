"""``QueuePulls``: counts of one group's pulls from one queue."""

from __future__ import annotations


class QueuePulls:
    """Counts of the pulls of one group from one queue that found messages, since statistics last read them.

    Attributes:
        requests: the pulls.
        messages, size: their messages, and the bytes of these.
        ms: milliseconds of pulls that took longer than 1 ms.
    """

    __slots__ = ("group", "messages", "ms", "queue_id", "requests", "size", "topic")

    def __init__(self, topic: str, group: str, queue_id: int) -> None:
        self.topic = topic
        self.group = group
        self.queue_id = queue_id
        self.requests = self.messages = self.size = self.ms = 0
