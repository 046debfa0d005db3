"""Simulation: any number of processes in one event loop under virtual time."""

from rewindmq.race.sim.disk import SimDisk
from rewindmq.race.sim.host import HostKilledError
from rewindmq.race.sim.loop import DeadlockError
from rewindmq.race.sim.world import World

__all__ = ["DeadlockError", "HostKilledError", "SimDisk", "World"]
