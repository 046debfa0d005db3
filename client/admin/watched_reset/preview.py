"""Preview: what a reset would do, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field

from rewindmq.protocol.message_queue import MessageQueue


@dataclass(frozen=True, slots=True)
class QueuePreview:
    """What a reset would do to one queue.

    Attributes:
        stored: the group's stored offset; None if the broker has none.
        target: the offset that the reset asks for.
        target_time: store time in ms of the message at the target; None if the queue has no message there.
        average_bytes: mean size of the sampled messages between stored offset and target; None if none was
            read.
        consumer: client id of the consumer that has the queue; None if no consumer reports it.
    """

    queue: MessageQueue
    min_offset: int
    max_offset: int
    stored: int | None
    target: int
    target_time: int | None = None
    average_bytes: float | None = None
    consumer: str | None = None

    @property
    def redelivered(self) -> int:
        """Messages between target and stored offset that are still stored."""
        return 0 if self.stored is None else max(0, self.stored - max(self.target, self.min_offset))

    @property
    def skipped(self) -> int:
        """Messages between stored offset and target, which the group never gets."""
        return 0 if self.stored is None else max(0, self.target - max(self.stored, self.min_offset))

    @property
    def bytes(self) -> int | None:
        """Estimated bytes of the redelivered or skipped messages; None if no message was sampled."""
        count = self.redelivered + self.skipped
        if count == 0:
            return 0
        return None if self.average_bytes is None else round(count * self.average_bytes)


@dataclass(frozen=True, slots=True)
class Preview:
    """What a reset would do to a group in a topic.

    Attributes:
        timestamp: ms since the epoch, -1 for the end of every queue; None for a reset to offsets.
        queues: sorted by queue.
        consumers: client ids of the connected consumers, sorted.
        retry_lag: messages in the group's retry topic, which a reset does not move.
        obstacles: reasons why brokers would refuse the reset, or why consumers would not follow it.
        notes: what else the operator should know.
    """

    topic: str
    group: str
    timestamp: int | None
    force: bool
    queues: tuple[QueuePreview, ...]
    consumers: tuple[str, ...] = ()
    retry_lag: int = 0
    obstacles: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def redelivered(self) -> int:
        return sum(queue.redelivered for queue in self.queues)

    @property
    def skipped(self) -> int:
        return sum(queue.skipped for queue in self.queues)
