"""Consumer groups: bodies of 38, 200, 201, 225, 300, 352, 401 (docs/spec/protocol.md 5.7)."""

from __future__ import annotations

from msgspec import field

from rewindmq.protocol.body import RemotingBody
from rewindmq.protocol.body.registration import DataVersion
from rewindmq.protocol.integers import Int32, Int64


class GetConsumerListByGroupResponseBody(RemotingBody):
    """Client ids of a consumer group, GET_CONSUMER_LIST_BY_GROUP (38), unordered."""

    consumer_id_list: list[str] = field(default_factory=list)


class SubscriptionGroupConfig(RemotingBody):
    """A consumer group's settings at a broker (RocketMQ 4.9.4 ``SubscriptionGroupConfig``)."""

    group_name: str
    consume_enable: bool = True
    consume_from_min_enable: bool = True
    consume_broadcast_enable: bool = True
    retry_queue_nums: Int32 = 1
    retry_max_times: Int32 = 16
    broker_id: Int64 = 0
    which_broker_when_consume_slowly: Int64 = 1
    notify_consumer_ids_changed_enable: bool = True


class SubscriptionGroupList(RemotingBody):
    """Settings of several consumer groups, UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST (225); 5.x only."""

    group_config_list: list[SubscriptionGroupConfig]


class SetMessageRequestModeRequestBody(RemotingBody):
    """How the consumers of a group read a topic, SET_MESSAGE_REQUEST_MODE (401); 5.x only.

    Attributes:
        mode: ``PULL`` or ``POP``.
        pop_share_queue_num: for ``POP``: further consumers that share a consumer's queues; 0 for all.
    """

    topic: str
    consumer_group: str
    mode: str = "PULL"
    pop_share_queue_num: Int32 = 0


class SubscriptionGroupWrapper(RemotingBody):
    """Every consumer group's settings, GET_ALL_SUBSCRIPTIONGROUP_CONFIG (201)."""

    subscription_group_table: dict[str, SubscriptionGroupConfig] = field(default_factory=dict)
    data_version: DataVersion = field(default_factory=DataVersion)


class GroupList(RemotingBody):
    """Names of groups, QUERY_TOPIC_CONSUME_BY_WHO (300)."""

    group_list: list[str] = field(default_factory=list)
