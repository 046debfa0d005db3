"""What the test kit adds to a test: its cluster, its names and clients, and an example's tests."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.cluster_start import cpu_seconds
from rewindmq.cluster.async_cluster import run_in_thread
from rewindmq.testing import ClusterOptions, Rmq
from rewindmq.testing.clusters.cluster_pool import ClusterPool
from rewindmq.testing.clusters.servers import Servers

EXAMPLE: Final = Path(__file__).resolve().parent.parent / "examples" / "order_service"
_EXAMPLE_SECONDS: Final = 600


@dataclass(slots=True)
class KitCost:
    """What something took.

    Attributes:
        wall: seconds.
        cpu: seconds of processor time of all processes that take part.
    """

    wall: float = 0.0
    cpu: float = 0.0


def fixture_ready() -> KitCost:
    """Wait as the first test with ``rmq`` does: for a name server, two brokers, and the test's ``Rmq``."""
    with ClusterPool() as pool:
        return asyncio.run(_fixture_ready(pool))


async def _fixture_ready(pool: ClusterPool) -> KitCost:
    async with contextlib.AsyncExitStack() as ending:
        with _measured() as cost:
            servers = await run_in_thread(lambda: pool.get(ClusterOptions(brokers=2)))
            await ending.enter_async_context(Rmq(servers))
        # The processes run on, so they are not among the children that have ended.
        cost.cpu += _cpu_of(servers)
    return cost


def fresh_names(count: int) -> list[KitCost]:
    """Measure ``count`` times a test's new topic, group with one running consumer, and running producer."""
    with ClusterPool() as pool:
        return asyncio.run(_fresh_names(pool.get(ClusterOptions()), count))


async def _fresh_names(servers: Servers, count: int) -> list[KitCost]:
    costs = []
    # The first test loads modules.
    for _ in range(count + 1):
        async with Rmq(servers) as rmq, contextlib.AsyncExitStack() as ending:
            before = _cpu_of(servers)
            with _measured() as cost:
                orders = await rmq.topic("orders")
                await ending.enter_async_context(rmq.push("billing", orders))
                await ending.enter_async_context(rmq.producer("shop"))
            cost.cpu += _cpu_of(servers) - before
        costs.append(cost)
    return costs[1:]


def example_tests() -> tuple[KitCost, str]:
    """Run the tests of examples/order_service in one process; return their cost, and pytest's last line."""
    environment = {**os.environ, "PYTHONPATH": str(EXAMPLE / "src")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    with _measured() as cost:
        done = subprocess.run(
            command,
            cwd=EXAMPLE,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_EXAMPLE_SECONDS,
        )
    if done.returncode:
        raise SystemExit(f"bench: the example's tests failed:\n{done.stdout}")
    return cost, done.stdout.strip().splitlines()[-1]


@contextlib.contextmanager
def _measured() -> Iterator[KitCost]:
    """Measure a block: its wall time, and the processor time of this process and of children that ended."""
    cost = KitCost()
    wall, cpu = time.perf_counter(), _own_cpu()
    yield cost
    cost.wall = time.perf_counter() - wall
    cost.cpu += _own_cpu() - cpu


def _cpu_of(servers: Servers) -> float:
    return sum(cpu_seconds(process.pid) for process in servers.processes.values())


def _own_cpu() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime
