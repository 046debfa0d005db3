"""The queues that a lite pull consumer pulls, and the batches that wait for ``poll``.

Source: RocketMQ 4.9.4 ``AssignedMessageQueue``, ``consumeRequestCache`` of ``DefaultLitePullConsumerImpl``.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

from rewindmq.client.consume.offset_store import NO_OFFSET
from rewindmq.client.consume.process_queue import ProcessQueue
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.remoting.runtime import Runtime


@dataclass(slots=True)
class AssignedQueue:
    """One queue that a lite pull consumer pulls.

    Attributes:
        pull_offset: the offset of the next pull; -1 until the group's offset is known.
        consume_offset: the offset that a commit stores; -1 until the application polled or sought.
        seek_offset: the offset of a ``seek`` that no pull has used yet; else -1.
    """

    queue: MessageQueue
    process_queue: ProcessQueue
    pull_offset: int = NO_OFFSET
    consume_offset: int = NO_OFFSET
    seek_offset: int = NO_OFFSET
    is_paused: bool = False


class ConsumeRequest(NamedTuple):
    """A batch of messages for ``poll``, from one pull."""

    assigned: AssignedQueue
    messages: list[MessageExt]


class ConsumeRequests:
    """Batches in order of arrival, and the callers that wait for the next batch."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._requests: deque[ConsumeRequest] = deque()
        self._waiters: set[asyncio.Future[None]] = set()

    def __len__(self) -> int:
        return len(self._requests)

    def put(self, request: ConsumeRequest) -> None:
        self._requests.append(request)
        self.wake()

    def take(self) -> ConsumeRequest | None:
        """Remove and return the oldest batch, None if there is none."""
        return self._requests.popleft() if self._requests else None

    def forget(self, assigned: AssignedQueue) -> None:
        """Discard the batches of one queue."""
        self._requests = deque(request for request in self._requests if request.assigned is not assigned)

    def wake(self) -> None:
        """Make all waiting callers look again."""
        for waiter in self._waiters:
            _finish(waiter)

    async def wait(self, seconds: float) -> None:
        """Wait for ``wake``, at most ``seconds``."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        timer = self._runtime.timers.call_later(seconds, _finish, waiter)
        try:
            await waiter
        finally:
            timer.cancel()
            self._waiters.discard(waiter)


def _finish(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
