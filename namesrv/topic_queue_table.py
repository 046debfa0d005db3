"""topicQueueTable: the queues of each topic at each broker.

Removing a broker costs the same whatever its number of topics: its entries stop to count at once, and
``sweep`` deletes them in slices. RocketMQ visits every topic of the name server.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from rewindmq.protocol.body.route import QueueData
from rewindmq.protocol.message.sysflag import PERM_READ_WRITE, Perm


class TopicQueueTable:
    """topicQueueTable, with the topics of each broker.

    An entry counts if its broker has the topic in ``_topics_of``; the others wait for ``sweep``.
    """

    def __init__(self) -> None:
        self._queues: dict[str, dict[str, QueueData]] = {}
        # Ordered sets: the same requests give the same answers.
        self._topics_of: dict[str, dict[str, None]] = {}
        # The topics of removed brokers.
        self._leaving: list[tuple[str, dict[str, None]]] = []
        self._entries = 0

    @property
    def entries(self) -> int:
        """The number of entries in memory. It includes entries that ``sweep`` will delete."""
        return self._entries

    def __len__(self) -> int:
        """Return the number of topics in memory. It includes topics that ``sweep`` will delete."""
        return len(self._queues)

    def __contains__(self, topic: object) -> bool:
        return topic in self._queues

    def count_of(self, broker_name: str) -> int:
        """Return how many topics a broker has."""
        return len(self._topics_of.get(broker_name, ()))

    def count_new(self, broker_name: str, topics: Iterable[str]) -> int:
        """Return how many entries ``put`` would add to those in memory."""
        queues = self._queues
        return sum(topic not in queues or broker_name not in queues[topic] for topic in topics)

    def put(self, broker_name: str, queues: Mapping[str, QueueData], *, every: bool) -> None:
        """Store a broker's queues by topic.

        Args:
            every: also replace the queues of topics that the broker has already.
        """
        topics = self._topics_of.setdefault(broker_name, {})
        for topic, queue_data in queues.items():
            if every or topic not in topics:
                brokers = self._queues.setdefault(topic, {})
                self._entries += broker_name not in brokers
                brokers[broker_name] = queue_data
                topics[topic] = None

    def find(self, topic: str) -> list[QueueData]:
        """Return a topic's queues, one for each of its brokers."""
        brokers = self._queues.get(topic)
        if brokers is None:
            return []
        return [queue_data for name, queue_data in brokers.items() if self._has(name, topic)]

    def topics(self) -> list[str]:
        """Return the topics that have queues."""
        if not self._leaving:
            return list(self._queues)
        return [
            topic for topic, names in self._queues.items() if any(self._has(name, topic) for name in names)
        ]

    def topics_of(self, broker_names: Iterable[str]) -> list[str]:
        """Return the topics that have queues at any of the brokers."""
        return list(dict.fromkeys(topic for name in broker_names for topic in self._topics_of.get(name, ())))

    def set_write_permission(self, broker_name: str, writable: bool) -> int:
        """Make a broker's topics readable and writable, or clear their write bit; return how many it has."""
        topics = self._topics_of.get(broker_name, ())
        for topic in topics:
            brokers = self._queues[topic]
            queue_data = brokers[broker_name]
            perm = PERM_READ_WRITE if writable else queue_data.perm & ~Perm.WRITE
            # Not changed in place: responses that are still being written hold the old object.
            brokers[broker_name] = msgspec.structs.replace(queue_data, perm=perm)
        return len(topics)

    def delete_topic(self, topic: str, broker_names: Iterable[str] | None) -> None:
        """Remove a topic's queues at the given brokers; at every broker if None."""
        for name in list(self._queues.get(topic, ())) if broker_names is None else broker_names:
            if self._has(name, topic):
                topics = self._topics_of[name]
                del topics[topic]
                if not topics:
                    del self._topics_of[name]
                self._delete(topic, name)

    def remove_broker(self, broker_name: str) -> None:
        """Remove a broker's queues; ``sweep`` frees their memory."""
        topics = self._topics_of.pop(broker_name, None)
        if topics is not None:
            self._leaving.append((broker_name, topics))

    def sweep(self, limit: int) -> bool:
        """Delete at most ``limit`` entries of removed brokers; return True if none is left."""
        while self._leaving and limit > 0:
            broker_name, topics = self._leaving[-1]
            for _ in range(min(limit, len(topics))):
                topic, _ = topics.popitem()
                # The broker may have registered the topic again.
                if not self._has(broker_name, topic):
                    self._delete(topic, broker_name)
                limit -= 1
            if not topics:
                self._leaving.pop()
        return not self._leaving

    def _has(self, broker_name: str, topic: str) -> bool:
        topics = self._topics_of.get(broker_name)
        return topics is not None and topic in topics

    def _delete(self, topic: str, broker_name: str) -> None:
        brokers = self._queues.get(topic)
        if brokers is None or brokers.pop(broker_name, None) is None:
            return
        self._entries -= 1
        if not brokers:
            del self._queues[topic]
