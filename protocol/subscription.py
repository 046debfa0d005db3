"""Builds the subscription data of heartbeats and pulls from a filter expression.

Specification: docs/spec/protocol.md 7.2, 7.3.
"""

from __future__ import annotations

from typing import Final

from rewindmq.protocol.body.heartbeat import EXPRESSION_TAG, SubscriptionData
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.text import java_hash

SUB_ALL: Final = "*"
_TAG_SEPARATOR: Final = "||"


def build_subscription_data(
    topic: str,
    expression: str | None,
    expression_type: str | None = None,
    sub_version: int = 0,
) -> SubscriptionData:
    """Build the subscription of a topic (RocketMQ ``FilterAPI#build``).

    Args:
        expression: for TAG: ``*``, empty or None for everything, else tags separated by ``||``. For any other
            type (SQL92) the expression is kept unchanged.
        expression_type: None means TAG, as from clients older than 4.3.
        sub_version: ms; the newer of two subscriptions applies.

    Raises:
        RequestError: SUBSCRIPTION_PARSE_FAILED (23), a TAG expression of separators only, or another type
            without an expression.
    """
    if expression_type is None or expression_type == EXPRESSION_TAG:
        return _build_tags(topic, expression, sub_version)
    if not expression:
        raise RequestError(
            ResponseCode.SUBSCRIPTION_PARSE_FAILED, f"the {expression_type} expression for {topic} is empty"
        )
    return SubscriptionData(
        topic=topic, sub_string=expression, expression_type=expression_type, sub_version=sub_version
    )


def _build_tags(topic: str, expression: str | None, sub_version: int) -> SubscriptionData:
    if not expression or expression == SUB_ALL:
        return SubscriptionData(topic=topic, sub_string=SUB_ALL, sub_version=sub_version)
    tags = {tag for piece in expression.split(_TAG_SEPARATOR) if (tag := piece.strip())}
    if not tags:
        raise RequestError(ResponseCode.SUBSCRIPTION_PARSE_FAILED, f"no tag in {expression!r}")
    return SubscriptionData(
        topic=topic,
        sub_string=expression,
        tags_set=tags,
        code_set={java_hash(tag) for tag in tags},
        sub_version=sub_version,
    )
