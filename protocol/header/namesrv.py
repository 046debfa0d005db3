"""Headers of the name server's requests (docs/spec/protocol.md 3.5)."""

from __future__ import annotations

from rewindmq.protocol.command import CommandHeader
from rewindmq.protocol.integers import Int32, Int64


class PutKVConfigRequestHeader(CommandHeader):
    """Set one entry of the name server's configuration table, PUT_KV_CONFIG (100)."""

    namespace: str
    key: str
    value: str


class GetKVConfigRequestHeader(CommandHeader):
    """Read one entry, GET_KV_CONFIG (101)."""

    namespace: str
    key: str


class GetKVConfigResponseHeader(CommandHeader):
    """Response to GET_KV_CONFIG (101); for an unknown entry it is QUERY_NOT_FOUND (22) instead."""

    value: str | None = None


class DeleteKVConfigRequestHeader(CommandHeader):
    """Remove one entry, DELETE_KV_CONFIG (102)."""

    namespace: str
    key: str


class GetKVListByNamespaceRequestHeader(CommandHeader):
    """All entries of a namespace, GET_KVLIST_BY_NAMESPACE (219)."""

    namespace: str


class RegisterBrokerRequestHeader(CommandHeader):
    """A broker's registration, REGISTER_BROKER (103). ``body_crc32`` 0 means unchecked."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    ha_server_addr: str
    broker_id: Int64
    compressed: bool = False
    body_crc32: Int32 = 0
    heartbeat_timeout_millis: Int64 | None = None
    enable_acting_master: bool | None = None


class RegisterBrokerResponseHeader(CommandHeader):
    """Response to REGISTER_BROKER (103): where a slave finds its master."""

    ha_server_addr: str | None = None
    master_addr: str | None = None


class UnRegisterBrokerRequestHeader(CommandHeader):
    """A broker leaves, UNREGISTER_BROKER (104)."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: Int64


class GetRouteInfoRequestHeader(CommandHeader):
    """The route of a topic, GET_ROUTEINFO_BY_TOPIC (105)."""

    topic: str
    accept_standard_json_only: bool | None = None


class WipeWritePermOfBrokerRequestHeader(CommandHeader):
    """Take the write permission from a broker's queues, WIPE_WRITE_PERM_OF_BROKER (205)."""

    broker_name: str


class WipeWritePermOfBrokerResponseHeader(CommandHeader):
    """Response to WIPE_WRITE_PERM_OF_BROKER (205)."""

    wipe_topic_count: Int32


class AddWritePermOfBrokerRequestHeader(CommandHeader):
    """Give the write permission back, ADD_WRITE_PERM_OF_BROKER (327)."""

    broker_name: str


class AddWritePermOfBrokerResponseHeader(CommandHeader):
    """Response to ADD_WRITE_PERM_OF_BROKER (327)."""

    add_topic_count: Int32


class DeleteTopicFromNamesrvRequestHeader(CommandHeader):
    """Forget a topic, DELETE_TOPIC_IN_NAMESRV (216); in all clusters unless one is named."""

    topic: str
    cluster_name: str | None = None


class GetTopicsByClusterRequestHeader(CommandHeader):
    """Topics that have a broker in the cluster, GET_TOPICS_BY_CLUSTER (224)."""

    cluster: str


class QueryDataVersionRequestHeader(CommandHeader):
    """Compare the version of a broker's topics, QUERY_DATA_VERSION (322)."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: Int64


class QueryDataVersionResponseHeader(CommandHeader):
    """Response to QUERY_DATA_VERSION (322)."""

    changed: bool
