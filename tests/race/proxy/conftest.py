"""The fixture that plays a scene in both venues."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from rewindmq.race.sim import World
from tests.race.proxy.venue import Play, Scene, Venue


@pytest.fixture(params=["world", "sockets"])
def play(request: pytest.FixtureRequest) -> Play:
    """Plays a scene in the simulated world and on real sockets."""
    world = World(seed=1) if request.param == "world" else None

    def run(scene: Scene) -> None:
        async def main() -> None:
            async with AsyncExitStack() as exits:
                await scene(Venue(world, exits))

        if world is None:
            asyncio.run(main())
        else:
            world.run(main())

    return run
