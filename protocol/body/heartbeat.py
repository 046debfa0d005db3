"""Bodies of HEART_BEAT (34) and CHECK_CLIENT_CONFIG (46) (docs/spec/protocol.md 5.3, 5.7)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import ClassVar, Final

from msgspec import field

from rewindmq.protocol.body import RemotingBody
from rewindmq.protocol.integers import Int32, Int64


class ConsumeType(StrEnum):
    """Who drives consumption: the application (pull), the client library (push), or the broker (pop)."""

    CONSUME_ACTIVELY = "CONSUME_ACTIVELY"
    CONSUME_PASSIVELY = "CONSUME_PASSIVELY"
    CONSUME_POP = "CONSUME_POP"


class MessageModel(StrEnum):
    """Whether each consumer of a group gets every message or a share."""

    BROADCASTING = "BROADCASTING"
    CLUSTERING = "CLUSTERING"


class ConsumeFromWhere(StrEnum):
    """Where a group without a stored offset begins.

    RocketMQ has retired the last three values; they mean CONSUME_FROM_LAST_OFFSET.
    """

    CONSUME_FROM_LAST_OFFSET = "CONSUME_FROM_LAST_OFFSET"
    CONSUME_FROM_FIRST_OFFSET = "CONSUME_FROM_FIRST_OFFSET"
    CONSUME_FROM_TIMESTAMP = "CONSUME_FROM_TIMESTAMP"
    CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST = (
        "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST"
    )
    CONSUME_FROM_MIN_OFFSET = "CONSUME_FROM_MIN_OFFSET"
    CONSUME_FROM_MAX_OFFSET = "CONSUME_FROM_MAX_OFFSET"


EXPRESSION_TAG: Final = "TAG"
EXPRESSION_SQL92: Final = "SQL92"


class SubscriptionData(RemotingBody):
    """One topic of a subscription.

    ``code_set`` holds the Java hashes of ``tags_set``; both are empty for ``*`` and for SQL92.
    ``sub_version`` is the client's time in ms (pyrocketmq: ns); brokers only compare two of them.
    """

    topic: str = ""
    sub_string: str = "*"
    tags_set: set[str] = field(default_factory=set)
    code_set: set[Int32] = field(default_factory=set)
    sub_version: Int64 = 0
    expression_type: str = EXPRESSION_TAG
    class_filter_mode: bool = False


class ConsumerData(RemotingBody):
    """One consumer group of a client."""

    group_name: str
    consume_type: ConsumeType = ConsumeType.CONSUME_PASSIVELY
    message_model: MessageModel = MessageModel.CLUSTERING
    consume_from_where: ConsumeFromWhere = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    subscription_data_set: list[SubscriptionData] = field(default_factory=list)
    unit_mode: bool = False

    # pyrocketmq's name for the field.
    aliases: ClassVar[Mapping[str, str]] = MappingProxyType({"subscriptionData": "subscriptionDataSet"})


class ProducerData(RemotingBody):
    """One producer group of a client."""

    group_name: str


class HeartbeatData(RemotingBody):
    """Every group of one client."""

    client_id: str = field(name="clientID")
    producer_data_set: list[ProducerData] = field(default_factory=list)
    consumer_data_set: list[ConsumerData] = field(default_factory=list)
    # 5.x, heartbeat V2.
    heartbeat_fingerprint: Int32 = 0
    without_sub: bool = False


class CheckClientRequestBody(RemotingBody):
    """A subscription to be checked before use, CHECK_CLIENT_CONFIG (46)."""

    client_id: str
    group: str
    subscription_data: SubscriptionData
    namespace: str | None = None
