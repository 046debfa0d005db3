"""What a lite pull consumer holds: its queues, and the batches that wait for ``poll``.

Source: RocketMQ 4.9.4 ``AssignedMessageQueue``, ``consumeRequestCache`` of ``DefaultLitePullConsumerImpl``.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

from rewindmq.client.consume.process_queue import ProcessQueue
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.remoting.runtime import Runtime

NOWHERE = -1


@dataclass(slots=True)
class AssignedQueue:
    """One queue that is pulled for the application.

    Attributes:
        pull_offset: what the next pull asks for; -1: where the group stands.
        consume_offset: what a commit stores; -1 until something was polled or sought.
        seek_offset: where the application wants to go on, until the next pull heeds it; else -1.
    """

    queue: MessageQueue
    process_queue: ProcessQueue
    pull_offset: int = NOWHERE
    consume_offset: int = NOWHERE
    seek_offset: int = NOWHERE
    is_paused: bool = False


class ConsumeRequest(NamedTuple):
    """A batch for ``poll``, as it was pulled."""

    assigned: AssignedQueue
    messages: list[MessageExt]


class ConsumeRequests:
    """Batches in the order they came, and whoever waits for the next one."""

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
        """The oldest batch, None when there is none."""
        return self._requests.popleft() if self._requests else None

    def forget(self, assigned: AssignedQueue) -> None:
        """Throw away the batches of one queue."""
        self._requests = deque(request for request in self._requests if request.assigned is not assigned)

    def wake(self) -> None:
        """Have everybody who waits look again."""
        for waiter in self._waiters:
            _finish(waiter)

    async def wait(self, seconds: float) -> None:
        """Until ``wake``, ``seconds`` at most."""
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
