"""topicQueueTable: the queues of each topic at each broker.

Removing a broker costs the same whatever its number of topics: its entries stop to count at once, and
``sweep`` deletes them in slices. RocketMQ visits every topic of the name server.

A change of all topics of a broker takes effect at once, as under the write lock of RocketMQ. So it must be
fast: 50,000 topics take 30 ms if all are new to the broker, else 10 (``./scripts/worst_frames``).
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rewindmq.protocol.body.route import QueueData
from rewindmq.protocol.message.sysflag import PERM_READ_WRITE, Perm

# A plain integer: operations of an IntFlag take ten times as long.
_NO_WRITE: Final = ~int(Perm.WRITE)
# Topics that ``topics_of`` collects in one slice, and those of the last broker.
_SLICE_TOPICS: Final = 2_000


@dataclass(frozen=True, slots=True)
class Additions:
    """What a registration would add to the table.

    Attributes:
        unknown: the topics that the broker does not have.
        new_topics: number of topics that are not in memory.
        new_entries: number of pairs of a topic and a broker that are not in memory.
    """

    unknown: Sequence[str]
    new_topics: int
    new_entries: int


class TopicQueueTable:
    """topicQueueTable, with the topics of each broker.

    An entry counts if its broker has the topic in ``_queues_of``; the others wait for ``sweep``.
    """

    def __init__(self) -> None:
        # The names of the brokers of each topic. Ordered sets: the same requests give the same answers.
        self._brokers_of: dict[str, dict[str, None]] = {}
        # The queues of each broker by topic.
        self._queues_of: dict[str, dict[str, QueueData]] = {}
        # The topics of removed brokers.
        self._leaving: list[tuple[str, dict[str, QueueData]]] = []
        self._entries = 0

    @property
    def entries(self) -> int:
        """The number of entries in memory. It includes entries that ``sweep`` will delete."""
        return self._entries

    def __len__(self) -> int:
        """Return the number of topics in memory. It includes topics that ``sweep`` will delete."""
        return len(self._brokers_of)

    def count_of(self, broker_name: str) -> int:
        """Return how many topics a broker has."""
        return len(self._queues_of.get(broker_name, ()))

    def additions(self, broker_name: str, topics: Collection[str]) -> Additions:
        """Return what ``put`` of these topics would add."""
        own = self._queues_of.get(broker_name)
        unknown = [topic for topic in topics if topic not in own] if own else list(topics)
        new_topics = new_entries = 0
        for topic in unknown:
            brokers = self._brokers_of.get(topic)
            if brokers is None:
                new_topics += 1
            elif broker_name not in brokers:
                new_entries += 1
        return Additions(unknown, new_topics, new_topics + new_entries)

    def put(
        self, broker_name: str, queues: Mapping[str, QueueData], additions: Additions, *, every: bool
    ) -> None:
        """Store a broker's queues by topic.

        Args:
            additions: of these queues; nothing has changed since.
            every: also replace the queues of topics that the broker has already.
        """
        brokers_of = self._brokers_of
        for topic in additions.unknown:
            brokers = brokers_of.get(topic)
            if brokers is None:
                brokers_of[topic] = {broker_name: None}
            else:
                brokers[broker_name] = None
        self._entries += additions.new_entries
        own = self._queues_of.setdefault(broker_name, {})
        own.update(queues if every else {topic: queues[topic] for topic in additions.unknown})

    def find(self, topic: str) -> list[QueueData]:
        """Return a topic's queues, one for each of its brokers."""
        return [
            self._queues_of[name][topic] for name in self._brokers_of.get(topic, ()) if self._has(name, topic)
        ]

    def topics(self) -> list[str]:
        """Return the topics that have queues."""
        if not self._leaving:
            return list(self._brokers_of)
        return [
            topic
            for topic, names in self._brokers_of.items()
            if any(self._has(name, topic) for name in names)
        ]

    def topics_of(self, broker_names: Iterable[str]) -> Generator[None, None, list[str]]:
        """Yield after about 1 ms of work; return the topics that have queues at any of the brokers."""
        topics: dict[str, None] = {}
        done = 0
        for name in broker_names:
            own = self._queues_of.get(name, {})
            topics.update(dict.fromkeys(own))
            done += len(own) + 1
            if done >= _SLICE_TOPICS:
                done = 0
                yield
        return list(topics)

    def set_write_permission(self, broker_name: str, writable: bool) -> int:
        """Make a broker's topics readable and writable, or clear their write bit; return how many it has."""
        own = self._queues_of.get(broker_name, {})
        for topic, queue_data in own.items():
            perm = PERM_READ_WRITE if writable else queue_data.perm & _NO_WRITE
            if perm != queue_data.perm:
                # Not changed in place: responses that are still being written hold the old object.
                own[topic] = QueueData(
                    queue_data.broker_name,
                    queue_data.read_queue_nums,
                    queue_data.write_queue_nums,
                    perm,
                    queue_data.topic_sys_flag,
                )
        return len(own)

    def delete_topic(self, topic: str, broker_names: Iterable[str] | None) -> None:
        """Remove a topic's queues at the given brokers; at every broker if None."""
        for name in list(self._brokers_of.get(topic, ())) if broker_names is None else broker_names:
            if self._has(name, topic):
                own = self._queues_of[name]
                del own[topic]
                if not own:
                    del self._queues_of[name]
                self._delete(topic, name)

    def remove_broker(self, broker_name: str) -> None:
        """Remove a broker's queues; ``sweep`` frees their memory."""
        own = self._queues_of.pop(broker_name, None)
        if own is not None:
            self._leaving.append((broker_name, own))

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
        own = self._queues_of.get(broker_name)
        return own is not None and topic in own

    def _delete(self, topic: str, broker_name: str) -> None:
        brokers = self._brokers_of.get(topic)
        if brokers is None or broker_name not in brokers:
            return
        del brokers[broker_name]
        self._entries -= 1
        if not brokers:
            del self._brokers_of[topic]
