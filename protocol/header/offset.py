"""Headers of offset queries and commits: 14, 15, 29, 30, 31, 32 (docs/spec/protocol.md 3.2)."""

from __future__ import annotations

from rewindmq.protocol.command import CommandHeader
from rewindmq.protocol.integers import Int32, Int64


class QueryConsumerOffsetRequestHeader(CommandHeader):
    """The stored offset of a group in one queue, QUERY_CONSUMER_OFFSET (14)."""

    consumer_group: str
    topic: str
    queue_id: Int32
    set_zero_if_not_found: bool | None = None


class QueryConsumerOffsetResponseHeader(CommandHeader):
    """Response to QUERY_CONSUMER_OFFSET (14); without a stored offset it is QUERY_NOT_FOUND (22) instead.

    ``epoch`` is RewindMQ's: the number of fenced resets of the queue; absent means 0.
    """

    offset: Int64
    epoch: Int64 | None = None


class UpdateConsumerOffsetRequestHeader(CommandHeader):
    """A commit, UPDATE_CONSUMER_OFFSET (15). A lower offset is allowed: mqadmin rolls back with it.

    ``epoch`` is RewindMQ's: the epoch of the committed deliveries; absent from clients without epochs.
    """

    consumer_group: str
    topic: str
    queue_id: Int32
    commit_offset: Int64
    epoch: Int64 | None = None


class OffsetFencedResponseHeader(CommandHeader):
    """Response ``OFFSET_FENCED`` to a commit: the broker stored nothing; the fields are the stored values."""

    offset: Int64
    epoch: Int64


class SearchOffsetRequestHeader(CommandHeader):
    """The offset at a time, SEARCH_OFFSET_BY_TIMESTAMP (29). ``boundary_type`` (5.x) is LOWER or UPPER."""

    topic: str
    queue_id: Int32
    timestamp: Int64
    boundary_type: str | None = None


class SearchOffsetResponseHeader(CommandHeader):
    """Response to SEARCH_OFFSET_BY_TIMESTAMP (29)."""

    offset: Int64


class GetMaxOffsetRequestHeader(CommandHeader):
    """One past the last message, GET_MAX_OFFSET (30)."""

    topic: str
    queue_id: Int32
    committed: bool = True


class GetMaxOffsetResponseHeader(CommandHeader):
    """Response to GET_MAX_OFFSET (30)."""

    offset: Int64


class GetMinOffsetRequestHeader(CommandHeader):
    """The first message still kept, GET_MIN_OFFSET (31)."""

    topic: str
    queue_id: Int32


class GetMinOffsetResponseHeader(CommandHeader):
    """Response to GET_MIN_OFFSET (31)."""

    offset: Int64


class GetEarliestMsgStoretimeRequestHeader(CommandHeader):
    """Store time of the first message still kept, GET_EARLIEST_MSG_STORETIME (32)."""

    topic: str
    queue_id: Int32


class GetEarliestMsgStoretimeResponseHeader(CommandHeader):
    """Response to GET_EARLIEST_MSG_STORETIME (32): ms, -1 for an empty queue."""

    timestamp: Int64
