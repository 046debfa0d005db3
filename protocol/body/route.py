"""The route of a topic, body of 105 (docs/spec/protocol.md 5.1)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

from msgspec import field

from rewindmq.protocol.body import RemotingBody
from rewindmq.protocol.integers import Int32, Int64


class QueueData(RemotingBody):
    """Queues of a topic at one broker. ``perm`` is a ``Perm``."""

    broker_name: str
    read_queue_nums: Int32 = 0
    write_queue_nums: Int32 = 0
    perm: Int32 = 0
    topic_sys_flag: Int32 = 0

    # The name of the field before 4.9.0.
    aliases: ClassVar[Mapping[str, str]] = MappingProxyType({"topicSynFlag": "topicSysFlag"})


class BrokerData(RemotingBody):
    """Addresses of one broker by broker id; id 0 is the master."""

    cluster: str
    broker_name: str
    broker_addrs: dict[Int64, str] = field(default_factory=dict)
    # 5.x only: whether a slave of the broker may stand in for its master.
    enable_acting_master: bool | None = None


class TopicRouteData(RemotingBody):
    """The brokers and queues of a topic."""

    queue_datas: list[QueueData] = field(default_factory=list)
    broker_datas: list[BrokerData] = field(default_factory=list)
    filter_server_table: dict[str, list[str]] = field(default_factory=dict)
    # "broker-a:4;broker-b:4"; absent unless the name server serves ordered topics.
    order_topic_conf: str | None = None

    may_be_standard_json: ClassVar[bool] = True
