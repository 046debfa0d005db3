"""Statistics: bodies of 202, 208, 303, 315, 317, 321 (docs/spec/protocol.md 5.5, 5.7, 5.8)."""

from __future__ import annotations

from msgspec import field

from rewindmq.protocol.body import RemotingBody
from rewindmq.protocol.body.heartbeat import SubscriptionData
from rewindmq.protocol.integers import Int32, Int64
from rewindmq.protocol.message_queue import MessageQueue


class OffsetWrapper(RemotingBody):
    """A group's progress in one queue.

    Attributes:
        last_timestamp: store time of the last consumed message, ms.
        pull_offset: of 5.x only.
        pop_inflight: messages that are popped, and neither acknowledged nor revived; RewindMQ's own field.
            None: none, or the broker does not tell.
    """

    broker_offset: Int64 = 0
    consumer_offset: Int64 = 0
    last_timestamp: Int64 = 0
    pull_offset: Int64 | None = None
    pop_inflight: Int64 | None = None


class ConsumeStats(RemotingBody):
    """A group's progress, GET_CONSUME_STATS (208)."""

    offset_table: dict[MessageQueue, OffsetWrapper] = field(default_factory=dict)
    consume_tps: float = 0.0

    def total_diff(self) -> int:
        """Messages not yet consumed in all queues together."""
        return sum(entry.broker_offset - entry.consumer_offset for entry in self.offset_table.values())


class TopicOffset(RemotingBody):
    """Bounds of one queue; ``last_update_timestamp`` is the store time of its last message, ms."""

    min_offset: Int64 = 0
    max_offset: Int64 = 0
    last_update_timestamp: Int64 = 0


class TopicStatsTable(RemotingBody):
    """Bounds of a topic's queues, GET_TOPIC_STATS_INFO (202). Tools report an empty table as an error."""

    offset_table: dict[MessageQueue, TopicOffset] = field(default_factory=dict)


class ConsumeStatsList(RemotingBody):
    """Progress of every group at a broker, GET_BROKER_CONSUME_STATS (317)."""

    consume_stats_list: list[dict[str, list[ConsumeStats]]] = field(default_factory=list)
    broker_addr: str | None = None
    total_diff: Int64 = 0


class QueueTimeSpan(RemotingBody):
    """Store times in ms of a queue's first, last and last consumed message; the texts are local time."""

    message_queue: MessageQueue
    min_time_stamp: Int64 = 0
    max_time_stamp: Int64 = 0
    consume_time_stamp: Int64 = 0
    delay_time: Int64 = 0
    min_time_stamp_str: str | None = None
    max_time_stamp_str: str | None = None
    consume_time_stamp_str: str | None = None


class QueryConsumeTimeSpanBody(RemotingBody):
    """Time spans of every queue of a topic, QUERY_CONSUME_TIME_SPAN (303)."""

    consume_time_span_set: list[QueueTimeSpan] = field(default_factory=list)


class BrokerStatsItem(RemotingBody):
    """One statistic over one period."""

    sum: Int64 = 0
    tps: float = 0.0
    avgpt: float = 0.0


class BrokerStatsData(RemotingBody):
    """One statistic of a broker, VIEW_BROKER_STATS_DATA (315)."""

    stats_minute: BrokerStatsItem = field(default_factory=BrokerStatsItem)
    stats_hour: BrokerStatsItem = field(default_factory=BrokerStatsItem)
    stats_day: BrokerStatsItem = field(default_factory=BrokerStatsItem)


class ConsumeQueueData(RemotingBody):
    """One entry of a consume queue."""

    physic_offset: Int64 = 0
    physic_size: Int32 = 0
    tags_code: Int64 = 0
    eval: bool = False
    extend_data_json: str | None = None
    bit_map: str | None = None
    msg: str | None = None


class QueryConsumeQueueResponseBody(RemotingBody):
    """Entries of a consume queue, QUERY_CONSUME_QUEUE (321)."""

    queue_data: list[ConsumeQueueData] = field(default_factory=list)
    min_queue_index: Int64 = 0
    max_queue_index: Int64 = 0
    subscription_data: SubscriptionData | None = None
    filter_data: str | None = None
