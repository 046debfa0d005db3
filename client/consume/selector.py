"""What a consumer asks for of a topic: tags, or a condition on message properties."""

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
        """Tags separated by ``||``, or ``*``; the same as giving the text itself."""
        return cls(EXPRESSION_TAG, expression)

    @classmethod
    def by_sql(cls, expression: str) -> Self:
        """A condition such as ``price > 10 AND region IN ('eu', 'us')``, which the broker evaluates.

        The broker has to have ``enablePropertyFilter`` on; see docs/filtering.md for the language.
        """
        return cls(EXPRESSION_SQL92, expression)


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
