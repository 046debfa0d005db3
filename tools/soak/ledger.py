"""The accounts of the sent messages: which were sent, which were acknowledged, and where each is stored.

Memory: a bit for each message sent, one for each acknowledged, one for each group that got it; 12 bytes for
each place in a queue. A million messages take some 15 MB.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from typing import NamedTuple

from tools.soak.bitmap import Bitmap, numbers
from tools.soak.message import MessageId
from tools.soak.rules import GroupRules

_NUMBER_BITS = 40


class StoredPlace(NamedTuple):
    """Where and when a message was stored."""

    queue: str
    offset: int
    at_s: int


class SendLedger:
    """The accounts of what producers sent."""

    def __init__(self) -> None:
        # Producer to kind to the numbers sent.
        self._sent: dict[int, defaultdict[str, Bitmap]] = {}
        self._acked: defaultdict[int, Bitmap] = defaultdict(Bitmap)
        # Queue to message by offset (0: unknown), and to the second in which a record first named that place.
        self._stored: defaultdict[str, array[int]] = defaultdict(lambda: array("q"))
        self._since: defaultdict[str, array[int]] = defaultdict(lambda: array("I"))

    def sent(self, message: MessageId, kind: str) -> None:
        """Record that the message was sent."""
        self._sent.setdefault(message.producer, defaultdict(Bitmap))[kind].add(message.number)

    def acked(self, message: MessageId) -> None:
        """Record that a broker acknowledged the message."""
        self._acked[message.producer].add(message.number)

    def knows(self, message: MessageId, kind: str) -> bool:
        """True if the message was sent as a message of this kind."""
        kinds = self._sent.get(message.producer)
        return kinds is not None and kind in kinds and message.number in kinds[kind]

    def record_place(self, message: MessageId, queue: str, offset: int, at_us: int) -> MessageId | None:
        """Record a message's place; return another message if that one was recorded there before."""
        stored, since = self._stored[queue], self._since[queue]
        if offset >= len(stored):
            missing = offset + 1 - len(stored)
            stored.extend([0] * missing)
            since.extend([0] * missing)
        packed = (message.producer << _NUMBER_BITS | message.number) + 1
        if not stored[offset]:
            stored[offset], since[offset] = packed, at_us // 1_000_000
            return None
        return None if stored[offset] == packed else _unpack(stored[offset])

    def end_of(self, queue: str) -> int:
        """Return the offset after the last known place."""
        return len(self._stored[queue]) if queue in self._stored else 0

    @property
    def producers(self) -> list[int]:
        return sorted(self._sent)

    def owed(self, producer: int, group: GroupRules) -> int:
        """Return a producer's acknowledged messages that a group must get, as bits."""
        wanted = 0
        for kind, sent in self._sent[producer].items():
            if group.wants(kind):
                wanted |= sent.as_int()
        return wanted & self._acked[producer].as_int()

    def count_sent(self) -> int:
        return sum(sent.count for kinds in self._sent.values() for sent in kinds.values())

    def count_acked(self) -> int:
        return sum(acked.count for acked in self._acked.values())

    def places_of(self, messages: frozenset[MessageId]) -> dict[MessageId, StoredPlace]:
        """Return where these messages are stored, as far as known; searches all queues."""
        wanted = {(m.producer << _NUMBER_BITS | m.number) + 1: m for m in messages}
        return {
            wanted[packed]: StoredPlace(queue, offset, self._since[queue][offset])
            for queue, stored in self._stored.items()
            for offset, packed in enumerate(stored)
            if packed in wanted
        }


class Receipts:
    """The messages that one group received."""

    def __init__(self) -> None:
        self._got: defaultdict[int, Bitmap] = defaultdict(Bitmap)

    def add(self, message: MessageId) -> bool:
        """Record a message; return False if the group had received it before."""
        return self._got[message.producer].add(message.number)

    def missing(self, producer: int, owed: int) -> list[MessageId]:
        """Return the messages of the bits ``owed`` that the group never received."""
        return [MessageId(producer, n) for n in numbers(owed & ~self._got[producer].as_int())]

    def count(self) -> int:
        return sum(got.count for got in self._got.values())


def _unpack(packed: int) -> MessageId:
    return MessageId(packed - 1 >> _NUMBER_BITS, (packed - 1) & (1 << _NUMBER_BITS) - 1)
