"""``LockFreeTimes``: one timer for the ends of all blocked queues."""

from __future__ import annotations

from rewindmq.broker.pop.orderly.lock_free_times import LockFreeTimes
from rewindmq.broker.pop.orderly.order_info_table import OrderKey
from rewindmq.race.sim import World
from rewindmq.race.sim.world import EPOCH_MS


def key(queue_id: int) -> OrderKey:
    return "T@G", queue_id


def test_each_queue_is_free_at_its_latest_time() -> None:
    world = World(0)
    free: list[tuple[float, int]] = []

    async def main() -> None:
        runtime = world.runtime("10.0.0.1")
        times = LockFreeTimes(
            runtime.clock, runtime.timers, lambda key: free.append((round(world.now, 3), key[1]))
        )
        times.put(key(0), EPOCH_MS + 5_000)
        times.put(key(1), EPOCH_MS + 3_000)
        times.put(key(2), EPOCH_MS + 4_000)
        times.put(key(3), EPOCH_MS + 2_000)
        times.put(key(0), EPOCH_MS + 1_000)
        times.put(key(1), EPOCH_MS + 6_000)
        times.put(key(3), None)
        await world.sleep(10)
        assert free == [(1.0, 0), (4.0, 2), (6.0, 1)]
        times.put(key(0), EPOCH_MS)
        await world.sleep(0.001)
        assert free[3:] == [(10.0, 0)]
        assert len(times) == 0

    world.run(main())


def test_many_queues_that_are_free_at_once_are_notified_in_several_turns() -> None:
    world = World(0)
    free: list[OrderKey] = []
    others: list[int] = []

    async def main() -> None:
        runtime = world.runtime("10.0.0.1")
        times = LockFreeTimes(runtime.clock, runtime.timers, free.append)
        times.load({key(number): EPOCH_MS + 1_000 for number in range(250)})
        runtime.timers.call_later(1.0, lambda: others.append(len(free)))
        await world.sleep(2)
        assert (len(free), others) == (250, [100])

    world.run(main())


def test_replaced_times_take_no_room_and_closing_ends_everything() -> None:
    world = World(0)
    free: list[OrderKey] = []

    async def main() -> None:
        runtime = world.runtime("10.0.0.1")
        times = LockFreeTimes(runtime.clock, runtime.timers, free.append)
        for number in range(10_000):
            times.put(key(0), EPOCH_MS + 1_000 + number)
        assert len(times._heap) < 2_000
        times.close()
        await world.sleep(100)
        assert free == []

    world.run(main())


def test_a_wall_clock_that_is_set_ahead_frees_the_queues_that_are_due() -> None:
    world = World(0)
    free: list[OrderKey] = []

    async def main() -> None:
        runtime = world.runtime("10.0.0.1")
        times = LockFreeTimes(runtime.clock, runtime.timers, free.append)
        times.put(key(0), EPOCH_MS + 60_000)
        world.wall_ahead_ms += 60_000
        times.look()
        await world.sleep(0.001)
        assert free == [key(0)]
        # Set back before the time: the timer looks again.
        times.put(key(1), EPOCH_MS + 120_000)
        await world.sleep(50)
        world.wall_ahead_ms -= 60_000
        await world.sleep(60)
        assert free == [key(0)]
        await world.sleep(10)
        assert free == [key(0), key(1)]

    world.run(main())
