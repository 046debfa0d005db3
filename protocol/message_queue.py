"""Identifies one queue and sorts queues in RocketMQ's order."""

from __future__ import annotations

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
