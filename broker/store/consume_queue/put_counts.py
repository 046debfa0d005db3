"""Counts of what was stored in each queue, which the writer adds up and statistics take from time to time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from rewindmq.broker.store.consume_queue.queue import ConsumeQueue


class QueuePuts(NamedTuple):
    """What was stored in one queue since the last time.

    Attributes:
        requests: requests that stored messages.
        extra: their messages beyond one for each request.
        size: bytes of their records.
    """

    topic: str
    queue_id: int
    requests: int
    extra: int
    size: int


class PutCounts(deque[ConsumeQueue]):
    """The queues with counts that were not taken yet; the counts themselves are attributes of each queue.

    A put adds to numbers of the queue that it writes to anyway, so counting costs no look-up.

    Attributes:
        last: the queue of the last put; None once that put was taken back.
    """

    def __init__(self) -> None:
        super().__init__()
        self.last: ConsumeQueue | None = None

    def add(self, queue: ConsumeQueue, requests: int, extra: int, size: int) -> None:
        """Count what was stored in a queue."""
        if not queue.put_bytes:
            self.append(queue)
        queue.put_requests += requests
        queue.put_extra += extra
        queue.put_bytes += size
        self.last = queue

    def take_back(self, size: int) -> None:
        """Take back the last put, of one message whose record has ``size`` bytes."""
        queue, self.last = self.last, None
        assert queue is not None
        queue.put_requests -= 1
        queue.put_bytes -= size
        if not queue.put_bytes:
            # That put has added the queue, so it is the last one.
            self.pop()

    def take(self) -> Iterator[QueuePuts]:
        """Yield the counts of each queue, and begin again at 0; puts may follow between two items."""
        for _ in range(len(self)):
            if not self:
                return
            queue = self.popleft()
            requests, extra, size = queue.put_requests, queue.put_extra, queue.put_bytes
            queue.put_requests = queue.put_extra = queue.put_bytes = 0
            yield QueuePuts(queue.topic, queue.queue_id, requests, extra, size)
