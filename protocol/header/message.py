"""Headers about single messages: 12, 33, 36, 37, 39, 309, 323 (docs/spec/protocol.md 3.2, 3.6)."""

from __future__ import annotations

from msgspec import field

from rewindmq.protocol.command import CommandHeader
from rewindmq.protocol.integers import Int32, Int64


class QueryMessageRequestHeader(CommandHeader):
    """Messages by key and store time, QUERY_MESSAGE (12)."""

    topic: str
    key: str
    max_num: Int32
    begin_timestamp: Int64
    end_timestamp: Int64
    unique_key_query: bool = field(name="_UNIQUE_KEY_QUERY", default=False)


class QueryMessageResponseHeader(CommandHeader):
    """Response to QUERY_MESSAGE (12): the newest message in the index."""

    index_last_update_timestamp: Int64
    index_last_update_phyoffset: Int64


class ViewMessageRequestHeader(CommandHeader):
    """The record at a commit-log position, VIEW_MESSAGE_BY_ID (33)."""

    offset: Int64
    topic: str | None = None


class ConsumerSendMsgBackRequestHeader(CommandHeader):
    """A message to be retried later, CONSUMER_SEND_MSG_BACK (36); ``offset`` is its commit-log position."""

    offset: Int64
    group: str
    delay_level: Int32
    origin_msg_id: str | None = None
    origin_topic: str | None = None
    unit_mode: bool = False
    max_reconsume_times: Int32 | None = None


class EndTransactionRequestHeader(CommandHeader):
    """The producer's verdict, END_TRANSACTION (37): 0 unknown, 8 commit, 12 rollback."""

    producer_group: str
    tran_state_table_offset: Int64
    commit_log_offset: Int64
    commit_or_rollback: Int32
    msg_id: str
    from_transaction_check: bool = False
    transaction_id: str | None = None
    topic: str | None = None


class CheckTransactionStateRequestHeader(CommandHeader):
    """Ask the producer for the verdict, CHECK_TRANSACTION_STATE (39).

    The offsets are those of the newest half record.
    """

    tran_state_table_offset: Int64
    commit_log_offset: Int64
    msg_id: str | None = None
    transaction_id: str | None = None
    offset_msg_id: str | None = None
    topic: str | None = None


class ConsumeMessageDirectlyResultRequestHeader(CommandHeader):
    """Have one consumer consume one message now, CONSUME_MESSAGE_DIRECTLY (309)."""

    consumer_group: str
    client_id: str | None = None
    msg_id: str | None = None
    broker_name: str | None = None
    topic: str | None = None


class ResumeCheckHalfMessageRequestHeader(CommandHeader):
    """Check a discarded half message again, RESUME_CHECK_HALF_MESSAGE (323)."""

    msg_id: str | None = None
    topic: str | None = None
