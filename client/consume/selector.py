"""MessageSelector: selects messages of a topic by tags, or by a condition on their properties."""

from __future__ import annotations

from typing import NamedTuple, Self

from rewindmq.client.core.checks import require_topic
from rewindmq.protocol.body.heartbeat import EXPRESSION_SQL92, EXPRESSION_TAG, SubscriptionData
from rewindmq.protocol.errors import ClientError, RequestError
from rewindmq.protocol.subscription import build_subscription_data


class MessageSelector(NamedTuple):
    """An expression and its type (RocketMQ 4.9.4 ``MessageSelector``).

    Attributes:
        kind: ``TAG`` or ``SQL92``.
    """

    kind: str
    expression: str

    @classmethod
    def by_tag(cls, expression: str = "*") -> Self:
        """Select by tags separated by ``||``, or ``*``; the same as a plain expression."""
        return cls(EXPRESSION_TAG, expression)

    @classmethod
    def by_sql(cls, expression: str) -> Self:
        """Select by a condition such as ``price > 10 AND region IN ('eu', 'us')``, evaluated by the broker.

        The broker needs ``enablePropertyFilter``; docs/filtering.md describes the language.
        """
        return cls(EXPRESSION_SQL92, expression)


def make_subscription(topic: str, expression: str | MessageSelector, version: int) -> SubscriptionData:
    """Return the subscription for a tag expression or a selector.

    Raises:
        ClientError: an invalid topic name, an expression without any tag, or an empty condition.
    """
    require_topic(topic)
    kind = None
    if isinstance(expression, MessageSelector):
        kind, expression = expression
    try:
        return build_subscription_data(topic, expression, kind, sub_version=version)
    except RequestError as error:
        raise ClientError(f"subscription exception: {error.remark}") from None
