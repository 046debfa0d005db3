"""Bodies of simulated tests, and a simulation of them with few options."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from rewindmq import MessageExt
from rewindmq.testing import ClusterOptions, Rmq
from rewindmq.testing.simulation.run import Body, Simulation, SimulationSettings


def simulation(body: Body, brokers: int = 1, **settings: Any) -> Simulation:
    """Return the simulation of a body; ``settings`` are those of ``simulated``."""
    values = {"latency": 0.3, "kills": 0, "power_failures": False, "limit": 600.0, **settings}
    return Simulation(body, SimulationSettings(**values), ClusterOptions(brokers=brokers))


async def send_and_consume(rmq: Rmq) -> None:
    """A correct test of an application: every message arrives."""
    orders = await rmq.topic("orders")
    await orders.send_many([str(number) for number in range(10)])
    async with rmq.push("billing", orders) as billing:
        await billing.caught_up()
        assert sorted(message.text for message in billing.received) == [str(n) for n in range(10)]


async def assume_an_order_of_topics(rmq: Rmq) -> None:
    """A racy test: the service believes that a customer arrives before an order sent 50 ms later."""
    customers, orders = await rmq.topic("customers", queues=1), await rmq.topic("orders", queues=1)
    known: set[bytes] = set()
    unknown: list[bytes] = []

    async def on_customer(messages: Sequence[MessageExt]) -> None:
        known.update(message.body for message in messages)

    async def on_order(messages: Sequence[MessageExt]) -> None:
        unknown.extend(message.body for message in messages if message.body not in known)

    async with rmq.push("crm", customers, on_customer), rmq.push("shop", orders, on_order) as shop:
        for number in range(5):
            await customers.send(f"{number}")
            await asyncio.sleep(0.05)
            await orders.send(f"{number}")
        await shop.received_count(5)
    assert not unknown
