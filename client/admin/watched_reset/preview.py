"""Preview: what a reset would do, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field

from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.watch.verdict.outlook import Outlook


@dataclass(frozen=True, slots=True)
class QueuePreview:
    """What a reset would do to one queue.

    Attributes:
        min_offset: offset of the first message that still exists; ``max_offset`` if none does.
        stored: the group's stored offset; None if the broker has none.
        target: the offset that the reset asks for.
        stays: the reset does not move the queue.
        is_read: consumers read the queue.
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
    stays: bool = False
    is_read: bool = True

    @property
    def redelivered(self) -> int:
        """Messages between target and stored offset that are still stored, and that consumers read."""
        if not self._is_moved or self.stored is None:
            return 0
        return max(0, min(self.stored, self.max_offset) - max(self.target, self.min_offset))

    @property
    def skipped(self) -> int:
        """Messages between stored offset and target, which the group never gets."""
        if not self._is_moved or self.stored is None:
            return 0
        return max(0, self.target - max(self.stored, self.min_offset))

    @property
    def _is_moved(self) -> bool:
        return self.is_read and not self.stays

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
        mode: of the request; None: each broker uses its own.
        queues: sorted by queue.
        consumers: client ids of the connected consumers, sorted.
        knows_group: a broker of the topic knows the group, or it has a retry topic.
        retry_lag: messages in the group's retry topic, which a reset does not move.
        obstacles: reasons why brokers would refuse the reset, or why consumers would not follow it.
        notes: what else the operator should know.
        outlooks: what a watch of the reset will be able to say, by queues; empty if nothing would be moved.
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
    mode: ResetMode | None = None
    knows_group: bool = True
    outlooks: tuple[Outlook, ...] = ()

    @property
    def redelivered(self) -> int:
        return sum(queue.redelivered for queue in self.queues)

    @property
    def skipped(self) -> int:
        return sum(queue.skipped for queue in self.queues)
