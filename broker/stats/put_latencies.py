"""``TOPIC_PUT_LATENCY``: how long sends to each queue take (5.3.3 ``BrokerStatsManager``)."""

from __future__ import annotations

from rewindmq.broker.stats.item import LatencyItem, StatsItem
from rewindmq.broker.stats.item_set import StatsItemSet


class PutLatencies(dict[tuple[str, int], StatsItem]):
    """Items by topic and queue id, so that a send builds no key; an item appears with its first send.

    The topic is the one in which the message was stored, for a delayed message the schedule topic. The queue
    is the one to which it was sent. A send that was stored counts by its item's ``times``. If it took longer
    than 1 ms, ``BrokerStats.on_slow_request`` adds to the item.

    Attributes:
        by_key: the items by ``queueId@topic``.
        last: the item of the last send that ``count`` counted; None once another send was refused.
    """

    __slots__ = ("by_key", "last")

    def __init__(self) -> None:
        super().__init__()
        self.by_key = StatsItemSet("TOPIC_PUT_LATENCY", make=LatencyItem)
        self.last: StatsItem | None = None

    def __missing__(self, key: tuple[str, int]) -> StatsItem:
        topic, queue_id = key
        may_lose = self.by_key.is_full
        item = self.by_key[f"{queue_id}@{topic}"]
        # Once the set has room again, lost keys must be looked up there.
        if not may_lose:
            self[key] = item
        return item

    def count(self, topic: str, queue_id: int) -> None:
        """Count a send that was stored elsewhere than in the queue to which it was sent."""
        self.last = item = self[topic, queue_id]
        item.times += 1

    def remove_topic(self, topic: str) -> None:
        """Remove the items of a topic."""
        self.by_key.remove(topic, lambda fields: fields[1] == topic)
        # Items are looked up again by their keys.
        self.clear()
