"""``TOPIC_PUT_LATENCY``: how long sends to each queue take (5.3.3 ``BrokerStatsManager``)."""

from __future__ import annotations

from rewindmq.broker.stats.item import StatsItem
from rewindmq.broker.stats.item_set import StatsItemSet


class PutLatencies:
    """Items by ``queueId@topic``.

    A send counts with 0 ms. If it took longer, ``add`` follows: see ``BrokerStats.on_slow_request``.

    Attributes:
        items: by key.
        last: the item of the last send; None if that send was refused.
    """

    def __init__(self) -> None:
        self.items = StatsItemSet("TOPIC_PUT_LATENCY")
        self.last: StatsItem | None = None
        # By topic and queue id, so that a send builds no key.
        self._known: dict[tuple[str, int], StatsItem] = {}

    def count(self, topic: str, queue_id: int) -> None:
        """Count a send that was stored.

        Args:
            topic: in which it was stored: for a delayed message the schedule topic.
            queue_id: to which it was sent.
        """
        item = self._known.get((topic, queue_id))
        if item is None:
            item = self._find(topic, queue_id)
        item.times += 1
        item.extra -= 1
        self.last = item

    def count_run(self, topic: str, queue_id: int, times: int) -> None:
        """Count several sends to one queue; see ``count``."""
        item = self._known.get((topic, queue_id)) or self._find(topic, queue_id)
        item.times += times
        item.extra -= times
        self.last = item

    def add(self, ms: int) -> None:
        """Add milliseconds to the last send, if it was stored."""
        if self.last is not None:
            self.last.extra += ms

    def remove_topic(self, topic: str) -> None:
        """Remove the items of a topic."""
        self.items.remove(lambda fields: fields[1] == topic)
        self.forget()

    def forget(self) -> None:
        """Look items up again by their keys; called after items were removed."""
        self._known.clear()

    def _find(self, topic: str, queue_id: int) -> StatsItem:
        may_lose = self.items.is_full
        item = self.items[f"{queue_id}@{topic}"]
        # Once the set has room again, lost keys must be looked up there.
        if not may_lose:
            self._known[topic, queue_id] = item
        return item
