"""Headers of the sends: 10, 310, 320, 324, 325 and the push of a reply, 326 (docs/spec/protocol.md 3.3)."""

from __future__ import annotations

from msgspec import field

from rewindmq.protocol.command import CommandHeader
from rewindmq.protocol.integers import Int32, Int64


class SendMessageRequestHeader(CommandHeader):
    """The long field names of SEND_MESSAGE (10) and SEND_REPLY_MESSAGE (324)."""

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: Int32
    queue_id: Int32
    sys_flag: Int32
    born_timestamp: Int64
    flag: Int32
    properties: str | None = None
    reconsume_times: Int32 | None = None
    unit_mode: bool = False
    max_reconsume_times: Int32 | None = None
    batch: bool = False
    broker_name: str | None = field(name="bname", default=None)


class SendMessageRequestHeaderV2(SendMessageRequestHeader):
    """The same fields under one-letter names, as in SEND_MESSAGE_V2 (310)."""

    producer_group: str = field(name="a")
    topic: str = field(name="b")
    default_topic: str = field(name="c")
    default_topic_queue_nums: Int32 = field(name="d")
    queue_id: Int32 = field(name="e")
    sys_flag: Int32 = field(name="f")
    born_timestamp: Int64 = field(name="g")
    flag: Int32 = field(name="h")
    properties: str | None = field(name="i", default=None)
    reconsume_times: Int32 | None = field(name="j", default=None)
    unit_mode: bool = field(name="k", default=False)
    max_reconsume_times: Int32 | None = field(name="l", default=None)
    batch: bool = field(name="m", default=False)
    broker_name: str | None = field(name="n", default=None)


class SendMessageResponseHeader(CommandHeader):
    """Where the message went. Java reads the two upper-case fields without a null check: always fill them.

    ``msg_id`` of a batch is the comma-joined ids of its messages, ``queue_offset`` that of the first.
    """

    msg_id: str
    queue_id: Int32
    queue_offset: Int64
    transaction_id: str | None = None
    msg_region: str | None = field(name="MSG_REGION", default=None)
    trace_on: bool | None = field(name="TRACE_ON", default=None)
    batch_uniq_id: str | None = None
    recall_handle: str | None = None


class ReplyMessageRequestHeader(CommandHeader):
    """A reply pushed to the client that asked, PUSH_REPLY_MESSAGE_TO_CLIENT (326)."""

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: Int32
    queue_id: Int32
    sys_flag: Int32
    born_timestamp: Int64
    flag: Int32
    born_host: str
    store_host: str
    store_timestamp: Int64
    properties: str | None = None
    reconsume_times: Int32 | None = None
    unit_mode: bool = False
