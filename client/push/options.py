"""Options of a push consumer, with RocketMQ's names and bounds (``DefaultMQPushConsumer``)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rewindmq.client.consume.allocate import AllocateStrategy
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


@dataclass(slots=True, kw_only=True)
class PushOptions:
    """The options of a ``PushConsumer``; the docstring of that class explains them."""

    consume_from_where: ConsumeFromWhere
    consume_timestamp: str | int | None
    message_model: MessageModel
    consume_thread_max: int | None
    consume_message_batch_max_size: int
    pull_batch_size: int
    pull_interval: int
    pull_threshold_for_queue: int
    pull_threshold_size_for_queue: int
    consume_concurrently_max_span: int
    suspend_current_queue_time_millis: int
    max_reconsume_times: int | None
    consume_timeout: int
    allocate_strategy: AllocateStrategy
    offset_root: Path
    enable_msg_trace: bool
    customized_trace_topic: str | None

    def check(self) -> None:
        """Raise ClientError for the first option outside its range."""
        check_ranges(self, _BOUNDS, may_be_none=("consume_thread_max",))
        check_consume_options(self)
