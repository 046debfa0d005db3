"""Counts of the messages stored in each queue: the writer adds to the counts, and statistics take them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from rewindmq.broker.store.consume_queue.queue import ConsumeQueue

# Whatever reads statistics takes all counts in one step: a few ms for so many queues.
COUNTED_QUEUES: Final = 1_000


class QueuePuts(NamedTuple):
    """The counts of one queue since statistics last took them.

    Attributes:
        requests: requests that stored messages.
        extra: the messages beyond one for each request.
        size: bytes of the messages' records.
    """

    topic: str
    queue_id: int
    requests: int
    extra: int
    size: int


class PutCounts(deque[ConsumeQueue]):
    """The queues whose counts statistics have not taken yet; a queue's attributes hold its counts.

    The writer has the queue at hand when it stores a message, so counting costs no look-up.

    Args:
        on_many: takes the oldest counts once ``COUNTED_QUEUES`` queues have some; None: they all wait.

    Attributes:
        last: the queue of the last put; None after ``take_back``.
    """

    def __init__(self, on_many: Callable[[QueuePuts], None] | None = None) -> None:
        super().__init__()
        self.last: ConsumeQueue | None = None
        self._on_many = on_many

    def begin(self, queue: ConsumeQueue) -> None:
        """Enter a queue that has no counts, just before its first put is counted."""
        self.append(queue)
        if len(self) > COUNTED_QUEUES and self._on_many is not None:
            self._on_many(self._take_oldest())

    def add(self, queue: ConsumeQueue, requests: int, extra: int, size: int) -> None:
        """Count a request that stored messages in a queue.

        Args:
            extra: the messages beyond the first.
            size: bytes of the messages' records.
        """
        if not queue.put_bytes:
            self.begin(queue)
        queue.put_requests += requests
        queue.put_extra += extra
        queue.put_bytes += size
        self.last = queue

    def take_back(self, size: int) -> None:
        """Subtract the last put, which stored one message with a record of ``size`` bytes."""
        queue, self.last = self.last, None
        assert queue is not None
        queue.put_requests -= 1
        queue.put_bytes -= size
        if not queue.put_bytes:
            # The last put has appended the queue, so the queue is the last item.
            self.pop()

    def take(self) -> Iterator[QueuePuts]:
        """Yield the counts of each queue and reset them to 0.

        The writer may store messages between two items.
        """
        for _ in range(len(self)):
            if not self:
                return
            yield self._take_oldest()

    def _take_oldest(self) -> QueuePuts:
        queue = self.popleft()
        requests, extra, size = queue.put_requests, queue.put_extra, queue.put_bytes
        queue.put_requests = queue.put_extra = queue.put_bytes = 0
        return QueuePuts(queue.topic, queue.queue_id, requests, extra, size)
