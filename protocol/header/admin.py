"""Headers of broker administration (docs/spec/protocol.md 3.6)."""

from __future__ import annotations

from msgspec import field

from rewindmq.protocol.command import CommandHeader
from rewindmq.protocol.integers import Int32, Int64


class CreateTopicRequestHeader(CommandHeader):
    """UPDATE_AND_CREATE_TOPIC (17). ``topic_filter_type`` is SINGLE_TAG or MULTI_TAG."""

    topic: str
    default_topic: str
    read_queue_nums: Int32
    write_queue_nums: Int32
    perm: Int32
    topic_filter_type: str
    topic_sys_flag: Int32 | None = None
    order: bool = False
    attributes: str | None = None
    force: bool = False


class DeleteTopicRequestHeader(CommandHeader):
    """Delete a topic at a broker, DELETE_TOPIC_IN_BROKER (215)."""

    topic: str


class GetBrokerConfigResponseHeader(CommandHeader):
    """Response to GET_BROKER_CONFIG (26): the configuration's DataVersion as JSON text."""

    version: str


class GetTopicStatsInfoRequestHeader(CommandHeader):
    """Offsets of a topic's queues, GET_TOPIC_STATS_INFO (202)."""

    topic: str


class GetConsumerConnectionListRequestHeader(CommandHeader):
    """The consumers of a group, GET_CONSUMER_CONNECTION_LIST (203)."""

    consumer_group: str


class GetProducerConnectionListRequestHeader(CommandHeader):
    """The producers of a group, GET_PRODUCER_CONNECTION_LIST (204)."""

    producer_group: str


class DeleteSubscriptionGroupRequestHeader(CommandHeader):
    """Delete a consumer group's configuration, 207; its offsets too when asked for.

    4.9.4 names the field ``removeOffset``, 5.x ``cleanOffset``: read ``removes_offset``.
    """

    group_name: str
    remove_offset: bool = False
    clean_offset: bool = False

    @property
    def removes_offset(self) -> bool:
        return self.remove_offset or self.clean_offset


class GetConsumeStatsRequestHeader(CommandHeader):
    """A group's progress, GET_CONSUME_STATS (208); in all its topics unless one is named."""

    consumer_group: str
    topic: str | None = None
    topic_list: str | None = None


class QueryTopicConsumeByWhoRequestHeader(CommandHeader):
    """Groups that consume a topic, QUERY_TOPIC_CONSUME_BY_WHO (300)."""

    topic: str


class QueryConsumeTimeSpanRequestHeader(CommandHeader):
    """Store times a group has consumed up to, QUERY_CONSUME_TIME_SPAN (303)."""

    topic: str
    group: str


class QueryCorrectionOffsetHeader(CommandHeader):
    """The smallest offset of any group in each queue of a topic, QUERY_CORRECTION_OFFSET (308)."""

    topic: str
    compare_group: str
    filter_groups: str | None = None


class ViewBrokerStatsDataRequestHeader(CommandHeader):
    """One statistic of a broker, VIEW_BROKER_STATS_DATA (315); RocketMQ reads a missing field as null."""

    stats_name: str | None = None
    stats_key: str | None = None


class GetConsumeStatsInBrokerHeader(CommandHeader):
    """Progress of every group at a broker, GET_BROKER_CONSUME_STATS (317)."""

    is_order: bool


class QueryConsumeQueueRequestHeader(CommandHeader):
    """Entries of a consume queue, QUERY_CONSUME_QUEUE (321)."""

    topic: str | None = None
    queue_id: Int32 = 0
    index: Int64 = 0
    count: Int32 = 0
    consumer_group: str | None = None


class GetTopicConfigRequestHeader(CommandHeader):
    """The configuration of one topic, GET_TOPIC_CONFIG (351, 5.x tools)."""

    topic: str
    lo: bool | None = None


class GetSubscriptionGroupConfigRequestHeader(CommandHeader):
    """The configuration of one consumer group, GET_SUBSCRIPTIONGROUP_CONFIG (352, 5.x tools)."""

    group: str


class ListFencedCommitsRequestHeader(CommandHeader):
    """Refused commits, LIST_FENCED_COMMITS (190001, RewindMQ); of any group and topic unless named."""

    group: str | None = None
    topic: str | None = None


class ListRewindsRequestHeader(CommandHeader):
    """The latest rewinds of a group in a topic, LIST_REWINDS (190003, RewindMQ)."""

    group: str
    topic: str


class CreateAccessConfigRequestHeader(CommandHeader):
    """Create or change an account, UPDATE_AND_CREATE_ACL_CONFIG (50)."""

    access_key: str
    secret_key: str | None = None
    white_remote_address: str | None = None
    admin: bool = False
    default_topic_perm: str | None = None
    default_group_perm: str | None = None
    topic_perms: str | None = None
    group_perms: str | None = None


class DeleteAccessConfigRequestHeader(CommandHeader):
    """Delete an account, DELETE_ACL_CONFIG (51)."""

    access_key: str


class GetBrokerAclConfigResponseHeader(CommandHeader):
    """Response to GET_BROKER_CLUSTER_ACL_INFO (52)."""

    version: str
    broker_name: str
    broker_addr: str
    cluster_name: str
    all_acl_file_version: str | None = field(name="allAclFileVersion", default=None)


class UpdateGlobalWhiteAddrsConfigRequestHeader(CommandHeader):
    """Set the addresses that need no account, UPDATE_GLOBAL_WHITE_ADDRS_CONFIG (53)."""

    global_white_addrs: str
    acl_file_full_path: str | None = None
