"""What a client refuses before anything is sent, in RocketMQ's words (``Validators``)."""

from __future__ import annotations

from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.names import NOT_SENDABLE_TOPICS, group_fault, topic_fault


def require_group(group: str) -> None:
    """Raises ClientError for a name that is no group's."""
    fault = group_fault(group)
    if fault is not None:
        raise ClientError(fault)


def require_topic(topic: str) -> None:
    """Raises ClientError for a name that is no topic's."""
    fault = topic_fault(topic)
    if fault is not None:
        raise ClientError(fault)


def require_sendable(topic: str) -> None:
    """Raises ClientError for a topic no client may send to."""
    require_topic(topic)
    if topic in NOT_SENDABLE_TOPICS:
        raise ClientError(f"Sending message to topic[{topic}] is forbidden.")
