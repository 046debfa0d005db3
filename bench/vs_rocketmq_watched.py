"""Kept resets at RocketMQ's broker with the official Java client: how many a watcher proves, and when."""

from __future__ import annotations

import asyncio
import re
import statistics
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from bench import watched
from bench.compared_clusters import LOADED_HEAP, ROCKETMQ, rocketmq_cluster
from bench.java_load import CLIENT, JavaLoad
from bench.java_load import MeasuredLoad as Answer
from bench.table import Row
from bench.vs_rocketmq import Say
from bench.watched import Again, MeasuredReset, RunningGroup, WatchedLoad
from rewindmq import AdminClient, MessageQueue

# Seconds. A broker's minute ends up to 10 s ago, so a group is idle for the watcher after 70 s.
_IDLE: Final = 75.0
# Seconds from one watched reset of an idle group to the next. They mostly wait, so they run together.
_APART: Final = 8.0
_WITHIN: Final = 30.0
_BROKER: Final = "broker-a"

ABOUT: Final = (
    f"name server and broker: {ROCKETMQ}; consumers: the official rocketmq-client {CLIENT}, push, with its"
    f" defaults; classic resets; an idle group has consumed nothing for {_IDLE:g} s"
)


def measure_watched(rounds: int, say: Say) -> list[Row]:
    """Measure the loads of ``bench.watched``: the idle ones together, then the others by rounds."""
    rows = {load: _Rows(load) for load in watched.LOADS}
    with rocketmq_cluster(LOADED_HEAP) as cluster, JavaLoad() as java:
        asyncio.run(_Plays(cluster.namesrv, JavaGroups(java), rows, say).run(rounds))
    return [row for each in rows.values() for row in each.finished()]


class _Rows:
    """The rows of a load."""

    def __init__(self, load: WatchedLoad) -> None:
        title = f"watched reset at {ROCKETMQ}: {load.title}"
        self._proven = Row(f"{title}: proven queues", "%", 80.0 if load.per_second else 95.0)
        self._late = Row(
            f"{title}: verdict after the last redelivery",
            "s",
            None if load.per_second else _WITHIN,
            higher_is_better=False,
        )
        self._all: list[MeasuredReset] = []

    def add(self, measured: MeasuredReset) -> None:
        self._all.append(measured)
        self._late.samples.append(measured.seconds)

    def finished(self) -> list[Row]:
        """Return the rows: the share of all queues, and why the others were not proven."""
        self._proven.samples = [100 * statistics.mean(each.proven for each in self._all)]
        whole = sum(each.proven == 1 for each in self._all)
        notes = [f"every queue in {whole} of {len(self._all)} resets"]
        lost = sum(not each.is_kept for each in self._all)
        if lost:
            notes.append(f"{lost} resets were not kept")
        reasons: Counter[str] = Counter()
        for each in self._all:
            # The figures of a reason differ from queue to queue.
            reasons.update(re.sub(r"\d+", "N", text) for text in each.reasons.elements())
        notes += [f"{count} x {text}" for text, count in reasons.most_common()]
        self._proven.note = "; ".join(notes)
        return [self._proven, self._late]


class _Plays:
    """Plays the loads at one broker."""

    def __init__(self, namesrv: str, java: JavaGroups, rows: Mapping[WatchedLoad, _Rows], say: Say) -> None:
        self._namesrv = namesrv
        self._java = java
        self._rows = rows
        self._say = say

    async def run(self, rounds: int) -> None:
        async with AdminClient(self._namesrv) as admin:
            info = await admin.brokers.examine_broker_cluster_info()
        broker = info.broker_addr_table[_BROKER].broker_addrs[0]
        idle = [load for load in self._rows if not load.per_second]
        busy = [load for load in self._rows if load.per_second]
        self._say(f"{rounds} rounds of idle groups, together")
        async with asyncio.TaskGroup() as tasks:
            for number, load in enumerate(idle * rounds):
                tasks.create_task(self._play(broker, load, number, number * _APART))
        for number in range(rounds):
            self._say(f"steady traffic, round {number + 1} of {rounds}")
            async with asyncio.TaskGroup() as tasks:
                for load in busy:
                    tasks.create_task(self._play(broker, load, number, 0.0))

    async def _play(self, broker: str, load: WatchedLoad, number: int, delay: float) -> None:
        await asyncio.sleep(delay)
        name = f"Watched-{load.messages}-{load.per_second}-{number}"
        idle = 0.0 if load.per_second else _IDLE
        measured = await watched.measure(
            self._namesrv, broker, load, None, name, join=self._java.join, idle=idle
        )
        self._rows[load].add(measured)
        self._say(
            f"{load.title}: {measured.proven:.0%} proven {measured.seconds:.1f} s after the last redelivery"
        )


class JavaGroups:
    """Runs groups of consumers in the Java process, which takes one order at a time."""

    def __init__(self, java: JavaLoad) -> None:
        self._java = java
        self._turn = asyncio.Lock()

    async def do(self, op: str, **fields: Any) -> Answer:
        async with self._turn:
            return await asyncio.to_thread(self._java.do, op, **fields)

    @asynccontextmanager
    async def join(self, namesrv: str, name: str, count: int) -> AsyncIterator[RunningGroup]:
        """See ``bench.watched.Join``."""
        await self.do("join", namesrv=namesrv, topic=name, group=name, parallel=count)
        try:
            yield _JavaGroup(self.do, name)
        finally:
            await self.do("leave", group=name)


class _JavaGroup:
    """See ``bench.watched.RunningGroup``."""

    def __init__(self, do: Callable[..., Awaitable[Answer]], name: str) -> None:
        self._do = do
        self._name = name

    async def begin(self, ends: Mapping[MessageQueue, int]) -> None:
        offsets = {str(queue.queue_id): offset for queue, offset in ends.items()}
        await self._do("mark", group=self._name, ends=offsets)

    async def again(self) -> Again:
        answer = await self._do("again", group=self._name)
        return Again(answer.messages, time.monotonic() - answer.seconds)
