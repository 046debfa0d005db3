"""``until`` checks at the same moments as a loop that sleeps in steps, and only after something happened."""

from __future__ import annotations

import pytest

from rewindmq.race.sim import World
from tests.support.virtual import until


def test_it_ends_at_the_first_step_at_which_the_condition_holds() -> None:
    world = World()
    happened: list[float] = []

    async def main() -> float:
        timers = world.runtime().timers
        timers.call_later(0.995, timers.call_later, 0.01, lambda: happened.append(world.now))
        await until(world, lambda: bool(happened), 100.0)
        return world.now

    assert world.run(main()) == pytest.approx(1.01)
    assert happened == [pytest.approx(1.005)]


def test_it_lets_ready_callbacks_run_before_it_looks() -> None:
    """A callback of the same moment may set the next timer."""
    world = World()
    happened: list[float] = []

    async def main() -> float:
        runtime = world.runtime()
        runtime.timers.call_later(50.0, int)
        runtime.timers.call_later(0.0, runtime.timers.call_later, 0.02, lambda: happened.append(world.now))
        await until(world, lambda: bool(happened), 100.0)
        return world.now

    assert world.run(main()) <= 0.04


def test_it_looks_only_after_something_happened() -> None:
    world = World()
    looks: list[float] = []

    async def main() -> None:
        world.runtime().timers.call_later(1_000.0, int)

        def look() -> bool:
            looks.append(world.now)
            return world.now >= 1_000.0

        await until(world, look, 2_000.0)

    world.run(main())
    assert len(looks) <= 4


def test_it_fails_after_its_timeout() -> None:
    world = World()
    with pytest.raises(AssertionError, match="never came to hold"):
        world.run(until(world, lambda: False, 5.0))
    assert 5.0 <= world.now < 5.02
