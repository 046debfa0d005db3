"""State of a running consumer: bodies of 307 and 309 (docs/spec/protocol.md 5.6, 5.8)."""

from __future__ import annotations

from enum import StrEnum

from msgspec import field

from rewindmq.protocol.body import RemotingBody
from rewindmq.protocol.body.heartbeat import SubscriptionData
from rewindmq.protocol.integers import Int32, Int64
from rewindmq.protocol.message_queue import MessageQueue


class ProcessQueueInfo(RemotingBody):
    """One queue of a consumer. Offsets are queue offsets, timestamps ms; ``droped`` is Java's spelling."""

    commit_offset: Int64 = 0
    cached_msg_min_offset: Int64 = 0
    cached_msg_max_offset: Int64 = 0
    cached_msg_count: Int32 = 0
    cached_msg_size_in_mi_b: Int32 = field(name="cachedMsgSizeInMiB", default=0)
    transaction_msg_min_offset: Int64 = 0
    transaction_msg_max_offset: Int64 = 0
    transaction_msg_count: Int32 = 0
    locked: bool = False
    try_unlock_times: Int64 = 0
    last_lock_timestamp: Int64 = 0
    droped: bool = False
    last_pull_timestamp: Int64 = 0
    last_consume_timestamp: Int64 = 0


class ConsumeStatus(RemotingBody):
    """Rates of one topic: messages per second, and milliseconds per pull and per message."""

    pull_rt: float = field(name="pullRT", default=0.0)
    pull_tps: float = field(name="pullTPS", default=0.0)
    consume_rt: float = field(name="consumeRT", default=0.0)
    consume_ok_tps: float = field(name="consumeOKTPS", default=0.0)
    consume_failed_tps: float = field(name="consumeFailedTPS", default=0.0)
    consume_failed_msgs: Int64 = 0


class ConsumerRunningInfo(RemotingBody):
    """Response to GET_CONSUMER_RUNNING_INFO (307). ``properties`` are the consumer's settings, all texts."""

    properties: dict[str, str] = field(default_factory=dict)
    subscription_set: list[SubscriptionData] = field(default_factory=list)
    mq_table: dict[MessageQueue, ProcessQueueInfo] = field(default_factory=dict)
    status_table: dict[str, ConsumeStatus] = field(default_factory=dict)
    jstack: str | None = None


class CMResult(StrEnum):
    """A listener's result for a message consumed directly."""

    CR_SUCCESS = "CR_SUCCESS"
    CR_LATER = "CR_LATER"
    CR_ROLLBACK = "CR_ROLLBACK"
    CR_COMMIT = "CR_COMMIT"
    CR_THROW_EXCEPTION = "CR_THROW_EXCEPTION"
    CR_RETURN_NULL = "CR_RETURN_NULL"


class ConsumeMessageDirectlyResult(RemotingBody):
    """Response to CONSUME_MESSAGE_DIRECTLY (309); ``spent_time_mills`` is ms."""

    consume_result: CMResult
    order: bool = False
    auto_commit: bool = True
    remark: str | None = None
    spent_time_mills: Int64 = 0
