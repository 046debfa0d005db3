"""What the soak sends: every message says who it is, and everything about it follows from that.

A message is the ``number``-th of one producer process. Its size, payload, tag and what listeners do with it
are functions of the two, so that a consumer, or a producer asked about a transaction, needs nothing but the
body.
"""

from __future__ import annotations

import hashlib
from typing import Final, NamedTuple

CONCURRENT: Final = "c"
ORDERLY: Final = "o"
DELAYED: Final = "d"
TRANSACTION: Final = "t"
# A queue of a group's retry topic, in the journals only.
RETRY: Final = "r"

TOPICS: Final = {
    CONCURRENT: "SoakConcurrent",
    ORDERLY: "SoakOrderly",
    DELAYED: "SoakDelayed",
    TRANSACTION: "SoakTransaction",
}
TAGS: Final = ("A", "B", "C")

# Per thousand of the messages that a group with failing listeners gets.
_DOOMED: Final = 4
_FAILING: Final = 24
# Per hundred of the transactions.
_ROLLED_BACK: Final = 30
_LARGE: Final = 3
_LARGE_BYTES: Final = 9_000


class MessageId(NamedTuple):
    """The producer process, from 0, and the message's number in it, from 0."""

    producer: int
    number: int


def make_body(message: MessageId) -> bytes:
    """The one body that this message may have."""
    head = b"%d %d " % message
    seed = hashlib.blake2b(head).digest()
    size = _size(message)
    return head + (seed * (size // len(seed) + 1))[:size]


def read_body(body: bytes) -> MessageId | None:
    """Whose body this is; None when a single byte of it is wrong."""
    try:
        producer, number, _ = body.split(b" ", 2)
        message = MessageId(int(producer), int(number))
    except ValueError:
        return None
    return message if body == make_body(message) else None


def tag_of(message: MessageId) -> str:
    """One of ``TAGS``."""
    return TAGS[_chance(message, b"tag", len(TAGS))]


def failures_of(message: MessageId, limit: int) -> int:
    """How often listeners that fail at all refuse the message; ``limit`` + 1 for one that ends as a dead
    letter, where ``limit`` is the group's most redeliveries."""
    chance = _chance(message, b"failures", 1000)
    if chance < _DOOMED:
        return limit + 1
    return 1 + chance % 2 if chance < _FAILING else 0


def is_doomed(message: MessageId, limit: int) -> bool:
    """Whether listeners that fail never accept the message."""
    return failures_of(message, limit) > limit


def is_committed(message: MessageId) -> bool:
    """How its transaction ends."""
    return _chance(message, b"outcome", 100) >= _ROLLED_BACK


def is_left_open(message: MessageId) -> bool:
    """Whether the producer says "unknown" at first, so that the broker has to ask."""
    return _chance(message, b"open", 4) == 0


def _size(message: MessageId) -> int:
    if _chance(message, b"large", 100) < _LARGE:
        return _LARGE_BYTES
    return 32 + _chance(message, b"size", 800)


def _chance(message: MessageId, what: bytes, bound: int) -> int:
    """A number below ``bound`` that belongs to this message for good."""
    digest = hashlib.blake2b(b"%d %d " % message + what, digest_size=4).digest()
    return int.from_bytes(digest) % bound
