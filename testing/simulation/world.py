"""SimulatedWorld: the world of one run of a simulated test."""

from __future__ import annotations

import random
from collections.abc import Callable

from rewindmq.protocol.remoting.runtime import Workers
from rewindmq.race.sim.disk import SimDisk
from rewindmq.race.sim.loop import VirtualLoop
from rewindmq.race.sim.network import Fabric
from rewindmq.race.sim.world import InlineWorkers, World
from rewindmq.testing.simulation.fabric import ChosenFabric
from rewindmq.testing.simulation.loop import GuardedLoop
from rewindmq.testing.simulation.schedule import SimulatedSchedule


class SimulatedWorld(World):
    """A world whose latencies, and the begin of work in threads, follow a schedule.

    Args:
        limit: virtual seconds after which a test that has not ended fails.
        power_failures: a kill loses what the host's disk has not synced.

    Attributes:
        names: the name of each host in descriptions of the schedule.
    """

    def __init__(self, seed: int, schedule: SimulatedSchedule, *, limit: float, power_failures: bool) -> None:
        self._schedule = schedule
        self._limit = limit
        self.power_failures = power_failures
        self.names: dict[str, str] = {}
        super().__init__(seed)

    def name_of(self, host: str) -> str:
        """Return the name of a host."""
        return self.names.get(host, host)

    def kill(self, host: str) -> None:
        super().kill(host)
        if self.power_failures:
            self.disk(host).lose_power()

    def _make_loop(self) -> VirtualLoop:
        self._loop = GuardedLoop(self._limit)
        return self._loop

    def _new_fabric(self, rng: random.Random, latency: tuple[float, float]) -> Fabric:
        return ChosenFabric(self._schedule, self.name_of, lambda: self.now)

    def _new_workers(self, host: str) -> Workers:
        return _ChosenWorkers(self, self._schedule, host)

    def _note(self) -> str:
        return f"after {self.now:.3f} virtual seconds"

    def _new_disk(self, now_ms: Callable[[], int]) -> SimDisk:
        return SimDisk(now_ms, remembers_synced=self.power_failures)


class _ChosenWorkers(InlineWorkers):
    """Workers of one host: the schedule chooses how late a function begins, as if all threads were busy."""

    def __init__(self, world: SimulatedWorld, schedule: SimulatedSchedule, host: str) -> None:
        self._world = world
        self._schedule = schedule
        self._host = host

    def _late(self, function: Callable[..., object]) -> float:
        place = f"threads of {self._host}"
        return self._schedule.delay(place, self._world.now, lambda: self._describe(function))

    def _describe(self, function: Callable[..., object]) -> str:
        name = getattr(function, "__qualname__", type(function).__qualname__)
        return f"a thread of {self._world.name_of(self._host)} began {name} late by"
