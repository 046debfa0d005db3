"""The order in which a request looks at the queues of a topic."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Final

from rewindmq.broker.store.store import MessageStore

# Looking at that many queues takes up to 5 ms.
QUEUES_IN_TURN: Final = 4_096


def queues_in_turn(topic: str, count: int, chance: int, store: MessageStore, random: Random) -> Iterable[int]:
    """Return the queue ids, beginning at one and going around.

    Changed: if a topic has more queues than ``QUEUES_IN_TURN``, a request looks at that many of the queues
    that ever had a message, beginning at random. RocketMQ looks at all queues in each request.

    Args:
        count: the number of the topic's read queues.
        chance: 0 to 99; the first queue in a topic with fewer queues.
    """
    if count <= QUEUES_IN_TURN:
        start = chance % count if count else 0
        return (*range(start, count), *range(start))
    stored = [queue_id for queue_id in store.stored_queue_ids(topic) if queue_id < count]
    start = random.randrange(len(stored)) if stored else 0
    return (stored[start:] + stored[:start])[:QUEUES_IN_TURN]
