"""Applies RESET_CONSUMER_CLIENT_OFFSET (220) to a push consumer (docs/spec/reset.md D.5).

The states are RUNNING → SUSPENDED → (10 s) → APPLYING → RUNNING, as in RocketMQ's
``MQClientInstance#resetOffset``. This code keeps RocketMQ's races (docs/spec/races.md E.2):

- It neither cancels pulls in flight nor waits for them.
- The apply pass covers the queues owned at that time, and does not mark them dropped.
- It does not check that the commits arrive.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from rewindmq.client.consume.probe_details import queue_details
from rewindmq.client.consume.process_queue import ProcessQueue
from rewindmq.client.core.profile import ClientProfile
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.points import Point
from rewindmq.protocol.remoting.runtime import Runtime

# Time for running listeners to finish; their results are discarded in any case.
RESET_WAIT_SECONDS: Final = 10.0

_log = logging.getLogger(__name__)


class ResetState(StrEnum):
    """The state of a consumer during a reset."""

    RUNNING = "running"
    SUSPENDED = "suspended"
    APPLYING = "applying"


class ResettableConsumer(Protocol):
    """The part of a push consumer that a reset uses."""

    reset_state: ResetState

    @property
    def process_queues(self) -> dict[MessageQueue, ProcessQueue]:
        """The queues that the consumer owns now."""

    @property
    def group(self) -> str: ...

    @property
    def client_id(self) -> str: ...

    @property
    def runtime(self) -> Runtime: ...

    @property
    def profile(self) -> ClientProfile: ...

    def suspend(self) -> None:
        """Stop pulling and rebalancing."""

    async def resume(self) -> None:
        """Resume pulling, and rebalance."""

    def update_offset(self, queue: MessageQueue, offset: int) -> None:
        """Set the offset in memory, even to a lower value."""

    def drop_queue(self, queue: MessageQueue, process_queue: ProcessQueue) -> None:
        """Stop the queue's pulls, and discard the results of running listeners."""

    async def give_up_queue(self, queue: MessageQueue) -> None:
        """Commit the queue's offset and remove it from memory."""


class _Reset:
    """One reset of one consumer in one topic."""

    def __init__(self, consumer: ResettableConsumer, topic: str, targets: Mapping[MessageQueue, int]) -> None:
        self.consumer = consumer
        self._topic = topic
        self._targets = targets

    def _emit(self, point: Point, **details: object) -> None:
        probe = self.consumer.runtime.probe
        if probe is not None:
            consumer = self.consumer
            probe(
                point,
                {"client_id": consumer.client_id, "group": consumer.group, "topic": self._topic, **details},
            )

    def _owned_targets(self) -> list[MessageQueue]:
        """Return the queues of the reset that the consumer owns now."""
        return [
            queue
            for queue in self.consumer.process_queues
            if queue.topic == self._topic and queue in self._targets
        ]

    async def suspend_and_drop(self) -> None:
        consumer = self.consumer
        consumer.suspend()
        self._emit(Point.SUSPENDED)
        for queue in self._owned_targets():
            process_queue = consumer.process_queues[queue]
            consumer.drop_queue(queue, process_queue)
            if consumer.profile.clears_dropped_queue:
                process_queue.clear()

    async def wait(self) -> None:
        await self.consumer.runtime.timers.sleep(RESET_WAIT_SECONDS)
        self._emit(Point.WAIT_OVER)

    async def apply(self) -> None:
        for queue in self._owned_targets():
            try:
                await self._apply_to(queue, self._targets[queue])
            except RewindMQError as error:
                # The dropped queue stays in the table until a rebalance replaces it 120 s later.
                _log.warning("reset offset failed. group=%s, %s: %s", self.consumer.group, queue, error)

    async def _apply_to(self, queue: MessageQueue, target: int) -> None:
        consumer = self.consumer
        process_queue = consumer.process_queues.get(queue)
        if process_queue is not None and consumer.profile.drops_on_apply:
            consumer.drop_queue(queue, process_queue)
        details = queue_details(consumer.client_id, consumer.group, queue, target, process_queue)
        consumer.update_offset(queue, target)
        self._emit(Point.OFFSET_APPLIED, **details)
        await consumer.give_up_queue(queue)
        consumer.process_queues.pop(queue, None)
        self._emit(Point.QUEUE_REMOVED, **details)

    def forget_dropped(self) -> None:
        """Remove dropped queues, so that the next rebalance assigns them with the stored offset."""
        owned = self.consumer.process_queues
        for queue in self._owned_targets():
            if owned[queue].dropped:
                del owned[queue]

    async def resume(self) -> None:
        self._emit(Point.RESUMED)
        await self.consumer.resume()


class _Step(NamedTuple):
    state: ResetState
    action: Callable[[_Reset], Awaitable[None]]


# The steps run in this order. `_LAST` runs even if a step fails.
_STEPS: Final = (
    _Step(ResetState.SUSPENDED, _Reset.suspend_and_drop),
    _Step(ResetState.SUSPENDED, _Reset.wait),
    _Step(ResetState.APPLYING, _Reset.apply),
)
_LAST: Final = _Step(ResetState.RUNNING, _Reset.resume)


async def reset_consumer(
    consumer: ResettableConsumer, topic: str, targets: Mapping[MessageQueue, int]
) -> None:
    """Carry out one reset. Afterwards the consumer runs, even if it was suspended before.

    Args:
        targets: the new offset of each queue of ``topic``. Queues of other topics, and queues that the
            consumer does not own, are ignored.
    """
    reset = _Reset(consumer, topic, targets)
    try:
        for step in _STEPS:
            consumer.reset_state = step.state
            await step.action(reset)
    except asyncio.CancelledError:
        reset.forget_dropped()
        raise
    finally:
        consumer.reset_state = _LAST.state
        await _LAST.action(reset)
