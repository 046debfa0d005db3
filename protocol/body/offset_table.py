"""Tables of offsets: bodies of 220, 221, 222, 223, 43, 45, 308 (docs/spec/protocol.md 5.5, 5.7)."""

from __future__ import annotations

from msgspec import field

from rewindmq.protocol.body import RemotingBody
from rewindmq.protocol.integers import Int32, Int64
from rewindmq.protocol.message_queue import MessageQueue


class ResetOffsetBody(RemotingBody):
    """Target offset of each queue: RESET_CONSUMER_CLIENT_OFFSET (220), the response to a reset (222)."""

    offset_table: dict[MessageQueue, Int64] = field(default_factory=dict)


class MessageQueueForC(RemotingBody):
    """One line of ``ResetOffsetBodyForC``."""

    topic: str
    broker_name: str
    queue_id: Int32
    offset: Int64


class ResetOffsetBodyForC(RemotingBody):
    """RESET_CONSUMER_CLIENT_OFFSET (220) for C++ clients: sent if the administrator's language is CPP."""

    offset_table: list[MessageQueueForC] = field(default_factory=list)


class GetConsumerStatusBody(RemotingBody):
    """The offsets of consumers.

    A client fills ``message_queue_table``; the broker collects the clients' tables in ``consumer_table``, by
    client id.
    """

    message_queue_table: dict[MessageQueue, Int64] = field(default_factory=dict)
    consumer_table: dict[str, dict[MessageQueue, Int64]] = field(default_factory=dict)


class ConsumerOffsetSerializeWrapper(RemotingBody):
    """Every stored offset of a broker, GET_ALL_CONSUMER_OFFSET (43): ``topic@group`` → queue id → offset."""

    offset_table: dict[str, dict[Int32, Int64]] = field(default_factory=dict)
    # RewindMQ's own: the number of fenced resets of each queue.
    epoch_table: dict[str, dict[Int32, Int64]] | None = None


class DelayOffsetSerializeWrapper(RemotingBody):
    """Progress of the delay levels, GET_ALL_DELAY_OFFSET (45): level → offset."""

    offset_table: dict[Int32, Int64] = field(default_factory=dict)


class QueryCorrectionOffsetBody(RemotingBody):
    """Queue id → offset, QUERY_CORRECTION_OFFSET (308)."""

    correction_offsets: dict[Int32, Int64] = field(default_factory=dict)
