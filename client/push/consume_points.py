"""Helpers of both consume services: yielding to the event loop, and reporting to a probe."""

from __future__ import annotations

import types
from collections.abc import Generator, Sequence
from typing import Any, Final, Protocol

from rewindmq.client.consume.process_queue import ProcessQueue
from rewindmq.client.push.host import PushHost
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.points import Point

# Messages that a task consumes before it yields to the event loop.
MESSAGES_PER_TURN: Final = 256


class ConsumedBatch(Protocol):
    """Messages of one listener call."""

    @property
    def messages(self) -> Sequence[MessageExt]: ...

    @property
    def queue(self) -> MessageQueue: ...

    @property
    def process_queue(self) -> ProcessQueue: ...


@types.coroutine
def next_turn() -> Generator[None, None, None]:
    """Let the event loop run everything else that is ready."""
    yield


class ConsumePoints:
    """Reports batches to the runtime's probe, if there is one."""

    def __init__(self, consumer: PushHost) -> None:
        self._consumer = consumer
        self._probe = consumer.runtime.probe

    def emit(self, point: Point, batch: ConsumedBatch, offset: int = -1, status: str = "") -> None:
        """Report one batch; see ``details``."""
        if self._probe is None:
            return
        details = self.details(batch, offset)
        if status:
            details["status"] = status
        self._probe(point, details)

    def details(self, batch: ConsumedBatch, offset: int) -> dict[str, Any]:
        """Return the details of a batch. Without a new offset, the batch's first offset is reported."""
        offsets = [message.queue_offset for message in batch.messages]
        details = self._consumer.offset_store.details(
            batch.queue, offset if offset >= 0 else offsets[0], batch.process_queue
        )
        details["offsets"] = offsets
        details["count"] = len(offsets)
        return details
