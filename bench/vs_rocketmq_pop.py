"""POP and ACK at RocketMQ 5's and at RewindMQ's broker in turn, with the same raw client."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final

from bench.cluster_start import cpu_seconds
from bench.compared_clusters import (
    BROKER,
    LOADED_HEAP,
    REWINDMQ,
    ROCKETMQ_5,
    ComparedCluster,
    rewindmq_cluster,
    rocketmq_cluster,
)
from bench.comparison import LoadComparison
from bench.pop_load import PopLoad, consume, fill
from tools.interop.versions import SERVER_5

Say = Callable[[str], None]

_CORES: Final = 2
_MESSAGES: Final = {
    PopLoad("POP + ACK, 4 queues, batches of 32, 4 consumers", 4, 32): 100_000,
    PopLoad("POP + ACK, one at a time, 32 consumers", 32, 1): 20_000,
}
_LEAST: Final = 1_000
_WARM_UPS: Final = 2

ABOUT: Final = (
    f"RocketMQ's name server and broker are {ROCKETMQ_5}, with G1 and the heaps of its other rows and default"
    " keys; RewindMQ: `rewindmq up --profile v53`. Both brokers use ASYNC_FLUSH. The client is a raw one in"
    " Python: 100 B messages, all consumers over one connection; its own processor time bounds the rates."
)


def compare_pop(rounds: int, scale: float, say: Say) -> list[LoadComparison]:
    """Measure every row; the two clusters take turns in each round."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:_CORES])
    rates = {load: LoadComparison(load.name, "msg/s", 1) for load in _MESSAGES}
    costs = {
        load: LoadComparison(f"{load.name}: CPU of the broker", "us/msg", 1 / 0.8, higher_is_better=False)
        for load in _MESSAGES
    }
    with ExitStack() as stack:
        say("starting both clusters")
        clusters = [
            stack.enter_context(rocketmq_cluster(LOADED_HEAP, release=SERVER_5)),
            stack.enter_context(rewindmq_cluster("--profile", "v53")),
        ]
        for cluster in clusters:
            cluster.suspend()
            stack.callback(cluster.resume)
        for number in range(-_WARM_UPS, rounds):
            say(f"POP, round {number + 1} of {rounds}" if number >= 0 else "warming both brokers up")
            for load, messages in _MESSAGES.items():
                total = max(_LEAST, int(messages * scale))
                for cluster in clusters if number % 2 else reversed(clusters):
                    cluster.resume()
                    rate, cost = asyncio.run(_popped(cluster, load, number, total))
                    cluster.suspend()
                    if number >= 0:
                        _add(rates[load], cluster, rate)
                        _add(costs[load], cluster, cost)
    return [row for load in _MESSAGES for row in (rates[load], costs[load])]


async def _popped(cluster: ComparedCluster, load: PopLoad, number: int, total: int) -> tuple[float, float]:
    """Return messages per second, and the broker's CPU for each in us, on a new topic."""
    topic = f"Popped-{load.count}-{number + _WARM_UPS}"
    await fill(cluster.broker, topic, total)
    before = cpu_seconds(cluster.broker_pid)
    seconds = await consume(cluster.broker, BROKER, topic, load, total)
    return total / seconds, (cpu_seconds(cluster.broker_pid) - before) / total * 1e6


def _add(row: LoadComparison, cluster: ComparedCluster, sample: float) -> None:
    side = row.rewindmq if cluster.name == REWINDMQ else row.rocketmq
    side.samples.append(sample)
