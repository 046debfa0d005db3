"""Runs RocketMQ's and RewindMQ's broker in turn on the same two cores, with the same official Java client."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from bench.cluster_start import cpu_seconds, resident_megabytes
from bench.compared_clusters import (
    IDLE_HEAP,
    LOADED_HEAP,
    NAMESRV_HEAP,
    REWINDMQ,
    ROCKETMQ,
    ComparedCluster,
    rewindmq_cluster,
    rocketmq_cluster,
)
from bench.comparison import ComparedSide, LoadComparison
from bench.java_load import CLIENT, JavaLoad, MeasuredLoad

_CORES: Final = 2
_SETTLE_SECONDS: Final = 2.0
_SECONDS: Final = 2.0
_WARM_UP_SECONDS: Final = 0.5
# Java compiles RocketMQ's broker and the client before the first counted round.
_FIRST_WARM_UP_SECONDS: Final = 2.0
_BACKLOG: Final = 200_000
_LEAST_BACKLOG: Final = 1_000
_BATCH: Final = 64
_BACKLOG_BATCH: Final = 256
_BACKLOG_BYTES: Final = 100
_CONSUME_SECONDS: Final = 120.0

Say = Callable[[str], None]

ABOUT: Final = (
    f"RocketMQ's name server and broker are {ROCKETMQ}: those of {CLIENT} were never published to Maven"
    f" Central. The client of both clusters is the official rocketmq-client {CLIENT}."
    " Both brokers use ASYNC_FLUSH.\n"
    f"RocketMQ: G1 as in its runbroker.sh, {' '.join(LOADED_HEAP)} under load,"
    f" {' '.join(IDLE_HEAP)} without pre-touched pages for start and idle memory;"
    f" name server {' '.join(NAMESRV_HEAP)}; logs off. RewindMQ: `rewindmq up`."
)


@dataclass(frozen=True, slots=True)
class _Send:
    """A load of sends, which lasts some seconds."""

    name: str
    mode: str
    parallel: int
    size: int

    def fields(self) -> dict[str, object]:
        topic = f"Load-{self.mode}-{self.size}"
        return {"mode": self.mode, "parallel": self.parallel, "size": self.size, "topic": topic}


_SENDS: Final = (
    _Send("send sync, 1 thread, 100 B", "sync", 1, 100),
    _Send("send sync, 1 thread, 1 KiB", "sync", 1, 1_024),
    _Send("send sync, 32 threads, 100 B", "sync", 32, 100),
    _Send("send sync, 32 threads, 1 KiB", "sync", 32, 1_024),
    _Send("send async, 256 in flight, 100 B", "async", 256, 100),
    _Send("send async, 256 in flight, 1 KiB", "async", 256, 1_024),
    _Send(f"send batch of {_BATCH} x 100 B, 4 threads", "batch", 4, 100),
)


def compare(rounds: int, scale: float, say: Say) -> list[LoadComparison]:
    """Measure every row; the two clusters take turns in each round.

    Args:
        scale: factor on seconds and messages.
    """
    # The processes that this process starts inherit its cores.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:_CORES])
    return [*_starts(rounds, say), *_loads(rounds, scale, say)]


def _starts(rounds: int, say: Say) -> list[LoadComparison]:
    start = LoadComparison(
        "start, command to serving (name server and broker)", "s", 4, higher_is_better=False
    )
    memory = {
        what: LoadComparison(f"idle memory, {what}", "MB", 4, higher_is_better=False)
        for what in ("broker", "name server", "both")
    }
    watching: list[float] = []
    for number in range(rounds):
        say(f"start and idle memory, round {number + 1} of {rounds}")
        for name in _order(number):
            with rocketmq_cluster(IDLE_HEAP) if name == ROCKETMQ else rewindmq_cluster() as cluster:
                time.sleep(_SETTLE_SECONDS)
                _side(start, name).samples.append(cluster.start_seconds)
                broker, namesrv = map(resident_megabytes, (cluster.broker_pid, cluster.namesrv_pid))
                for row, size in zip(memory.values(), (broker, namesrv, broker + namesrv), strict=True):
                    _side(row, name).samples.append(size)
                watching += map(resident_megabytes, cluster.others)
    start.note = (
        "until the broker is registered; RocketMQ's broker is started as soon as its name server serves"
    )
    memory["both"].note = (
        f"resident; shared pages count in each process; `rewindmq up` itself, which only watches, has"
        f" {max(watching):.0f} MB more"
    )
    return [start, *memory.values()]


def _loads(rounds: int, scale: float, say: Say) -> list[LoadComparison]:
    rows = {load: LoadComparison(load.name, "msg/s", 1) for load in _SENDS}
    consume = LoadComparison("push consume, 100 B, 4 queues", "msg/s", 1)
    consume.note = "the client's defaults: 20 threads, a listener call for each message, pull batch 32"
    with ExitStack() as stack:
        say("starting both clusters and the Java client")
        clusters = [
            stack.enter_context(rocketmq_cluster(LOADED_HEAP)),
            stack.enter_context(rewindmq_cluster()),
        ]
        turns = _Turns(clusters, stack.enter_context(JavaLoad()), scale)
        stack.callback(turns.wake_all)
        backlog = turns.fill()
        for number in range(-1, rounds):
            is_counted = number >= 0
            say(
                f"load, round {number + 1} of {rounds}"
                if is_counted
                else "warming both brokers and the client up"
            )
            for load, row in rows.items():
                turns.send(load, row if is_counted else None, number)
            turns.consume(backlog, consume if is_counted else None, number)
    return [*rows.values(), consume]


class _Turns:
    """Puts a load on one cluster while the other is suspended."""

    def __init__(self, clusters: Sequence[ComparedCluster], java: JavaLoad, scale: float) -> None:
        self._clusters = {cluster.name: cluster for cluster in clusters}
        self._java = java
        self._scale = scale
        for cluster in clusters:
            cluster.suspend()

    def wake_all(self) -> None:
        for cluster in self._clusters.values():
            cluster.resume()

    def fill(self) -> int:
        """Fill both clusters with the backlog that every round consumes again."""
        count = max(_LEAST_BACKLOG, int(_BACKLOG * self._scale))
        fields = {"topic": "LoadBacklog", "count": count, "size": _BACKLOG_BYTES, "batch": _BACKLOG_BATCH}
        for name in _order(0):
            self._run(name, None, "fill", **fields)
        return count

    def send(self, load: _Send, row: LoadComparison | None, number: int) -> None:
        seconds = _SECONDS if row is not None else _FIRST_WARM_UP_SECONDS
        times = {"seconds": seconds * self._scale, "warmUpSeconds": _WARM_UP_SECONDS * self._scale}
        for name in _order(number):
            measured = self._run(name, row, "send", **load.fields(), **times, batch=_BATCH)
            if row is not None and measured.failed:
                failed = f"{measured.failed} failed at {name} in round {number + 1}: {measured.failure}"
                row.note = f"{row.note}; {failed}" if row.note else failed

    def consume(self, backlog: int, row: LoadComparison | None, number: int) -> None:
        fields = {"topic": "LoadBacklog", "count": backlog, "group": f"LoadGroup{number + 1}"}
        for name in _order(number):
            self._run(name, row, "consume", **fields, seconds=_CONSUME_SECONDS)

    def _run(self, name: str, row: LoadComparison | None, op: str, **fields: object) -> MeasuredLoad:
        cluster = self._clusters[name]
        cluster.resume()
        before = 0.0

        def begin() -> None:
            nonlocal before
            before = cpu_seconds(cluster.broker_pid)

        measured = self._java.do(op, begin, namesrv=cluster.namesrv, **fields)
        used = cpu_seconds(cluster.broker_pid) - before
        cluster.suspend()
        if row is not None:
            side = _side(row, name)
            side.samples.append(measured.rate)
            side.cpu.append(used / max(measured.messages, 1) * 1e6)
        return measured


def _side(row: LoadComparison, name: str) -> ComparedSide:
    return row.rocketmq if name == ROCKETMQ else row.rewindmq


def _order(number: int) -> tuple[str, str]:
    """Return the order of the clusters in a round; the first alternates."""
    return (REWINDMQ, ROCKETMQ) if number % 2 else (ROCKETMQ, REWINDMQ)
