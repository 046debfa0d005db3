"""Options of a lite pull consumer, with RocketMQ's names and defaults (4.9.4 ``DefaultLitePullConsumer``)."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from rewindmq.client.consume.allocate import AllocateAveragely, AllocateStrategy
from rewindmq.client.consume.local_offset_store import default_offset_root
from rewindmq.client.consume.manual_pull import BLOCK_HOLD_MS
from rewindmq.client.consume.options import check_consume_options, check_ranges
from rewindmq.protocol.body.heartbeat import ConsumeFromWhere, MessageModel
from rewindmq.protocol.errors import ClientError

_INT32_MAX: Final = 2**31 - 1
# RocketMQ itself checks none of these.
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


@dataclass(slots=True)
class LitePullOptions:
    """Times are ms, thresholds at least 1.

    Attributes:
        consume_timestamp: see ``PushOptions``.
        auto_commit: note progress as consumed, from within ``poll``, every ``auto_commit_interval_millis``.
        pull_batch_size: messages per pull, and so per ``poll``.
        pull_threshold_for_all: no queue is pulled while as many batches wait for ``poll`` that they could
            hold more messages than this.
        pull_threshold_for_queue: cached messages of a queue above which it is not pulled.
        pull_threshold_size_for_queue: the same in whole MiB.
        consume_max_span: distance of the first and last cached offset above which it is not.
        poll_timeout_millis: how long ``poll`` waits unless told otherwise.
        broker_suspend_max_time_millis: how long a broker may hold a pull at the end of a queue.
        consumer_timeout_millis_when_suspend: how long its answer is waited for, not less.
        topic_metadata_check_interval_millis: how often topics with a listener are looked at for other queues.
        offset_root: directory of broadcasting offsets.
    """

    consume_from_where: ConsumeFromWhere = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    consume_timestamp: str | int | None = None
    message_model: MessageModel = MessageModel.CLUSTERING
    auto_commit: bool = True
    auto_commit_interval_millis: int = 5_000
    pull_batch_size: int = 10
    pull_threshold_for_all: int = 10_000
    pull_threshold_for_queue: int = 1_000
    pull_threshold_size_for_queue: int = 100
    consume_max_span: int = 2_000
    poll_timeout_millis: int = 5_000
    broker_suspend_max_time_millis: int = BLOCK_HOLD_MS
    consumer_timeout_millis_when_suspend: int = 30_000
    topic_metadata_check_interval_millis: int = 30_000
    allocate_strategy: AllocateStrategy = field(default_factory=AllocateAveragely)
    offset_root: Path = field(default_factory=default_offset_root)

    def check(self) -> None:
        """Raises ClientError naming the first option that cannot be."""
        check_ranges(self, _BOUNDS)
        if self.consumer_timeout_millis_when_suspend < self.broker_suspend_max_time_millis:
            raise ClientError(
                "Long polling mode, the consumer consumerTimeoutMillisWhenSuspend must greater than"
                " brokerSuspendMaxTimeMillis"
            )
        check_consume_options(self)
