"""What a reset of a group did, and what a copy of its offsets did."""

from __future__ import annotations

from dataclasses import dataclass

from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.reset_mode import ResetMode


@dataclass(frozen=True, slots=True)
class RollbackStats:
    """The result of a direct write for one queue, with mqadmin's column names.

    Attributes:
        broker_offset: the queue's maximum offset.
        consumer_offset: the group's stored offset before the write; the queue's minimum if it had none.
        timestamp_offset: the offset found for the timestamp.
        rollback_offset: the stored offset after the write.
    """

    queue: MessageQueue
    broker_offset: int
    consumer_offset: int
    timestamp_offset: int
    rollback_offset: int

    @property
    def is_moved(self) -> bool:
        """True if the target was written; without force, a queue only moves back."""
        return self.rollback_offset == self.timestamp_offset


@dataclass(frozen=True, slots=True)
class ResetResult:
    """What a reset did: the brokers' responses, or what the client wrote.

    The meaning of a response depends on the mode. ``classic``: each broker computed its targets and queued
    the reset notifications; consumers have not applied them yet. ``server``: the targets are stored.
    ``fenced``: the targets are stored on disk, and brokers refuse commits of deliveries from before the
    reset.

    Attributes:
        offset_table: target offset of each queue, sorted by queue; stored offset after a write.
        modes: broker name to the mode in its response; None for RocketMQ's brokers, which name no mode; empty
            after a write.
        written: the write, queue by queue; None if the brokers reset the group.
    """

    offset_table: dict[MessageQueue, int]
    modes: dict[str, ResetMode | None]
    written: tuple[RollbackStats, ...] | None = None


@dataclass(frozen=True, slots=True)
class CloneResult:
    """The offsets that were copied.

    Attributes:
        offset_table: the source's offsets right before the copy; 0 for queues without an offset.
    """

    source: str
    destination: str
    offset_table: dict[MessageQueue, int]

    @property
    def topics(self) -> list[str]:
        """The topics, sorted."""
        return sorted({queue.topic for queue in self.offset_table})
