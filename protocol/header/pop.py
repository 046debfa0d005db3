"""Headers of POP consumption: 200050 to 200055 and 200151 (RocketMQ 5.5.1).

The codes exceed 32,767, so these requests never have ROCKETMQ headers. BATCH_ACK_MESSAGE (200151) has a
body and no header: ``protocol/body/batch_ack.py``.
"""

from __future__ import annotations

from rewindmq.protocol.command import CommandHeader
from rewindmq.protocol.integers import Int32, Int64


class PopMessageRequestHeader(CommandHeader):
    """Messages for a group's next ``invisible_time`` ms, POP_MESSAGE (200050).

    ``queue_id`` -1 asks for all queues. ``poll_time`` is how long the request may wait for a message, in ms
    from ``born_time``; a ``born_time`` of 0 is the time of arrival. ``init_mode`` 0 begins a new group at the
    minimum of each queue, 1 at its maximum. ``attempt_id`` names the call, for an orderly POP that is
    repeated.
    """

    consumer_group: str
    topic: str
    queue_id: Int32
    max_msg_nums: Int32
    invisible_time: Int64
    poll_time: Int64
    born_time: Int64
    init_mode: Int32
    exp_type: str | None = None
    exp: str | None = None
    order: bool | None = None
    attempt_id: str | None = None


class PopMessageResponseHeader(CommandHeader):
    """Response to POP_MESSAGE (200050), SUCCESS (0) or POLLING_TIMEOUT (210); the body has records.

    ``rest_num`` is about how many messages are left. ``protocol/pop/offset_info.py`` has the three texts.
    """

    pop_time: Int64
    invisible_time: Int64
    revive_qid: Int32
    rest_num: Int64
    start_offset_info: str | None = None
    msg_offset_info: str | None = None
    order_count_info: str | None = None


class AckMessageRequestHeader(CommandHeader):
    """The group has consumed the message at ``offset``, ACK_MESSAGE (200051).

    ``extra_info`` is the message's handle: ``protocol/pop/extra_info.py``. ``topic`` is the real topic, which
    is a retry topic for a revived message.
    """

    consumer_group: str
    topic: str
    queue_id: Int32
    extra_info: str
    offset: Int64
    lite_topic: str | None = None


class ChangeInvisibleTimeRequestHeader(CommandHeader):
    """A new invisible time in ms from now for one message, CHANGE_MESSAGE_INVISIBLETIME (200053).

    ``suspend`` keeps the number of attempts as it is (since 5.4.0).
    """

    consumer_group: str
    topic: str
    queue_id: Int32
    extra_info: str
    offset: Int64
    invisible_time: Int64
    lite_topic: str | None = None
    suspend: bool | None = None


class ChangeInvisibleTimeResponseHeader(CommandHeader):
    """Response to CHANGE_MESSAGE_INVISIBLETIME (200053): the parts of the message's new handle."""

    pop_time: Int64
    invisible_time: Int64
    revive_qid: Int32


class PeekMessageRequestHeader(CommandHeader):
    """Messages that the group would pop next, without popping them, PEEK_MESSAGE (200052)."""

    consumer_group: str
    topic: str
    queue_id: Int32
    max_msg_nums: Int32


class NotificationRequestHeader(CommandHeader):
    """Whether there is a message for the group, waiting at most ``poll_time`` ms, NOTIFICATION (200054)."""

    consumer_group: str
    topic: str
    queue_id: Int32
    poll_time: Int64
    born_time: Int64
    order: bool | None = None
    attempt_id: str | None = None
    is_lite_consumer: bool | None = None
    client_id: str | None = None
    exp_type: str | None = None
    exp: str | None = None


class NotificationResponseHeader(CommandHeader):
    """Response to NOTIFICATION (200054); ``polling_full`` if the broker has no room to let it wait."""

    has_msg: bool
    polling_full: bool | None = None


class PollingInfoRequestHeader(CommandHeader):
    """How many POPs of the group wait for a message of a queue, POLLING_INFO (200055)."""

    consumer_group: str
    topic: str
    queue_id: Int32


class PollingInfoResponseHeader(CommandHeader):
    """Response to POLLING_INFO (200055)."""

    polling_num: Int32
