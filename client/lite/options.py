"""Options of a lite pull consumer, with RocketMQ's names (4.9.4 ``DefaultLitePullConsumer``)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rewindmq.client.consume.allocate import AllocateStrategy
from rewindmq.client.consume.options import check_consume_options, check_ranges
from rewindmq.protocol.body.heartbeat import ConsumeFromWhere, MessageModel
from rewindmq.protocol.errors import ClientError

_INT32_MAX: Final = 2**31 - 1
# RocketMQ checks none of these.
_BOUNDS: Final = {
    "pull_batch_size": (1, _INT32_MAX),
    "pull_threshold_for_all": (1, _INT32_MAX),
    "pull_threshold_for_queue": (1, _INT32_MAX),
    "pull_threshold_size_for_queue": (1, _INT32_MAX),
    "consume_max_span": (1, _INT32_MAX),
    "auto_commit_interval_millis": (1, _INT32_MAX),
    "poll_timeout_millis": (0, _INT32_MAX),
    "broker_suspend_max_time_millis": (1, _INT32_MAX),
    "consumer_timeout_millis_when_suspend": (1, _INT32_MAX),
    "topic_metadata_check_interval_millis": (1, _INT32_MAX),
}


@dataclass(slots=True, kw_only=True)
class LitePullOptions:
    """The options of a ``LitePullConsumer``; its docstring explains each and gives the defaults."""

    consume_from_where: ConsumeFromWhere
    consume_timestamp: str | int | None
    message_model: MessageModel
    auto_commit: bool
    auto_commit_interval_millis: int
    pull_batch_size: int
    pull_threshold_for_all: int
    pull_threshold_for_queue: int
    pull_threshold_size_for_queue: int
    consume_max_span: int
    poll_timeout_millis: int
    broker_suspend_max_time_millis: int
    consumer_timeout_millis_when_suspend: int
    topic_metadata_check_interval_millis: int
    allocate_strategy: AllocateStrategy
    offset_root: Path

    def check(self) -> None:
        """Raise ClientError that names the first option with an invalid value."""
        check_ranges(self, _BOUNDS)
        if self.consumer_timeout_millis_when_suspend < self.broker_suspend_max_time_millis:
            raise ClientError(
                "Long polling mode, the consumer consumerTimeoutMillisWhenSuspend must greater than"
                " brokerSuspendMaxTimeMillis"
            )
        check_consume_options(self)
