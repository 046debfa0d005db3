"""Props of tests with orderly consumers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from rewindmq import ConsumeOrderlyContext, ConsumeOrderlyStatus, MessageExt, PushConsumer
from rewindmq.client.push.listener import MessageListenerOrderly
from rewindmq.protocol.profile import Profile
from tests.support.stage import SimStage

SUCCESS = ConsumeOrderlyStatus.SUCCESS
SUSPEND = ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
RELEASES = [Profile.V42, Profile.V49, Profile.V53]


Verdict = ConsumeOrderlyStatus | None | Callable[[ConsumeOrderlyContext], ConsumeOrderlyStatus | None]


class InOrder:
    """An orderly listener that records its calls; ``hold`` makes the call with one offset wait.

    Attributes:
        calls: second, queue id and offset of every delivery.
        verdicts: offset to the result that is returned once instead of SUCCESS.
    """

    def __init__(self, stage: SimStage, seconds: float = 0.0) -> None:
        self._stage = stage
        self.seconds = seconds
        self.calls: list[tuple[float, int, int]] = []
        self.verdicts: dict[int, Verdict] = {}
        self._held: dict[int, asyncio.Event] = {}

    def hold(self, offset: int) -> asyncio.Event:
        self._held[offset] = asyncio.Event()
        return self._held[offset]

    def offsets(self, queue_id: int = 0) -> list[int]:
        return [offset for _, queue, offset in self.calls if queue == queue_id]

    async def __call__(
        self, messages: Sequence[MessageExt], context: ConsumeOrderlyContext
    ) -> ConsumeOrderlyStatus | None:
        now = round(self._stage.world.now, 1)
        self.calls += [(now, message.queue_id, message.queue_offset) for message in messages]
        first = messages[0].queue_offset
        held = self._held.pop(first, None)
        if held is not None:
            await held.wait()
        elif self.seconds:
            await self._stage.world.sleep(self.seconds)
        verdict = self.verdicts.pop(first, SUCCESS)
        return verdict(context) if callable(verdict) else verdict


async def consume(
    stage: SimStage,
    listener: MessageListenerOrderly,
    *,
    name: str = "c1",
    **options: Any,
) -> PushConsumer:
    """Return a started orderly consumer."""
    return await stage.consume(orderly=listener, name=name, **options)
