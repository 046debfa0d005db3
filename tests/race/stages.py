"""Plays a few lines of a scenario on each kind of stage."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.process.runner import loop_factory
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.history import History
from rewindmq.race.proxy.pattern import Form, FramePattern
from rewindmq.race.sim import World
from rewindmq.race.stage.processes import ProcessStage
from rewindmq.race.stage.simulated import SimulatedStage
from rewindmq.race.stage.stage import TOPIC, Stage

Play = Callable[[Stage], Awaitable[None]]
# A broker drops a client that was silent for 120 s. At a time scale of 0.01, a machine that stalls for a
# second would be enough.
TIME_SCALE = 0.1


class Player(Protocol):
    """Plays a scenario on one kind of stage; returns the history."""

    def __call__(
        self, play: Play, *, profile: Profile = Profile.V49, mode: ResetMode = ResetMode.CLASSIC
    ) -> History: ...


def simulate(
    play: Play, *, profile: Profile = Profile.V49, mode: ResetMode = ResetMode.CLASSIC, seed: int = 1
) -> History:
    """Play under virtual time."""
    world = World(seed)

    async def main() -> History:
        async with SimulatedStage(world, profile, mode) as stage:
            await play(stage)
            return stage.history

    return world.run(main())


def act(
    play: Play,
    *,
    profile: Profile = Profile.V49,
    mode: ResetMode = ResetMode.CLASSIC,
    is_held: bool = True,
    time_scale: float = TIME_SCALE,
) -> History:
    """Play with real processes."""

    async def main() -> History:
        async with ProcessStage(profile, mode, time_scale=time_scale, is_held=is_held) as stage:
            await play(stage)
            return stage.history

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(main())


def held_answer(offset: int) -> FramePattern:
    """Match the response "no new message" to a pull at an offset."""
    fields = {"topic": TOPIC, "queueId": 0, "queueOffset": offset}
    return FramePattern(RequestCode.PULL_MESSAGE, form=Form.RESPONSE, response_code=19, fields=fields)
