"""What was sent: who is in the books, what was acknowledged, and where it lies.

Memory: for each message a bit here for "sent" and "acknowledged" and a bit for each group that got it; for
each place in a queue 12 bytes. A million messages are some 15 MB.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from typing import NamedTuple

from tools.soak.bitmap import Bitmap, numbers
from tools.soak.message import MessageId
from tools.soak.rules import GroupRules

_NUMBER_BITS = 40


class Place(NamedTuple):
    queue: str
    offset: int
    at_s: int


class Ledger:
    """The producers' side of the accounts."""

    def __init__(self) -> None:
        # Producer to kind to the numbers sent.
        self._sent: dict[int, defaultdict[str, Bitmap]] = {}
        self._acked: defaultdict[int, Bitmap] = defaultdict(Bitmap)
        # Queue to message by offset, 0 for unknown, and to the second it was first heard of there.
        self._holds: defaultdict[str, array[int]] = defaultdict(lambda: array("q"))
        self._since: defaultdict[str, array[int]] = defaultdict(lambda: array("I"))

    def sent(self, message: MessageId, kind: str) -> None:
        """It is in the books from now on."""
        self._sent.setdefault(message.producer, defaultdict(Bitmap))[kind].add(message.number)

    def acked(self, message: MessageId) -> None:
        """A broker has promised to keep it."""
        self._acked[message.producer].add(message.number)

    def knows(self, message: MessageId, kind: str) -> bool:
        """Whether it was sent, as a message of this kind."""
        kinds = self._sent.get(message.producer)
        return kinds is not None and kind in kinds and message.number in kinds[kind]

    def lies_at(self, message: MessageId, queue: str, offset: int, at_us: int) -> MessageId | None:
        """Put a message to its place; gives the other one that is there already."""
        held, since = self._holds[queue], self._since[queue]
        if offset >= len(held):
            missing = offset + 1 - len(held)
            held.extend([0] * missing)
            since.extend([0] * missing)
        packed = (message.producer << _NUMBER_BITS | message.number) + 1
        if not held[offset]:
            held[offset], since[offset] = packed, at_us // 1_000_000
            return None
        return None if held[offset] == packed else _unpack(held[offset])

    def end_of(self, queue: str) -> int:
        """One past the last place heard of."""
        return len(self._holds[queue]) if queue in self._holds else 0

    @property
    def producers(self) -> list[int]:
        return sorted(self._sent)

    def owed(self, producer: int, group: GroupRules) -> int:
        """Bits of the acknowledged messages of a producer that a group has to get."""
        wanted = 0
        for kind, sent in self._sent[producer].items():
            if group.wants(kind):
                wanted |= sent.as_int()
        return wanted & self._acked[producer].as_int()

    def count_sent(self) -> int:
        return sum(sent.count for kinds in self._sent.values() for sent in kinds.values())

    def count_acked(self) -> int:
        return sum(acked.count for acked in self._acked.values())

    def places_of(self, messages: frozenset[MessageId]) -> dict[MessageId, Place]:
        """Where these lie, as far as known; looks through everything."""
        wanted = {(m.producer << _NUMBER_BITS | m.number) + 1: m for m in messages}
        return {
            wanted[packed]: Place(queue, offset, self._since[queue][offset])
            for queue, held in self._holds.items()
            for offset, packed in enumerate(held)
            if packed in wanted
        }


class Receipts:
    """Which messages one group got."""

    def __init__(self) -> None:
        self._got: defaultdict[int, Bitmap] = defaultdict(Bitmap)

    def add(self, message: MessageId) -> bool:
        """False when it had come before."""
        return self._got[message.producer].add(message.number)

    def missing(self, producer: int, owed: int) -> list[MessageId]:
        """Those of the bits ``owed`` that never came."""
        return [MessageId(producer, n) for n in numbers(owed & ~self._got[producer].as_int())]

    def count(self) -> int:
        return sum(got.count for got in self._got.values())


def _unpack(packed: int) -> MessageId:
    return MessageId(packed - 1 >> _NUMBER_BITS, (packed - 1) & (1 << _NUMBER_BITS) - 1)
