"""Waiting in virtual time for what no event tells of."""

from __future__ import annotations

from collections.abc import Callable

from rewindmq.race.sim import World


async def until(
    world: World, condition: Callable[[], bool], seconds: float = 60.0, *, step: float = 0.01
) -> None:
    """Let virtual time pass, ``step`` seconds at once, until something holds; fails after ``seconds``."""
    deadline = world.now + seconds
    while not condition():
        assert world.now < deadline, "it never came to hold"
        await world.sleep(step)
