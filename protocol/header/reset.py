"""Headers of offset reset and its progress: 220, 221, 222, 223, 314, and 190002.

Specification: docs/spec/protocol.md 3.2, 3.6.
"""

from __future__ import annotations

from rewindmq.protocol.command import CommandHeader
from rewindmq.protocol.integers import Int32, Int64
from rewindmq.protocol.reset_mode import ResetMode


class ResetOffsetRequestHeader(CommandHeader):
    """Reset a group's offsets in a topic: 222 is sent to a broker, 220 by the broker to the consumers.

    ``timestamp`` is ms; -1 means the end of every queue. Without ``is_force``, offsets only move back.
    ``queue_id`` -1 means all queues; only 5.x tools send it and ``offset``. ``reset_mode`` is RewindMQ's own:
    the mode of this reset instead of the broker's. RocketMQ ignores it, and responds without
    ``InvokeBrokerToResetOffsetResponseHeader``.
    """

    topic: str
    group: str
    timestamp: Int64
    is_force: bool
    queue_id: Int32 = -1
    offset: Int64 | None = None
    reset_mode: ResetMode | None = None


class InvokeBrokerToResetOffsetResponseHeader(CommandHeader):
    """RewindMQ's response to INVOKE_BROKER_TO_RESET_OFFSET (222): the mode that the broker used."""

    reset_mode: ResetMode | None = None


class NotifyQueueResetRequestHeader(CommandHeader):
    """A fenced reset of a queue: RewindMQ's broker sends NOTIFY_QUEUE_RESET to the pulling client.

    Oneway. ``offset`` and ``epoch`` are the stored values.
    """

    consumer_group: str
    topic: str
    broker_name: str
    queue_id: Int32
    offset: Int64
    epoch: Int64


class GetConsumerStatusRequestHeader(CommandHeader):
    """The offsets in consumers' memory: INVOKE_BROKER_TO_GET_CONSUMER_STATUS (223), and 221 to consumers.

    No ``client_addr`` means all consumers.
    """

    topic: str
    group: str
    client_addr: str | None = None


class CloneGroupOffsetRequestHeader(CommandHeader):
    """Copy stored offsets to another group, CLONE_GROUP_OFFSET (314); without ``topic``, of all topics."""

    src_group: str
    dest_group: str
    topic: str | None = None
    offline: bool = False
