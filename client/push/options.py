"""Options of a push consumer, with RocketMQ's names and bounds (``DefaultMQPushConsumer``)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rewindmq.client.consume.allocate import AllocateStrategy
from rewindmq.client.consume.options import check_consume_options, check_ranges
from rewindmq.protocol.body.assignment import MessageRequestMode
from rewindmq.protocol.body.heartbeat import ConsumeFromWhere, MessageModel
from rewindmq.protocol.errors import ClientError

# Strategies that RocketMQ's brokers know.
BROKER_STRATEGIES = ("AVG", "AVG_BY_CIRCLE")

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
    "pop_invisible_time": (5_000, 300_000),
    "pop_batch_nums": (1, 32),
    "pop_threshold_for_queue": (1, 65535),
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
    request_mode: MessageRequestMode
    pop_invisible_time: int
    pop_batch_nums: int
    pop_threshold_for_queue: int

    def check(self) -> None:
        """Raise ClientError for the first option outside its range."""
        check_ranges(self, _BOUNDS, may_be_none=("consume_thread_max",))
        check_consume_options(self)
        if self.pops and self.message_model is MessageModel.BROADCASTING:
            raise ClientError("a broadcasting consumer cannot pop: use request_mode='pull'")
        if self.pops and self.allocate_strategy.name not in BROKER_STRATEGIES:
            raise ClientError(
                f"brokers assign the queues of a consumer that pops, and do not know the strategy"
                f" {self.allocate_strategy.name}: use one of {', '.join(BROKER_STRATEGIES)}"
            )

    @property
    def pops(self) -> bool:
        """True if the brokers assign the queues, and the consumer pops them."""
        return self.request_mode is MessageRequestMode.POP
