"""Checks that a client makes before it sends, with RocketMQ's error texts (``Validators``)."""

from __future__ import annotations

from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.names import NOT_SENDABLE_TOPICS, group_fault, topic_fault


def require_group(group: str) -> None:
    """Raise ClientError if ``group`` is not a valid group name."""
    fault = group_fault(group)
    if fault is not None:
        raise ClientError(fault)


def require_topic(topic: str) -> None:
    """Raise ClientError if ``topic`` is not a valid topic name."""
    fault = topic_fault(topic)
    if fault is not None:
        raise ClientError(fault)


def require_sendable(topic: str) -> None:
    """Raise ClientError if clients may not send to ``topic``."""
    require_topic(topic)
    if topic in NOT_SENDABLE_TOPICS:
        raise ClientError(f"Sending message to topic[{topic}] is forbidden.")
