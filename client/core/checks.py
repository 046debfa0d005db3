"""What a client refuses before anything is sent, in RocketMQ's words (``Validators``)."""

from __future__ import annotations

from rewindmq.client.consume.selector import MessageSelector
from rewindmq.protocol.body.heartbeat import SubscriptionData
from rewindmq.protocol.errors import ClientError, RequestError
from rewindmq.protocol.names import NOT_SENDABLE_TOPICS, group_fault, topic_fault
from rewindmq.protocol.subscription import build_subscription_data


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


def make_subscription(topic: str, expression: str | MessageSelector, version: int) -> SubscriptionData:
    """The subscription of a TAG expression, or of what a selector asks for.

    Raises:
        ClientError: a bad topic name, or an expression without any tag, or empty where it must not be.
    """
    require_topic(topic)
    kind = None
    if isinstance(expression, MessageSelector):
        kind, expression = expression
    try:
        return build_subscription_data(topic, expression, kind, sub_version=version)
    except RequestError as error:
        raise ClientError(f"subscription exception: {error.remark}") from None
