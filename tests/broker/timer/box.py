"""Helpers for tests of timer messages."""

from __future__ import annotations

from rewindmq.broker.broker import Broker
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message.record import decode_records
from rewindmq.protocol.names import TIMER_TOPIC


def stored(broker: Broker, topic: str = "T", queue_id: int = 0) -> list[MessageExt]:
    """Return all messages of a queue."""
    messages: list[MessageExt] = []
    store = broker.context.store
    while len(messages) < store.max_offset(topic, queue_id):
        found = store.get_message(topic, queue_id, len(messages), 32, None)
        messages += decode_records(found.body)
    return messages


def waiting(broker: Broker) -> list[MessageExt]:
    """Return all messages of the timer topic."""
    return stored(broker, TIMER_TOPIC)
