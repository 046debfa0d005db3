"""The messages of the soak: everything about a message follows from its id, which its body carries.

A message is the ``number``-th one of a producer process. Its size, payload, tag and the listeners' verdicts
are functions of these two. So a consumer, or a producer that checks a transaction, needs only the body.
"""

from __future__ import annotations

import hashlib
from typing import Final, NamedTuple

CONCURRENT: Final = "c"
ORDERLY: Final = "o"
DELAYED: Final = "d"
TRANSACTION: Final = "t"
# A queue of a group's retry topic; only journals use this letter.
RETRY: Final = "r"

TOPICS: Final = {
    CONCURRENT: "SoakConcurrent",
    ORDERLY: "SoakOrderly",
    DELAYED: "SoakDelayed",
    TRANSACTION: "SoakTransaction",
}
TAGS: Final = ("A", "B", "C")

# Per thousand messages of a group whose listeners fail.
_DOOMED: Final = 4
_FAILING: Final = 24
# Per hundred transactions.
_ROLLED_BACK: Final = 30
_LARGE: Final = 3
_LARGE_BYTES: Final = 9_000


class MessageId(NamedTuple):
    """A producer process, from 0, and the message's number in that process, from 0."""

    producer: int
    number: int


def make_body(message: MessageId) -> bytes:
    """Return the only valid body of this message."""
    head = b"%d %d " % message
    seed = hashlib.blake2b(head).digest()
    size = _size(message)
    return head + (seed * (size // len(seed) + 1))[:size]


def read_body(body: bytes) -> MessageId | None:
    """Return whose body this is, None if even one byte of it is wrong."""
    try:
        producer, number, _ = body.split(b" ", 2)
        message = MessageId(int(producer), int(number))
    except ValueError:
        return None
    return message if body == make_body(message) else None


def tag_of(message: MessageId) -> str:
    """Return one of ``TAGS``."""
    return TAGS[_chance(message, b"tag", len(TAGS))]


def failures_of(message: MessageId, limit: int) -> int:
    """Return how often the listeners of a group that refuses messages refuse this one.

    It is ``limit`` + 1 for a message that ends as a dead letter; ``limit`` is the group's most redeliveries.
    """
    chance = _chance(message, b"failures", 1000)
    if chance < _DOOMED:
        return limit + 1
    return 1 + chance % 2 if chance < _FAILING else 0


def is_doomed(message: MessageId, limit: int) -> bool:
    """True if listeners that refuse messages never accept this one."""
    return failures_of(message, limit) > limit


def is_committed(message: MessageId) -> bool:
    """True if the message's transaction is committed, False if it is rolled back."""
    return _chance(message, b"outcome", 100) >= _ROLLED_BACK


def is_left_open(message: MessageId) -> bool:
    """True if the producer first returns "unknown", so that the broker has to check."""
    return _chance(message, b"open", 4) == 0


def _size(message: MessageId) -> int:
    if _chance(message, b"large", 100) < _LARGE:
        return _LARGE_BYTES
    return 32 + _chance(message, b"size", 800)


def _chance(message: MessageId, what: bytes, bound: int) -> int:
    """Return a number below ``bound`` that depends only on the message and ``what``."""
    digest = hashlib.blake2b(b"%d %d " % message + what, digest_size=4).digest()
    return int.from_bytes(digest) % bound
