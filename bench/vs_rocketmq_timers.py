"""Timer messages at RocketMQ 5's and at RewindMQ's broker in turn, with the same raw client."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Final

from bench.cluster_start import cpu_seconds, private_megabytes
from bench.compared_clusters import (
    LOADED_HEAP,
    REWINDMQ,
    ROCKETMQ_5,
    ComparedCluster,
    rewindmq_cluster,
    rocketmq_cluster,
)
from bench.comparison import ComparedSide, LoadComparison
from bench.timer_load import TimerLoadError, TimerTopic
from tools.interop.toolchains import tool
from tools.interop.versions import SERVER_5

Say = Callable[[str], None]

_CORES: Final = 2
_DUE_TOGETHER: Final = 100_000
_OPEN: Final = 1_000_000
_LEAST: Final = 1_000
# The slowest sending that still ends before the messages are due, messages/s.
_SENDS_PER_SECOND: Final = 5_000
_LEAD_SECONDS: Final = 5
# Messages due at each of some full seconds.
_FEW: Final = 10
_FEW_SECONDS: Final = 20
_PERCENTILE: Final = 0.99
# The open messages are due at so many times, from an hour ahead.
_TIMES: Final = 5_000
_APART_MS: Final = 10_000
_AHEAD_MS: Final = 3_600_000
# Uncounted messages, after which code is compiled and buffers are there.
_WARM_UP: Final = 20_000
_LEAST_GROWTH: Final = 0.1
# A small heap at first, which a full collection makes small again: in favour of RocketMQ.
_SHRINKING_HEAP: Final = ("-Xms64m", "-Xmx1g", "-XX:MaxDirectMemorySize=1g")
_OPTIONS: Final = ("--profile", "v53")

ABOUT: Final = (
    f"RocketMQ's name server and broker are {ROCKETMQ_5}, with G1 and the heaps of its other rows and default"
    " keys; RewindMQ: `rewindmq up --profile v53`. Both brokers use ASYNC_FLUSH. The client is a raw one:"
    " messages of 100 B in four queues, one connection, 256 in flight."
)


def compare_timers(rounds: int, scale: float, say: Say) -> list[LoadComparison]:
    """Measure every row; the two clusters take turns in each round, except for memory, which is one round."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:_CORES])
    return [*_deliveries(rounds, scale, say), _memory(max(_LEAST, int(_OPEN * scale)), say)]


def _deliveries(rounds: int, scale: float, say: Say) -> list[LoadComparison]:
    total = max(_LEAST, int(_DUE_TOGETHER * scale))
    last = LoadComparison(
        f"{total:,} timers due in one second: the last is delivered after", "s", 1 / 0.7, False
    )
    last.note = "after the time that all have; visible to consumers, asked every 10 ms"
    precision = LoadComparison("timer precision, 99th percentile", "ms", 1, higher_is_better=False)
    precision.note = (
        f"store time after the due time, {_FEW} timers at each of {_FEW_SECONDS} full seconds; both brokers"
        " deliver what is due within a second at its end"
    )
    with ExitStack() as stack:
        say("starting both clusters")
        clusters = [
            stack.enter_context(rocketmq_cluster(LOADED_HEAP, release=SERVER_5)),
            stack.enter_context(rewindmq_cluster(*_OPTIONS)),
        ]
        for cluster in clusters:
            cluster.suspend()
            stack.callback(cluster.resume)
        for number in range(-1, rounds):
            what = f"round {number + 1} of {rounds}" if number >= 0 else "warming both brokers up"
            for cluster in clusters if number % 2 else reversed(clusters):
                say(f"{what}: {cluster.name}")
                cluster.resume()
                seconds, cpu = asyncio.run(_deliver(cluster, f"Due{number + 1}", total))
                late = asyncio.run(_few(cluster, f"Few{number + 1}")) if number >= 0 else 0.0
                cluster.suspend()
                if number >= 0:
                    side = _side(last, cluster)
                    side.samples.append(seconds)
                    side.cpu.append(cpu)
                    _side(precision, cluster).samples.append(late)
    return [last, precision]


async def _deliver(cluster: ComparedCluster, topic: str, total: int) -> tuple[float, float]:
    """Return the seconds until the last of many messages is there, and the broker's CPU for each in us."""
    with closing(TimerTopic(cluster.broker, topic)) as timers:
        due = int(time.time()) + _LEAD_SECONDS + total // _SENDS_PER_SECOND
        await timers.send((due * 1_000,), total)
        if time.time() >= due:
            raise TimerLoadError(f"{cluster.name}: sending took longer than the messages had to wait")
        before = cpu_seconds(cluster.broker_pid)
        await asyncio.sleep(due - time.time())
        await timers.wait_delivered(total)
        seconds = time.time() - due
        return seconds, (cpu_seconds(cluster.broker_pid) - before) / total * 1e6


async def _few(cluster: ComparedCluster, topic: str) -> float:
    """Return the 99th percentile of the milliseconds between a message's time and its store time."""
    with closing(TimerTopic(cluster.broker, topic)) as timers:
        first = int(time.time()) + _LEAD_SECONDS
        times = [(first + second) * 1_000 for second in range(_FEW_SECONDS)]
        total = _FEW * len(times)
        await timers.send(times, total)
        await timers.wait_delivered(total)
        late = sorted(
            message.store_timestamp - int(message.properties["TIMER_DELIVER_MS"])
            for message in timers.messages()
        )
    if late[0] < 0:
        raise TimerLoadError(f"{cluster.name} delivered a message {-late[0]} ms early")
    return max(float(late[int(len(late) * _PERCENTILE)]), 1.0)


def _memory(total: int, say: Say) -> LoadComparison:
    row = LoadComparison(f"memory for {total:,} open timers", "MB", 1 / 0.3, higher_is_better=False)
    row.note = (
        f"one round: growth of resident memory without pages of files, from {_WARM_UP:,} open timers on;"
        f" RocketMQ's heap is {' '.join(_SHRINKING_HEAP[:2])}, after a full collection each time"
    )
    if total != _OPEN:
        row.note += "; fewer timers than the target is for"
    for name in (ROCKETMQ_5, REWINDMQ):
        say(f"memory for {total:,} open timers: {name}")
        with (
            rocketmq_cluster(_SHRINKING_HEAP, release=SERVER_5)
            if name == ROCKETMQ_5
            else rewindmq_cluster(*_OPTIONS) as cluster
        ):
            _side(row, cluster).samples.append(asyncio.run(_grown(cluster, total)))
    return row


async def _grown(cluster: ComparedCluster, total: int) -> float:
    with closing(TimerTopic(cluster.broker, "Open")) as timers:
        first = int(time.time()) * 1_000 + _AHEAD_MS
        times = [first + _APART_MS * number for number in range(_TIMES)]
        await timers.send(times, _WARM_UP)
        await timers.wait_taken(_WARM_UP)
        before = _private(cluster)
        await timers.send(times, total)
        await timers.wait_taken(_WARM_UP + total)
        return max(_private(cluster) - before, _LEAST_GROWTH)


def _private(cluster: ComparedCluster) -> float:
    if cluster.name == ROCKETMQ_5:
        jcmd = Path(tool("java")).resolve().with_name("jcmd")
        subprocess.run([jcmd, str(cluster.broker_pid), "GC.run"], stdout=subprocess.DEVNULL, check=True)
    return private_megabytes(cluster.broker_pid)


def _side(row: LoadComparison, cluster: ComparedCluster) -> ComparedSide:
    return row.rewindmq if cluster.name == REWINDMQ else row.rocketmq
