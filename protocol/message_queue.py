"""Identifies one queue, sorts queues in RocketMQ's order, and divides them among clients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rewindmq.protocol.integers import Int32


class MessageQueue(NamedTuple):
    """One queue of a topic at one broker.

    Sorts by topic, broker name and queue id; every rebalance strategy relies on this order
    (RocketMQ 4.9.4 ``MessageQueue#compareTo``). As a tuple it is also the key of msgpack tables.
    """

    topic: str
    broker_name: str
    queue_id: Int32

    def __str__(self) -> str:
        return f"MessageQueue [topic={self.topic}, brokerName={self.broker_name}, queueId={self.queue_id}]"


def averagely(queues: Sequence[MessageQueue], index: int, clients: int) -> list[MessageQueue]:
    """Return a block of adjacent queues; the first clients share the remainder, one queue each.

    Source: RocketMQ 4.9.4 ``AllocateMessageQueueAveragely``.

    Args:
        index: the client's position among the sorted clients, from 0.
    """
    share, larger = divmod(len(queues), clients)
    start = index * share + min(index, larger)
    return list(queues[start : start + share + (index < larger)])


def by_circle(queues: Sequence[MessageQueue], index: int, clients: int) -> list[MessageQueue]:
    """Return the queues of one client if all clients take a queue in turn.

    Source: RocketMQ 4.9.4 ``AllocateMessageQueueAveragelyByCircle``.

    Args:
        index: the client's position among the sorted clients, from 0.
    """
    return list(queues[index::clients])
