"""The listener of an explored consumer: some calls return when the schedule says so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from rewindmq.client.push.listener import ConsumeConcurrentlyStatus
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.remoting.runtime import Timers
from rewindmq.race.explore.schedule.step import Action

Place = tuple[int, int]


class ExploredListener:
    """Always succeeds; a message that the group is given again takes ``again_seconds``.

    Args:
        host: where it runs.
        name: of its process.
        seen: the messages (queue id, offset) given to any consumer so far; shared by them.
        blocked: messages whose first call is in the hands of the schedule.
        offer: makes the return of such a call a choice.

    Attributes:
        running: calls that have not returned.
        blocked_count: those among them that are in the hands of the schedule.
    """

    def __init__(
        self,
        host: str,
        name: str,
        timers: Timers,
        *,
        seen: set[Place],
        blocked: frozenset[Place],
        again_seconds: float,
        offer: Callable[[Action], None],
    ) -> None:
        self._host = host
        self._name = name
        self._timers = timers
        self._seen = seen
        self._blocked = blocked
        self._again_seconds = again_seconds
        self._offer = offer
        self.running = 0
        self.blocked_count = 0

    async def __call__(self, messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        self.running += 1
        try:
            for message in messages:
                await self._consume((message.queue_id, message.queue_offset))
        finally:
            self.running -= 1
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    async def _consume(self, place: Place) -> None:
        if place in self._seen:
            await self._timers.sleep(self._again_seconds)
            return
        self._seen.add(place)
        if place in self._blocked:
            released = asyncio.Event()
            queue_id, offset = place
            name = f"listener of {self._name} returns, queue={queue_id} offset={offset}"
            self._offer(Action(name, self._host, released.set, is_forced=True))
            self.blocked_count += 1
            await released.wait()
            self.blocked_count -= 1
