"""Waiting in virtual time for what no event tells of."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from rewindmq.race.sim import World
from rewindmq.race.sim.loop import VirtualLoop


async def until(
    world: World, condition: Callable[[], bool], seconds: float = 60.0, *, step: float = 0.01
) -> None:
    """Let virtual time pass, ``step`` seconds at once, until something holds; fails after ``seconds``.

    Args:
        condition: changes by what happens in the world only, so the steps at which nothing has happened are
            passed without a look.
    """
    deadline = world.now + seconds
    while not condition():
        assert world.now < deadline, "it never came to hold"
        await _sleep_until(_next_look(world.now, step, deadline))


def _next_look(now: float, step: float, deadline: float) -> float:
    """The first step, from the next one on, that is not before anything may change."""
    change = min(_loop().next_change, deadline)
    moment = now + step
    while moment < change:
        moment += step
    return moment


async def _sleep_until(moment: float) -> None:
    loop = _loop()
    passed: asyncio.Future[None] = loop.create_future()
    timer = loop.call_at(moment, passed.set_result, None)
    try:
        await passed
    finally:
        timer.cancel()


def _loop() -> VirtualLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop
