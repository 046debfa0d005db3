"""Headers of the pulls, 11 and 361 (docs/spec/protocol.md 3.2)."""

from __future__ import annotations

from rewindmq.protocol.command import CommandHeader
from rewindmq.protocol.integers import Int32, Int64


class PullMessageRequestHeader(CommandHeader):
    """What to read. ``sys_flag`` is a ``PullSysFlag``; ``suspend_timeout_millis`` bounds the long poll.

    ``expression_type`` is absent (None) from 4.2.0 and older ali-ons, which means TAG.
    """

    consumer_group: str
    topic: str
    queue_id: Int32
    queue_offset: Int64
    max_msg_nums: Int32
    sys_flag: Int32
    commit_offset: Int64
    suspend_timeout_millis: Int64
    sub_version: Int64
    subscription: str | None = None
    expression_type: str | None = None
    max_msg_bytes: Int32 | None = None
    request_source: Int32 | None = None
    # RocketMQ 5's own spelling.
    proxy_froward_client_id: str | None = None
    # RewindMQ's own: the epoch under which the client pulls; absent from clients that are not epoch-aware.
    epoch: Int64 | None = None


class PullMessageResponseHeader(CommandHeader):
    """The header of the response codes SUCCESS (0) and 19 to 21.

    All four required fields are always present, because Java reads them without a null check.
    """

    suggest_which_broker_id: Int64
    next_begin_offset: Int64
    min_offset: Int64
    max_offset: Int64
    offset_delta: Int64 | None = None
    topic_sys_flag: Int32 | None = None
    group_sys_flag: Int32 | None = None
    forbidden_type: Int32 | None = None
    # RewindMQ's own: the queue's epoch; absent before its first fenced reset.
    epoch: Int64 | None = None
