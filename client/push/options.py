"""Options of a push consumer, with RocketMQ's names, defaults and bounds (``DefaultMQPushConsumer``)."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from rewindmq.client.consume.allocate import AllocateAveragely, AllocateStrategy
from rewindmq.client.consume.local_offset_store import default_offset_root
from rewindmq.client.consume.options import check_consume_options, check_ranges
from rewindmq.protocol.body.heartbeat import ConsumeFromWhere, MessageModel

_BOUNDS = {
    "consume_thread_max": (1, 1000),
    "consume_message_batch_max_size": (1, 1024),
    "pull_batch_size": (1, 1024),
    "consume_concurrently_max_span": (1, 65535),
    "pull_threshold_for_queue": (1, 65535),
    "pull_threshold_size_for_queue": (1, 1024),
    "pull_interval": (0, 65535),
    "suspend_current_queue_time_millis": (10, 30000),
    "consume_timeout": (1, 1440),
}


@dataclass(slots=True)
class PushOptions:
    """Attributes:
    consume_timestamp: where CONSUME_FROM_TIMESTAMP starts, ``yyyyMMddHHmmss`` in UTC, or ms since the
        epoch as an int; None: half an hour before the consumer was made.
    consume_thread_max: batches in listeners at the same time, 1 to 1000; None: the profile's. Plain
        listeners share the runtime's threads besides, 20 in the system's.
    consume_message_batch_max_size: messages per call of the listener, 1 to 1024.
    pull_batch_size: messages per pull, 1 to 1024.
    pull_interval: ms between an answer with messages and the next pull of the queue.
    pull_threshold_for_queue: cached messages of a queue above which it is not pulled.
    pull_threshold_size_for_queue: the same in whole MiB.
    consume_concurrently_max_span: distance of the first and last cached offset above which it is not.
    suspend_current_queue_time_millis: pause of a queue, ms, after an orderly listener suspended it, unless
        the listener's context says otherwise; 10 to 30,000.
    max_reconsume_times: retries of a message before the dead letter topic; None: 16, and without end for an
        orderly listener.
    consume_timeout: minutes after which a message whose listener still runs is sent back, 1 to 1440; looked
        at as often.
    offset_root: directory of broadcasting offsets.
    enable_msg_trace: leave records of each listener's call in the trace topic, see docs/queries.md.
    customized_trace_topic: that topic's name, if not RocketMQ's.
    """

    consume_from_where: ConsumeFromWhere = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    consume_timestamp: str | int | None = None
    message_model: MessageModel = MessageModel.CLUSTERING
    consume_thread_max: int | None = None
    consume_message_batch_max_size: int = 1
    pull_batch_size: int = 32
    pull_interval: int = 0
    pull_threshold_for_queue: int = 1000
    pull_threshold_size_for_queue: int = 100
    consume_concurrently_max_span: int = 2000
    suspend_current_queue_time_millis: int = 1000
    max_reconsume_times: int | None = None
    consume_timeout: int = 15
    allocate_strategy: AllocateStrategy = field(default_factory=AllocateAveragely)
    offset_root: Path = field(default_factory=default_offset_root)
    enable_msg_trace: bool = False
    customized_trace_topic: str | None = None

    def check(self) -> None:
        """Raises ClientError naming the first option outside its range."""
        check_ranges(self, _BOUNDS, may_be_none=("consume_thread_max",))
        check_consume_options(self)
