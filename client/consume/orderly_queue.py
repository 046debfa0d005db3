"""OrderlyProcessQueue: a ProcessQueue whose messages are consumed one batch after the other
(docs/spec/client.md C.6).

Source: RocketMQ 4.9.4 ``ProcessQueue``, the half of it that orderly consumption uses.
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
    """Messages that were taken stay cached until they are committed, and go back to their places otherwise.

    Attributes:
        locked: the broker has granted this client the queue.
        last_lock: protocol seconds of the last time it did; of the making of this object before that.
        consume_lock: held while a listener runs; whoever gives the queue up waits for it.
        is_consuming: somebody goes through the messages or will come back to them.
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
        """Whether messages wait to be taken (``hasTempMessage``)."""
        return bool(self._messages)

    @property
    def taken_offsets(self) -> tuple[int, ...]:
        """Of the messages taken and neither committed nor put back, ascending."""
        return tuple(sorted(self._taken))

    def is_lock_expired(self, now: float) -> bool:
        """No refresh for 30 s: the broker may give the queue to others 30 s from now."""
        return now - self.last_lock > LOCK_EXPIRED_SECONDS

    def lock_granted(self, now: float) -> None:
        """The broker has just said that the queue is ours."""
        self.locked = True
        self.last_lock = now

    def take_lock_of(self, before: ProcessQueue) -> None:
        """Go on with the lock of the object that owned the queue until now."""
        if isinstance(before, OrderlyProcessQueue):
            self.locked, self.last_lock = before.locked, before.last_lock

    def begin_consuming(self) -> bool:
        """True when messages wait and nobody goes through them: the caller has to, then."""
        if self.is_consuming or not self._messages:
            return False
        self.is_consuming = True
        return True

    def take_messages(self, count: int) -> list[MessageExt]:
        """The first messages waiting; an empty list ends the consumption."""
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
        """Forget what was taken.

        Returns:
            One past the last offset of it.

        Raises:
            ClientError: nothing is taken, as after ``clear``: what a listener did counts for nothing then
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
        """Put back everything that was taken."""
        self.make_again(list(self._taken.values()))

    def make_again(self, messages: Sequence[MessageExt]) -> None:
        """Put these messages back, taken or not; they replace what is cached at their offsets."""
        for message in messages:
            self._taken.pop(message.queue_offset, None)
            self._messages[message.queue_offset] = message
        self._offsets = deque(sorted(self._messages))

    def clear(self) -> None:
        super().clear()
        self._taken.clear()
