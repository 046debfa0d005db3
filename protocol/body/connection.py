"""Connected clients: bodies of 203, 204, 328 (docs/spec/protocol.md 5.7)."""

from __future__ import annotations

from msgspec import field

from rewindmq.protocol.body import RemotingBody
from rewindmq.protocol.body.heartbeat import (
    ConsumeFromWhere,
    ConsumeType,
    MessageModel,
    SubscriptionData,
)
from rewindmq.protocol.integers import Int32, Int64


class Connection(RemotingBody):
    """One client. ``language`` is the ``LanguageCode`` name, ``client_addr`` is ``host:port``."""

    client_id: str
    client_addr: str
    language: str = "OTHER"
    version: Int32 = 0


class ConsumerConnection(RemotingBody):
    """A consumer group as the broker knows it, GET_CONSUMER_CONNECTION_LIST (203)."""

    connection_set: list[Connection] = field(default_factory=list)
    subscription_table: dict[str, SubscriptionData] = field(default_factory=dict)
    consume_type: ConsumeType = ConsumeType.CONSUME_PASSIVELY
    message_model: MessageModel = MessageModel.CLUSTERING
    consume_from_where: ConsumeFromWhere = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET


class ProducerConnection(RemotingBody):
    """The producers of a group, GET_PRODUCER_CONNECTION_LIST (204)."""

    connection_set: list[Connection] = field(default_factory=list)


class ProducerInfo(RemotingBody):
    """One producer of a group; ``remote_ip`` is written ``/host:port`` by Java."""

    client_id: str
    remote_ip: str = field(name="remoteIP")
    language: str = "OTHER"
    version: Int32 = 0
    last_update_timestamp: Int64 = 0


class ProducerTableInfo(RemotingBody):
    """Every producer group of a broker, GET_ALL_PRODUCER_INFO (328)."""

    data: dict[str, list[ProducerInfo]] = field(default_factory=dict)
