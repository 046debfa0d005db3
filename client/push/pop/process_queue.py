"""PopProcessQueue: popped messages of one queue that are not acknowledged yet.

Source: RocketMQ 5.5.0 ``PopProcessQueue``. Changed: a handle stays valid when the queue is assigned to
another consumer, so messages of such a queue are still consumed and acknowledged. Java's client discards
them.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from rewindmq.client.consume.process_queue import ProcessQueue
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.pop.extra_info import ExtraInfo


@dataclass(slots=True)
class HeldMessage:
    """A popped message that no other consumer gets until ``expires``.

    Attributes:
        handle: what acknowledges the message; a renewal replaces it.
        popped, expires: protocol seconds.
        renewal: the renewal that runs now.
    """

    handle: ExtraInfo
    popped: float
    expires: float
    renewal: asyncio.Task[None] | None = None


class PopProcessQueue(ProcessQueue):
    """Popped messages of one queue, or of all queues of a topic at a broker.

    Attributes:
        held: messages that are neither acknowledged nor given up.
    """

    __slots__ = ("held",)

    def __init__(self, now: float) -> None:
        super().__init__(now)
        self.held: dict[MessageExt, HeldMessage] = {}

    @property
    def cached_count(self) -> int:
        return len(self.held)

    def hold(self, message: MessageExt, handle: ExtraInfo, now: float) -> None:
        """Add a message that was popped just now."""
        self.counts.pulled += 1
        self.held[message] = HeldMessage(handle, now, now + handle.invisible_time / 1_000)

    def take(self, message: MessageExt) -> HeldMessage | None:
        """Remove a message; None if it was given up before."""
        return self.held.pop(message, None)

    def give_up(self, message: MessageExt) -> None:
        """Remove a message without a result: the broker delivers it again."""
        if self.take(message) is not None:
            self.counts.cleared += 1
