"""Props of tests about lost resets: moments before a response, slow listeners, stalls."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from rewindmq import ConsumeConcurrentlyStatus, MessageExt
from rewindmq.protocol.points import Point
from rewindmq.race.sim import World
from tests.support.clients import OK
from tests.support.stage import SimStage


class SlowListener:
    """Takes ``seconds`` for each message; ``hold`` makes the next call with one offset wait for an event.

    Attributes:
        offsets: of the messages it was called with, in that order.
    """

    def __init__(self, world: World, seconds: float = 0.0) -> None:
        self._world = world
        self.seconds = seconds
        self.offsets: list[int] = []
        self._held: dict[int, asyncio.Event] = {}

    def hold(self, offset: int) -> asyncio.Event:
        self._held[offset] = asyncio.Event()
        return self._held[offset]

    async def __call__(self, messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        for message in messages:
            self.offsets.append(message.queue_offset)
            held = self._held.pop(message.queue_offset, None)
            await (self._world.sleep(self.seconds) if held is None else held.wait())
        return OK


class Stall:
    """Stops the process once, at the first point that matches after ``arm``, until ``release``."""

    def __init__(self) -> None:
        self._point: Point | None = None
        self._wanted: dict[str, Any] = {}
        self._released = asyncio.Event()
        self.is_caught = False

    def arm(self, point: Point, **wanted: Any) -> None:
        self._point, self._wanted = point, wanted

    def release(self) -> None:
        self._released.set()

    async def __call__(self, point: Point, details: dict[str, Any]) -> None:
        if point is self._point and self._wanted.items() <= details.items():
            self._point = None
            self.is_caught = True
            await self._released.wait()


async def next_idle_pull(stage: SimStage) -> float:
    """Wait for the next pull of an idle queue; from then the broker checks suspended pulls every 5 s."""
    sent = len(_pulls(stage))
    await stage.until(lambda: len(_pulls(stage)) > sent)
    return _pulls(stage)[-1]


async def before_the_answer(stage: SimStage, seconds: float) -> None:
    """Wait until ``seconds`` before the broker answers the suspended pull of an idle queue."""
    sent = len(_pulls(stage))
    await stage.until(lambda: len(_pulls(stage)) >= sent + 2)
    first, second = _pulls(stage)[-2:]
    await stage.world.sleep(2 * second - first - seconds - stage.world.now)


def _pulls(stage: SimStage) -> list[float]:
    return [
        when
        for when, point, details in stage.events.heard
        if point is Point.PULL_SENT and details["topic"] == "T"
    ]


async def reset(stage: SimStage, timestamp: int = 0) -> float:
    """Reset the group in the topic; return the time at which the reset began."""
    admin = await stage.admin()
    start = stage.world.now
    await admin.resets.reset("T", "G", timestamp)
    return start


async def since(stage: SimStage, start: float, seconds: float) -> None:
    """Sleep until ``seconds`` after ``start``."""
    await stage.world.sleep(start + seconds - stage.world.now)


def live_chains(stage: SimStage, after: float, **wanted: Any) -> set[int]:
    """Return the numbers of the pull chains that sent a pull after a time."""
    return {
        details["chain"]
        for when, point, details in stage.events.heard
        if point is Point.PULL_SENT and when > after and wanted.items() <= details.items()
    }


def check_stored_follows_deliveries(stage: SimStage, start: float) -> None:
    """Check that each offset stored after a reset was delivered since the reset.

    Deliveries before the response to INVOKE_BROKER_TO_RESET_OFFSET (222) do not count. Each reset starts the
    deliveries of its queues again.
    """
    ends: dict[int, int] = {}
    chains: dict[int, set[object]] = {}
    for when, point, details in stage.events.heard:
        if when < start or details.get("topic") != "T":
            continue
        queue = details.get("queue_id", -1)
        if point is Point.OFFSET_RESET:
            ends[queue] = details["offset"]
            chains[queue] = set()
        elif point in (Point.QUEUE_ADDED, Point.QUEUE_RESTARTED) and queue in ends:
            chains[queue].add((details["client_id"], details["chain"]))
        elif point is Point.LISTENER_CALLED and queue in ends:
            if (details["client_id"], details["chain"]) in chains[queue]:
                ends[queue] = max(ends[queue], max(details["offsets"]) + 1)
        elif point is Point.COMMIT_RECEIVED and queue in ends:
            assert details["offset"] <= ends[queue], (when - start, details)
    assert ends, "no reset"
