"""OrderlyProcessQueue: a ProcessQueue that is consumed in order (docs/spec/client.md C.6).

Source: RocketMQ 4.9.4 ``ProcessQueue``, the part for orderly consumption.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Final

from rewindmq.client.consume.process_queue import ProcessQueue
from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.message import MessageExt

LOCK_EXPIRED_SECONDS: Final = 30.0


class OrderlyProcessQueue(ProcessQueue):
    """A ProcessQueue whose taken messages stay cached until they are committed or put back.

    Attributes:
        locked: the broker has locked the queue for this client.
        last_lock: protocol seconds of the last lock response, at first of this object's construction.
        consume_lock: held while a listener runs; unlocking the queue waits for it.
        is_consuming: a task consumes the messages, or is scheduled to continue.
        try_unlock_times: how often the queue could not be unlocked because a listener ran.
    """

    __slots__ = ("_taken", "consume_lock", "is_consuming", "last_lock", "locked", "try_unlock_times")

    def __init__(self, now: float, chain: int = 0, epoch: int | None = None, *, locked: bool = False) -> None:
        super().__init__(now, chain, epoch)
        self._taken: dict[int, MessageExt] = {}
        self.locked = locked
        self.last_lock = now
        self.consume_lock = asyncio.Lock()
        self.is_consuming = False
        self.try_unlock_times = 0

    @property
    def cached_count(self) -> int:
        return len(self._messages) + len(self._taken)

    @property
    def has_waiting(self) -> bool:
        """True if messages wait to be taken (``hasTempMessage``)."""
        return bool(self._messages)

    @property
    def taken_offsets(self) -> tuple[int, ...]:
        """Offsets of the taken messages that are neither committed nor put back, ascending."""
        return tuple(sorted(self._taken))

    def is_lock_expired(self, now: float) -> bool:
        """True if the lock was not refreshed for 30 s. The broker's lock expires 30 s later."""
        return now - self.last_lock > LOCK_EXPIRED_SECONDS

    def lock_granted(self, now: float) -> None:
        """Record that the broker has just locked the queue for this client."""
        self.locked = True
        self.last_lock = now

    def take_lock_of(self, before: ProcessQueue) -> None:
        """Copy the lock state of the ProcessQueue that this one replaces."""
        if isinstance(before, OrderlyProcessQueue):
            self.locked, self.last_lock = before.locked, before.last_lock

    def begin_consuming(self) -> bool:
        """Return True if messages wait and no task consumes them; the caller must then start that task."""
        if self.is_consuming or not self._messages:
            return False
        self.is_consuming = True
        return True

    def take_messages(self, count: int) -> list[MessageExt]:
        """Take the first waiting messages; an empty list ends the consumption."""
        batch: list[MessageExt] = []
        offsets, cached = self._offsets, self._messages
        while offsets and len(batch) < count:
            offset = offsets.popleft()
            batch.append(cached.pop(offset))
            self._taken[offset] = batch[-1]
        if not batch:
            self.is_consuming = False
        return batch

    def commit(self) -> int:
        """Remove the taken messages.

        Returns:
            The offset after the last taken message.

        Raises:
            ClientError: no message is taken, as after ``clear``; the listener's result is then discarded
                (guard G7 of docs/spec/races.md E.2; Java throws NoSuchElementException).
        """
        taken = self._taken
        if not taken:
            raise ClientError("no messages are being consumed")
        self.cached_bytes -= sum(len(message.stored_body) for message in taken.values())
        end = max(taken) + 1
        taken.clear()
        return end

    def rollback(self) -> None:
        """Put back all taken messages."""
        self.make_message_to_consume_again(list(self._taken.values()))

    def make_message_to_consume_again(self, messages: Sequence[MessageExt]) -> None:
        """Put these messages back, taken or not; they replace cached messages with the same offsets."""
        for message in messages:
            self._taken.pop(message.queue_offset, None)
            self._messages[message.queue_offset] = message
        self._offsets = deque(sorted(self._messages))

    def clear(self) -> None:
        super().clear()
        self._taken.clear()
