"""Counts of pulls that found messages: ``GROUP_GET_NUMS``, ``GROUP_GET_SIZE`` and ``GROUP_GET_LATENCY``."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from typing import Final

from rewindmq.broker.limits import MAX_STATS_ITEMS
from rewindmq.broker.stats.item_set import StatsItemSet
from rewindmq.broker.store.consume_queue.queue import NO_PULLS, ConsumeQueue
from rewindmq.broker.store.consume_queue.queue_pulls import QueuePulls

_QUEUES_PER_SLICE: Final = 500


class PullCounts:
    """Counts the pulls of each group from each queue; a reader of the items adds the counts to them first.

    Args:
        got: the items by ``topic@group``.
        latencies: the items by ``queueId@topic@group``.

    Attributes:
        counted: the counts that ``settle`` has not added to the items yet, in the order of their first pulls.
        last: the counts that include the last pull; None if the last pull found nothing.
        requests, messages: the pulls that found messages since the start, and the number of messages found,
            as of the last ``settle``.
    """

    def __init__(self, got: StatsItemSet, latencies: StatsItemSet) -> None:
        self._got = got
        self._latencies = latencies
        # By topic, group and queue id, so that a pull builds no keys.
        self._queues: dict[tuple[str, str, int], QueuePulls] = {}
        # The queues whose attribute ``pulls`` has counts of this table.
        self._known_to: list[ConsumeQueue] = []
        self.counted: deque[QueuePulls] = deque()
        self.last: QueuePulls | None = None
        self.requests = 0
        self.messages = 0

    def count(self, topic: str, group: str, queue_id: int, messages: int, size: int) -> None:
        """Count a pull that returned messages, ``size`` bytes together."""
        pulls = self._queues.get((topic, group, queue_id))
        if pulls is None:
            pulls = self._new(topic, group, queue_id)
        if not pulls.requests:
            self.counted.append(pulls)
        pulls.requests += 1
        pulls.messages += messages
        pulls.size += size
        self.last = pulls

    def in_queue(self, queue: ConsumeQueue, group: str) -> QueuePulls:
        """Return the counts of a group's pulls from a queue, and keep them in the queue's ``pulls``."""
        topic, queue_id = queue.topic, queue.queue_id
        pulls = self._queues.get((topic, group, queue_id)) or self._new(topic, group, queue_id)
        if queue.pulls is NO_PULLS:
            queue.pulls = {}
            self._known_to.append(queue)
        queue.pulls[group] = pulls
        return pulls

    def _new(self, topic: str, group: str, queue_id: int) -> QueuePulls:
        if len(self._queues) >= MAX_STATS_ITEMS:
            self.settle()
            self.forget()
        pulls = self._queues[topic, group, queue_id] = QueuePulls(topic, group, queue_id)
        return pulls

    def add_latency(self, ms: int) -> None:
        """Add milliseconds to the latency of the last pull, if it found messages."""
        if self.last is not None:
            self.last.ms += ms

    def settle(self) -> None:
        """Add all counts to the items."""
        for _ in self.settle_in_slices():
            pass

    def settle_in_slices(self) -> Generator[None]:
        """Add all counts to the items, some hundred queues in a slice; pulls may come between two slices."""
        counted = self.counted
        for number in range(1, len(counted) + 1):
            if not counted:
                return
            self._add(counted.popleft())
            if number % _QUEUES_PER_SLICE == 0:
                yield

    def _add(self, pulls: QueuePulls) -> None:
        requests, messages = pulls.requests, pulls.messages
        self.requests += requests
        self.messages += messages
        key = f"{pulls.topic}@{pulls.group}"
        got, latency = self._got[key], self._latencies[f"{pulls.queue_id}@{key}"]
        got.times += requests
        got.extra += messages - requests
        got.size += pulls.size
        latency.times += requests
        latency.extra += pulls.ms
        pulls.requests = pulls.messages = pulls.size = pulls.ms = 0

    def forget(self) -> None:
        """Free the memory of queues that are no longer pulled."""
        self._queues.clear()
        for queue in self._known_to:
            queue.pulls = NO_PULLS
        self._known_to.clear()
