"""topicQueueTable: the queues of each topic at each broker.

Removing a broker costs the same whatever its number of topics: its entries stop to count at once, and
``sweep`` deletes them in slices. RocketMQ visits every topic of the name server.

A large addition is made in slices, too, and shown at its end: a registration takes effect as under the write
lock of RocketMQ. What it replaces is replaced at once.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import filterfalse, repeat
from typing import Final

from msgspec.structs import replace

from rewindmq.protocol.body.route import QueueData
from rewindmq.protocol.message.sysflag import PERM_READ_WRITE, Perm

# A plain integer: operations of an IntFlag take ten times as long.
_NO_WRITE: Final = ~int(Perm.WRITE)
# Topics of one slice; ``topics_of`` collects as many, and those of the last broker.
_SLICE_TOPICS: Final = 2_000


@dataclass(frozen=True, slots=True)
class Additions:
    """What a registration would add to the table.

    Attributes:
        unknown: the topics that the broker does not have.
        new_topics: number of topics that are not in memory.
    """

    unknown: Collection[str]
    new_topics: int


@dataclass(frozen=True, slots=True)
class TopicPart:
    """Topics of one broker.

    Attributes:
        number: of the bit that the topics have.
        queues: by topic.
    """

    number: int
    queues: dict[str, QueueData]


class TopicQueueTable:
    """topicQueueTable, with the topics of each broker.

    A broker's topics are one part, and one more for each large addition. A part has a number, and each of
    its topics has the bit of that number. A part that is not shown is in no route: it is being added, or its
    broker was removed. ``sweep`` clears the bits of the latter; then another part may have the number.
    """

    def __init__(self) -> None:
        # The bits of each topic.
        self._bits_of: dict[str, int] = {}
        # Each topic's name once, for all brokers: at 100 brokers the names would take most of the memory.
        self._names: dict[str, str] = {}
        # The numbers of each broker's parts, which have no topic in common.
        self._numbers_of: dict[str, list[int]] = {}
        # The queues of each part by topic; None for a number without a part, or whose part is not shown.
        self._shown: list[dict[str, QueueData] | None] = []
        self._shown_bits = 0
        # Numbers that no topic has in its bits, the smallest first: the same requests give the same answers.
        self._free: list[int] = []
        # The numbers and topics of removed parts.
        self._leaving: list[tuple[int, dict[str, QueueData]]] = []
        self._entries = 0

    @property
    def entries(self) -> int:
        """The number of entries in memory. It includes entries that ``sweep`` will delete."""
        return self._entries

    def __len__(self) -> int:
        """Return the number of topics in memory. It includes topics that ``sweep`` will delete."""
        return len(self._bits_of)

    def count_of(self, broker_name: str) -> int:
        """Return how many topics a broker has."""
        return sum(map(len, self._parts_of(broker_name)))

    def shared_name(self, topic: str) -> str:
        """Return the same name, if possible as the object that the table has; safe to call in a thread."""
        return self._names.get(topic, topic)

    def additions(self, broker_name: str, topics: Collection[str]) -> Additions:
        """Return what ``put`` of these topics would add."""
        parts = self._parts_of(broker_name)
        if len(parts) > 1:
            # Not one look-up in each part: a broker that adds topics in large steps has many.
            own = sum(1 << number for number in self._numbers_of[broker_name])
            find_bits = self._bits_of.get
            unknown = [topic for topic in topics if not find_bits(topic, 0) & own]
        else:
            unknown = list(filterfalse(parts[0].__contains__, topics)) if parts else list(topics)
        known = sum(map(self._bits_of.__contains__, unknown))
        return Additions(unknown, len(unknown) - known)

    def put(
        self, broker_name: str, queues: Mapping[str, QueueData], additions: Additions, *, every: bool
    ) -> None:
        """Store a broker's queues by topic.

        Args:
            additions: of these queues; nothing has changed since.
            every: also replace the queues of topics that the broker has already.
        """
        parts = self._parts_of(broker_name)
        if every and len(parts) == 1:
            # Much faster than the choice below; what the part does not have yet gets its bits below.
            parts[0].update(queues)
        elif every:
            for part in parts:
                part.update({topic: queues[topic] for topic in part if topic in queues})
        if additions.unknown:
            number = self._numbers_of[broker_name][0] if parts else self._take_number()
            added = {topic: queues[topic] for topic in additions.unknown}
            self._set_bits(added, number)
            if parts:
                parts[0].update(added)
            else:
                self.show(broker_name, TopicPart(number, added))

    def add_part(
        self, queues: Mapping[str, QueueData], topics: Collection[str]
    ) -> Generator[None, None, TopicPart]:
        """Yield after about 1 ms of work; return a part with these topics that ``show`` shows.

        Closing the generator earlier removes the part.
        """
        part = TopicPart(self._take_number(), {})
        try:
            names = list(topics)
            for first in range(0, len(names), _SLICE_TOPICS):
                added = {topic: queues[topic] for topic in names[first : first + _SLICE_TOPICS]}
                self._set_bits(added, part.number)
                part.queues.update(added)
                yield
        except GeneratorExit:
            self.drop(part)
            raise
        return part

    def show(self, broker_name: str, part: TopicPart) -> None:
        """Let a part count as topics of a broker, which has none of them."""
        self._numbers_of.setdefault(broker_name, []).append(part.number)
        self._shown[part.number] = part.queues
        self._shown_bits |= 1 << part.number

    def drop(self, part: TopicPart) -> None:
        """Remove a part that is not shown; ``sweep`` frees its memory."""
        self._leaving.append((part.number, part.queues))

    def find(self, topic: str) -> list[QueueData]:
        """Return a topic's queues, one for each of its brokers."""
        bits = self._bits_of.get(topic, 0) & self._shown_bits
        return [self._part(number)[topic] for number in _ones(bits)]

    def topics(self) -> list[str]:
        """Return the topics that have queues."""
        shown = self._shown_bits
        return [topic for topic, bits in self._bits_of.items() if bits & shown]

    def topics_of(self, broker_names: Iterable[str]) -> Generator[None, None, list[str]]:
        """Yield after about 1 ms of work; return the topics that have queues at any of the brokers."""
        topics: dict[str, None] = {}
        done = 0
        for name in broker_names:
            for part in self._parts_of(name):
                topics.update(dict.fromkeys(part))
                done += len(part)
            done += 1
            if done >= _SLICE_TOPICS:
                done = 0
                yield
        return list(topics)

    def set_write_permission(self, broker_name: str, writable: bool) -> int:
        """Make a broker's topics readable and writable, or clear their write bit; return how many it has."""
        for part in self._parts_of(broker_name):
            # Not changed in place: responses that are still being written hold the old objects. Most topics
            # share one.
            old = {id(queues): queues for queues in part.values()}
            new = {key: replace(queues, perm=_changed(queues.perm, writable)) for key, queues in old.items()}
            part.update(zip(part, [new[id(queues)] for queues in part.values()], strict=True))
        return self.count_of(broker_name)

    def delete_topic(self, topic: str, broker_names: Iterable[str] | None) -> None:
        """Remove a topic's queues at the given brokers; at every broker if None."""
        for name in list(self._numbers_of) if broker_names is None else broker_names:
            for number in self._numbers_of.get(name, ()):
                part = self._part(number)
                if topic in part:
                    del part[topic]
                    self._clear_bit(topic, number)
                    if not part:
                        self._remove_part(name, number)
                    break

    def remove_broker(self, broker_name: str) -> None:
        """Remove a broker's queues; ``sweep`` frees their memory."""
        for number in self._numbers_of.pop(broker_name, ()):
            self._leaving.append((number, self._hide(number)))

    def sweep(self, limit: int) -> bool:
        """Delete at most ``limit`` entries of removed brokers; return True if none is left."""
        while self._leaving:
            number, topics = self._leaving[-1]
            for _ in range(min(limit, len(topics))):
                topic, _ = topics.popitem()
                self._clear_bit(topic, number)
                limit -= 1
            if topics:
                return False
            self._leaving.pop()
            heapq.heappush(self._free, number)
        return True

    def _remove_part(self, broker_name: str, number: int) -> None:
        """Free an empty part's number: topics that are added and deleted again must not use up ever more."""
        numbers = self._numbers_of[broker_name]
        numbers.remove(number)
        if not numbers:
            del self._numbers_of[broker_name]
        self._hide(number)
        heapq.heappush(self._free, number)

    def _hide(self, number: int) -> dict[str, QueueData]:
        """Remove a part from all routes; return its topics."""
        part = self._part(number)
        self._shown[number] = None
        self._shown_bits ^= 1 << number
        return part

    def _parts_of(self, broker_name: str) -> list[dict[str, QueueData]]:
        return [self._part(number) for number in self._numbers_of.get(broker_name, ())]

    def _part(self, number: int) -> dict[str, QueueData]:
        part = self._shown[number]
        assert part is not None
        return part

    def _take_number(self) -> int:
        if self._free:
            return heapq.heappop(self._free)
        self._shown.append(None)
        return len(self._shown) - 1

    def _set_bits(self, topics: Collection[str], number: int) -> None:
        bit = 1 << number
        bits_of = self._bits_of
        new = [topic for topic in topics if topic not in bits_of]
        self._names.update(zip(new, new, strict=True))
        with_bit = [bits | bit for bits in map(bits_of.get, topics, repeat(0))]
        bits_of.update(zip(topics, with_bit, strict=True))
        self._entries += len(topics)

    def _clear_bit(self, topic: str, number: int) -> None:
        bits = self._bits_of[topic] ^ 1 << number
        self._entries -= 1
        if bits:
            self._bits_of[topic] = bits
        else:
            del self._bits_of[topic], self._names[topic]


def _ones(bits: int) -> Iterator[int]:
    """Give the positions of a number's ones, the lowest first."""
    digits = f"{bits:b}"[::-1]
    position = digits.find("1")
    while position >= 0:
        yield position
        position = digits.find("1", position + 1)


def _changed(perm: int, writable: bool) -> int:
    return PERM_READ_WRITE if writable else perm & _NO_WRITE
