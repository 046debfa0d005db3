"""Running info that every consumer returns for GET_CONSUMER_RUNNING_INFO (307, docs/spec/protocol.md 5.6)."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from rewindmq.client.core.client_config import ClientConfig
from rewindmq.protocol.body.heartbeat import ConsumerData, SubscriptionData
from rewindmq.protocol.body.running_info import ConsumerRunningInfo
from rewindmq.protocol.version import version_name


class InfoProperty(StrEnum):
    """Properties of the running info that tools read."""

    NAMESERVER_ADDR = "PROP_NAMESERVER_ADDR"
    THREADPOOL_CORE_SIZE = "PROP_THREADPOOL_CORE_SIZE"
    CONSUME_ORDERLY = "PROP_CONSUMEORDERLY"
    CONSUME_TYPE = "PROP_CONSUME_TYPE"
    CLIENT_VERSION = "PROP_CLIENT_VERSION"
    CONSUMER_START_TIMESTAMP = "PROP_CONSUMER_START_TIMESTAMP"


class DescribedConsumer(Protocol):
    """The part of a consumer that ``describe_consumer`` uses; ``Consumer`` documents the attributes."""

    group: str
    config: ClientConfig
    made_at: int
    subscriptions: dict[str, SubscriptionData]

    def heartbeat_data(self) -> ConsumerData: ...


def describe_consumer(consumer: DescribedConsumer) -> ConsumerRunningInfo:
    """Return the settings and subscriptions of any consumer."""
    data = consumer.heartbeat_data()
    properties = {
        "consumerGroup": consumer.group,
        "messageModel": str(data.message_model),
        "consumeFromWhere": str(data.consume_from_where),
        InfoProperty.NAMESERVER_ADDR: "".join(f"{address};" for address in consumer.config.namesrv_addrs),
        InfoProperty.CONSUME_TYPE: str(data.consume_type),
        InfoProperty.CLIENT_VERSION: version_name(consumer.config.profile.announced_version),
        InfoProperty.CONSUMER_START_TIMESTAMP: str(consumer.made_at),
    }
    subscriptions = sorted(consumer.subscriptions.values(), key=lambda subscription: subscription.topic)
    return ConsumerRunningInfo(
        properties={str(key): value for key, value in properties.items()}, subscription_set=subscriptions
    )
