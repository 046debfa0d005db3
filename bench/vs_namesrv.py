"""Route look-ups at RocketMQ's and at RewindMQ's name server in turn, with the same raw client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final

from bench.cluster_start import resident_megabytes
from bench.compared_clusters import IDLE_HEAP, ROCKETMQ, rewindmq_cluster, rocketmq_cluster
from bench.comparison import LoadComparison
from bench.route_lookups import Fleet, looked_up, registered
from rewindmq.protocol.remoting.process.runner import raise_descriptor_limit

BROKERS: Final = 100
TOPICS: Final = 100_000
# Brokers of each topic.
COPIES: Final = (1, 10, 100)
# Uncounted rounds, in which Java compiles its code.
_WARM_UPS: Final = 5
_BROKERS_LOOKED_UP: Final = 40_000
# As in RocketMQ's runserver.sh. 10,000,000 pairs of a topic and a broker do not fit into the 256 MB of the
# other rows.
_HEAP: Final = ("-Xms4g", "-Xmx4g")


def compare_lookups(rounds: int, scale: float, say: Callable[[str], None]) -> list[LoadComparison]:
    """Measure look-ups of topics at 1, 10 and 100 of 100 brokers, and the memory of these tables."""
    raise_descriptor_limit()
    rows = []
    for copies in COPIES:
        fleet = Fleet(BROKERS, max(1_000, int(TOPICS * scale)), copies)
        what = f"{fleet.topics:,} topics at {copies} of {BROKERS} brokers"
        lookups = LoadComparison(f"route look-ups, {what}", "/s", 1)
        lookups.note = "a raw client: one connection, 64 in flight, JSON"
        memory = LoadComparison(f"memory of the name server, {what}", "MB", None, higher_is_better=False)
        memory.note = f"resident, after the look-ups; RocketMQ's heap is {' '.join(_HEAP)}, as in its script"
        with ExitStack() as stack:
            clusters = [
                stack.enter_context(rocketmq_cluster(IDLE_HEAP, _HEAP)),
                stack.enter_context(rewindmq_cluster()),
            ]
            for cluster in clusters:
                say(f"registering {what} at {cluster.name}")
                stack.enter_context(registered(cluster.namesrv, fleet))
            for number in range(-_WARM_UPS, rounds):
                say(
                    f"{lookups.name}, " + (f"round {number + 1} of {rounds}" if number >= 0 else "warming up")
                )
                for cluster in clusters if number % 2 else reversed(clusters):
                    total = max(1_000, int(_BROKERS_LOOKED_UP * scale) // copies)
                    rate, cpu = asyncio.run(looked_up(cluster.namesrv, cluster.namesrv_pid, fleet, total))
                    if number >= 0:
                        _add(lookups, cluster.name, rate, cpu)
                        _add(memory, cluster.name, resident_megabytes(cluster.namesrv_pid))
        rows += [lookups, memory]
    return rows


def _add(row: LoadComparison, name: str, sample: float, *cpu: float) -> None:
    side = row.rocketmq if name == ROCKETMQ else row.rewindmq
    side.samples.append(sample)
    side.cpu += cpu
