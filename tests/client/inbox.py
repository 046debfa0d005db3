"""Inbox: an async listener that records its messages."""

from __future__ import annotations

from collections.abc import Sequence

from rewindmq import ConsumeConcurrentlyStatus, MessageExt
from rewindmq.race.sim import World
from tests.support.clients import OK


class Inbox:
    """The messages that a consumer received, and the virtual second of each."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.messages: list[MessageExt] = []
        self.times: list[float] = []

    async def __call__(self, messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        self.messages.extend(messages)
        self.times.extend([self._world.now] * len(messages))
        return OK

    @property
    def bodies(self) -> list[bytes]:
        return [message.body for message in self.messages]

    def clear(self) -> None:
        self.messages.clear()
        self.times.clear()
