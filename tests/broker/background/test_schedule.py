"""``Schedule``: periodic tasks, also those that do their work in slices."""

from __future__ import annotations

import logging
from collections.abc import Generator

import pytest

from rewindmq.broker.background.schedule import Schedule
from rewindmq.race.sim import World


def test_a_task_that_returns_a_generator_runs_a_slice_in_each_turn_of_the_loop() -> None:
    world = World(0)
    seen: list[str] = []

    def work() -> Generator[None]:
        for number in range(3):
            seen.append(f"slice {number}")
            yield

    async def main() -> None:
        runtime = world.runtime("10.0.0.1")
        schedule = Schedule(runtime.timers)
        schedule.every(1, 10, work)
        runtime.timers.call_later(1, seen.append, "another timer")
        await world.sleep(5)
        assert seen == ["slice 0", "another timer", "slice 1", "slice 2"]
        await world.sleep(10)
        assert seen.count("slice 2") == 2
        schedule.close()

    world.run(main())


def test_a_task_whose_slices_last_longer_than_its_period_is_not_called_again() -> None:
    world = World(0)
    calls: list[Generator[None]] = []

    def work() -> Generator[None]:
        while True:
            yield

    def task() -> Generator[None]:
        calls.append(work())
        return calls[-1]

    async def main() -> None:
        runtime = world.runtime("10.0.0.1")
        schedule = Schedule(runtime.timers)
        schedule.every(1, 0, task)
        await world.sleep(1)
        await world.sleep(0)
        assert len(calls) == 1
        schedule.close()
        # Without the slices, the world comes to rest.
        await world.sleep(100)
        assert len(calls) == 1

    world.run(main())


def test_a_slice_that_fails_is_logged_and_the_task_is_called_again(caplog: pytest.LogCaptureFixture) -> None:
    world = World(0)
    calls: list[int] = []

    def work() -> Generator[None]:
        calls.append(1)
        yield
        raise ValueError("no more")

    async def main() -> None:
        schedule = Schedule(world.runtime("10.0.0.1").timers)
        schedule.every(1, 10, work)
        await world.sleep(15)
        schedule.close()

    with caplog.at_level(logging.ERROR):
        world.run(main())
    assert len(calls) == 2
    assert caplog.text.count("ValueError: no more") == 2


def test_every_task_runs_at_once_when_the_wall_clock_was_moved() -> None:
    world = World(0)
    seen: list[str] = []

    async def main() -> None:
        schedule = Schedule(world.runtime("10.0.0.1").timers)
        schedule.every(100, 100, lambda: seen.append("task"))
        schedule.when_clock_changes(lambda moved_ms: seen.append(f"look {moved_ms}"))
        await world.sleep(50)
        schedule.clock_changed(7)
        await world.sleep(1)
        assert seen == ["look 7", "task"]
        await world.sleep(98)
        assert seen == ["look 7", "task"]
        await world.sleep(2)
        assert seen == ["look 7", "task", "task"]
        schedule.close()

    world.run(main())
