"""Counts of pulls that found messages: ``GROUP_GET_NUMS``, ``GROUP_GET_SIZE`` and ``GROUP_GET_LATENCY``."""

from __future__ import annotations

from collections import deque

from rewindmq.broker.limits import MAX_STATS_ITEMS
from rewindmq.broker.stats.item_set import StatsItemSet
from rewindmq.broker.store.consume_queue.put_counts import COUNTED_QUEUES
from rewindmq.broker.store.consume_queue.queue import NO_PULLS, ConsumeQueue
from rewindmq.broker.store.consume_queue.queue_pulls import QueuePulls


class PullCounts:
    """Counts the pulls of each group from each queue; a reader of the items adds the counts to them first.

    Args:
        got: the items by ``topic@group``.
        latencies: the items by ``queueId@topic@group``.

    Attributes:
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
        # The counts that are not in the items yet, in the order of their first pulls.
        self._counted: deque[QueuePulls] = deque()
        self.last: QueuePulls | None = None
        self.requests = 0
        self.messages = 0

    def count(self, topic: str, group: str, queue_id: int, messages: int, size: int) -> None:
        """Count a pull that returned messages, ``size`` bytes together."""
        pulls = self._queues.get((topic, group, queue_id))
        if pulls is None:
            pulls = self._new(topic, group, queue_id)
        if not pulls.requests:
            self.begin(pulls)
        pulls.requests += 1
        pulls.messages += messages
        pulls.size += size
        self.last = pulls

    def begin(self, pulls: QueuePulls) -> None:
        """Enter counts that are 0, just before their first pull; the oldest of many go to the items."""
        self._counted.append(pulls)
        if len(self._counted) > COUNTED_QUEUES:
            self._add(self._counted.popleft())

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
        while self._counted:
            self._add(self._counted.popleft())

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
