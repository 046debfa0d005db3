"""The route of a topic as name servers before 4.9.0 write it (RocketMQ 4.2.0 ``QueueData``)."""

from __future__ import annotations

from typing import Self

from msgspec import field

from rewindmq.protocol.body import RemotingBody
from rewindmq.protocol.body.route import BrokerData, QueueData, TopicRouteData
from rewindmq.protocol.integers import Int32


class OldQueueData(RemotingBody):
    """Queues of a topic at one broker; ``QueueData`` decodes this form, too."""

    broker_name: str
    read_queue_nums: Int32 = 0
    write_queue_nums: Int32 = 0
    perm: Int32 = 0
    topic_syn_flag: Int32 = 0

    @classmethod
    def of(cls, queues: QueueData) -> Self:
        """Convert a ``QueueData``."""
        return cls(
            queues.broker_name,
            queues.read_queue_nums,
            queues.write_queue_nums,
            queues.perm,
            queues.topic_sys_flag,
        )


class OldTopicRouteData(RemotingBody):
    """The brokers and queues of a topic; has no form in strict JSON."""

    queue_datas: list[OldQueueData] = field(default_factory=list)
    broker_datas: list[BrokerData] = field(default_factory=list)
    filter_server_table: dict[str, list[str]] = field(default_factory=dict)
    order_topic_conf: str | None = None

    @classmethod
    def of(cls, route: TopicRouteData) -> Self:
        """Convert a ``TopicRouteData``."""
        return cls(
            [OldQueueData.of(queues) for queues in route.queue_datas],
            route.broker_datas,
            route.filter_server_table,
            route.order_topic_conf,
        )
