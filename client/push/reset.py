"""What a consumer does when a broker tells it to reset its offsets, code 220 (docs/spec/reset.md D.5).

RUNNING → SUSPENDED → (10 s) → APPLYING → RUNNING, as RocketMQ's ``MQClientInstance#resetOffset``. Its holes
are kept on purpose (docs/spec/races.md E.2): pulls in flight are neither cancelled nor waited for, the apply
pass goes over the queues owned *then* and does not mark them dropped, and nobody checks that the commits
arrived.
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

# Time for running listeners to come to an end; their results are discarded either way.
RESET_WAIT_SECONDS: Final = 10.0

_log = logging.getLogger(__name__)


class ResetState(StrEnum):
    """Where a consumer stands in a reset."""

    RUNNING = "running"
    SUSPENDED = "suspended"
    APPLYING = "applying"


class ResettableConsumer(Protocol):
    """What a reset needs of a consumer; push consumers only."""

    reset_state: ResetState

    @property
    def process_queues(self) -> dict[MessageQueue, ProcessQueue]:
        """The queues owned now."""

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
        """Pull again, and rebalance."""

    def update_offset(self, queue: MessageQueue, offset: int) -> None:
        """Set the offset in memory, whatever it was."""

    def drop_queue(self, queue: MessageQueue, process_queue: ProcessQueue) -> None:
        """End its pulls, and have the results of running listeners discarded."""

    async def give_up_queue(self, queue: MessageQueue) -> None:
        """Commit the offset in memory and forget it."""


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

    def _concerned(self) -> list[MessageQueue]:
        """The queues owned at this moment that the reset names."""
        return [
            queue
            for queue in self.consumer.process_queues
            if queue.topic == self._topic and queue in self._targets
        ]

    async def suspend_and_drop(self) -> None:
        consumer = self.consumer
        consumer.suspend()
        self._emit(Point.SUSPENDED)
        for queue in self._concerned():
            process_queue = consumer.process_queues[queue]
            consumer.drop_queue(queue, process_queue)
            if consumer.profile.clears_dropped_queue:
                process_queue.clear()

    async def wait(self) -> None:
        await self.consumer.runtime.timers.sleep(RESET_WAIT_SECONDS)
        self._emit(Point.WAIT_OVER)

    async def apply(self) -> None:
        for queue in self._concerned():
            try:
                await self._apply_to(queue, self._targets[queue])
            except RewindMQError as error:
                # The queue stays in the table, dropped, until the 120 s without a pull replace it.
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
        """Have the queues taken over again by the next rebalance, with what the broker has stored."""
        owned = self.consumer.process_queues
        for queue in self._concerned():
            if owned[queue].dropped:
                del owned[queue]

    async def resume(self) -> None:
        self._emit(Point.RESUMED)
        await self.consumer.resume()


class _Step(NamedTuple):
    state: ResetState
    action: Callable[[_Reset], Awaitable[None]]


# Entered in order. Whatever happens to one of them, the last one is carried out.
_STEPS: Final = (
    _Step(ResetState.SUSPENDED, _Reset.suspend_and_drop),
    _Step(ResetState.SUSPENDED, _Reset.wait),
    _Step(ResetState.APPLYING, _Reset.apply),
)
_LAST: Final = _Step(ResetState.RUNNING, _Reset.resume)


async def reset_consumer(
    consumer: ResettableConsumer, topic: str, targets: Mapping[MessageQueue, int]
) -> None:
    """Carry out one reset. A consumer that was suspended before comes out running.

    Args:
        targets: the offset each queue of ``topic`` is to be consumed from; queues that are not owned and
            those of other topics are ignored.
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
