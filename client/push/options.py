"""Options of a push consumer, with RocketMQ's names, defaults and bounds (``DefaultMQPushConsumer``)."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from rewindmq.client.consume.allocate import AllocateAveragely, AllocateStrategy
from rewindmq.client.consume.local_offset_store import default_offset_root
from rewindmq.client.core.lifecycle import ClientKwargs
from rewindmq.protocol.body.heartbeat import ConsumeFromWhere, MessageModel
from rewindmq.protocol.errors import ClientError

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
_LAST_MILLISECOND = 2**63 - 1


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
        for name, (low, high) in _BOUNDS.items():
            value = getattr(self, name)
            if value is None and name == "consume_thread_max":
                continue
            if not isinstance(value, int) or not low <= value <= high:
                raise ClientError(f"{name} Out of range [{low}, {high}]")
        try:
            self.message_model = MessageModel(self.message_model)
            self.consume_from_where = ConsumeFromWhere(self.consume_from_where)
        except ValueError as error:
            raise ClientError(str(error)) from None
        if self.consume_timestamp is not None:
            parse_consume_timestamp(self.consume_timestamp)


class PushOptionKwargs(ClientKwargs, total=False):
    """Keyword arguments of ``PushConsumer``: those of ``PushOptions`` and of ``ClientKwargs``."""

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


def parse_consume_timestamp(value: str | int) -> int:
    """ms since the epoch of a ``consume_timestamp``.

    Java reads the 14 digits in the machine's time zone; UTC keeps a cluster's members in agreement.

    Raises:
        ClientError: neither 14 digits that are a date nor a number of ms from 0 to 2**63 - 1.
    """
    if isinstance(value, int):
        if not 0 <= value <= _LAST_MILLISECOND:
            raise ClientError(f"consumeTimestamp Out of range [0, {_LAST_MILLISECOND}]")
        return value
    try:
        moment = datetime.strptime(value, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        raise ClientError(
            f"consumeTimestamp is invalid, the valid format is yyyyMMddHHmmss,but received {value}"
        ) from None
    return int(moment.timestamp()) * 1000
