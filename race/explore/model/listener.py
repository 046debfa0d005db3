"""Listener of an explored consumer; the schedule decides when some of its calls return."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from rewindmq.client.push.listener import ConsumeConcurrentlyStatus
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.remoting.runtime import Timers
from rewindmq.race.explore.schedule.step import Action

Place = tuple[int, int]


class ExploredListener:
    """Listener that always succeeds; a redelivered message takes ``again_seconds``.

    Args:
        host: the host that the listener runs on.
        name: name of the process.
        seen: messages (queue id, offset) that any consumer has received; all listeners share the set.
        blocked: messages whose first call returns when the schedule says.
        offer: adds the return of a blocked call to the choices.

    Attributes:
        running: calls that have not returned.
        blocked_count: running calls that return when the schedule says.
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
