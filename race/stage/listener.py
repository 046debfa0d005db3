"""The listener of a race's consumer, which behaves as its plan says."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from rewindmq.client.push.listener import (
    ConsumeConcurrentlyStatus,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
)
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.remoting.runtime import Timers
from rewindmq.race.stage.stage import ListenerPlan


class PlannedListener:
    """A listener that takes the planned time for each message and always succeeds."""

    def __init__(self, plan: ListenerPlan, timers: Timers) -> None:
        self._plan = plan
        self._timers = timers
        self._seen: set[tuple[str, int, int]] = set()
        self._releases: dict[int, asyncio.Event] = {}

    async def __call__(self, messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        for message in messages:
            await self._take_time(message)
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    async def consume_in_order(
        self, messages: Sequence[MessageExt], context: ConsumeOrderlyContext
    ) -> ConsumeOrderlyStatus:
        """Consume as an orderly listener."""
        await self(messages)
        return ConsumeOrderlyStatus.SUCCESS

    def release(self, offset: int) -> None:
        """Let the call that blocks on this queue offset return; without one, the next does not block."""
        self._release_of(offset).set()

    async def _take_time(self, message: MessageExt) -> None:
        plan, offset = self._plan, message.queue_offset
        place = (message.broker_name, message.queue_id, offset)
        seconds = plan.seconds
        if place not in self._seen:
            self._seen.add(place)
            if offset in plan.blocked:
                await self._release_of(offset).wait()
                return
            seconds = plan.slow.get(offset, seconds)
        elif plan.again is not None:
            seconds = plan.again
        if seconds > 0:
            await self._timers.sleep(seconds)

    def _release_of(self, offset: int) -> asyncio.Event:
        return self._releases.setdefault(offset, asyncio.Event())
