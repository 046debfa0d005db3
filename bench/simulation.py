"""Simulated tests of an application: seeds per second of a small one."""

from __future__ import annotations

import time

from rewindmq.testing import ClusterOptions, Rmq
from rewindmq.testing.simulation.run import Simulation, SimulationSettings

_SETTINGS = SimulationSettings(latency=0.3, kills=0, power_failures=False, limit=600.0)
_MESSAGES = 10


async def _send_and_consume(rmq: Rmq) -> None:
    orders = await rmq.topic("orders")
    await orders.send_many(range(_MESSAGES))
    async with rmq.push("billing", orders) as billing:
        await billing.caught_up()
        assert len(billing.received) == _MESSAGES


def seed_rate(seeds: range) -> float:
    """Return seeds per second of processor time, each with a new cluster of a name server and a broker."""
    simulation = Simulation(_send_and_consume, _SETTINGS, ClusterOptions())
    # Loads the modules.
    simulation.check(range(1))
    started = time.process_time()
    simulation.check(seeds)
    return len(seeds) / (time.process_time() - started)
