"""Runs RocketMQ's and RewindMQ's broker in turn on the same two cores, with the same official Java client."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from bench.cluster_start import cpu_seconds, resident_megabytes
from bench.comparison import Comparison, Side
from bench.java_load import CLIENT, JavaLoad, Measured
from bench.rivals import IDLE_HEAP, LOADED_HEAP, NAMESRV_HEAP, OURS, REAL, Rival, real_rocketmq, rewindmq

_CORES: Final = 2
_SETTLE_SECONDS: Final = 2.0
_SECONDS: Final = 2.0
_WARM_UP_SECONDS: Final = 0.5
# Both brokers and the client are compiled by the time the first round is counted.
_FIRST_WARM_UP_SECONDS: Final = 2.0
_BACKLOG: Final = 200_000
_LEAST_BACKLOG: Final = 1_000
_BATCH: Final = 64
_BACKLOG_BATCH: Final = 256
_BACKLOG_BYTES: Final = 100
_CONSUME_SECONDS: Final = 120.0

Say = Callable[[str], None]

ABOUT: Final = (
    f"The real name server and broker are {REAL}: those of {CLIENT} were never published to Maven Central;"
    f" the client is the official rocketmq-client {CLIENT} for both. ASYNC_FLUSH on both sides.\n"
    f"Real broker: G1 as in its runbroker.sh, {' '.join(LOADED_HEAP)} with a load,"
    f" {' '.join(IDLE_HEAP)} untouched for start and idle memory; name server {' '.join(NAMESRV_HEAP)};"
    " logs off. RewindMQ: `rewindmq up`."
)


@dataclass(frozen=True, slots=True)
class _Send:
    """A way of sending, measured for some seconds."""

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


def compare(rounds: int, scale: float, say: Say) -> list[Comparison]:
    """Every row, the two clusters taking turns in each.

    Args:
        scale: factor on seconds and messages.
    """
    # Those given to this process are those of all that it starts.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:_CORES])
    return [*_starts(rounds, say), *_loads(rounds, scale, say)]


def _starts(rounds: int, say: Say) -> list[Comparison]:
    start = Comparison("start, command to serving (name server and broker)", "s", 4, higher_is_better=False)
    memory = {
        what: Comparison(f"idle memory, {what}", "MB", 4, higher_is_better=False)
        for what in ("broker", "name server", "both")
    }
    watching: list[float] = []
    for number in range(rounds):
        say(f"start and idle memory, round {number + 1} of {rounds}")
        for name in _order(number):
            with real_rocketmq(IDLE_HEAP) if name == REAL else rewindmq() as rival:
                time.sleep(_SETTLE_SECONDS)
                _side(start, name).samples.append(rival.start_seconds)
                broker, namesrv = map(resident_megabytes, (rival.broker_pid, rival.namesrv_pid))
                for row, size in zip(memory.values(), (broker, namesrv, broker + namesrv), strict=True):
                    _side(row, name).samples.append(size)
                watching += map(resident_megabytes, rival.others)
    start.note = (
        "until the broker is in the name server's list; the real one is started as soon as that answers"
    )
    memory["both"].note = (
        f"resident, shared pages counted in each; `rewindmq up` itself, which only watches, has"
        f" {max(watching):.0f} MB more"
    )
    return [start, *memory.values()]


def _loads(rounds: int, scale: float, say: Say) -> list[Comparison]:
    rows = {load: Comparison(load.name, "msg/s", 1) for load in _SENDS}
    consume = Comparison("push consume, 100 B, 4 queues", "msg/s", 1)
    consume.note = "the library's defaults: 20 threads, a listener call for each message, pull batch 32"
    with ExitStack() as stack:
        say("starting both clusters and the Java client")
        rivals = [stack.enter_context(real_rocketmq(LOADED_HEAP)), stack.enter_context(rewindmq())]
        turns = _Turns(rivals, stack.enter_context(JavaLoad()), scale)
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
    """Puts a load on one cluster while the other stands still, then the other way round."""

    def __init__(self, rivals: Sequence[Rival], java: JavaLoad, scale: float) -> None:
        self._rivals = {rival.name: rival for rival in rivals}
        self._java = java
        self._scale = scale
        for rival in rivals:
            rival.rest()

    def wake_all(self) -> None:
        for rival in self._rivals.values():
            rival.go_on()

    def fill(self) -> int:
        """Give both the backlog that every round consumes anew."""
        count = max(_LEAST_BACKLOG, int(_BACKLOG * self._scale))
        fields = {"topic": "LoadBacklog", "count": count, "size": _BACKLOG_BYTES, "batch": _BACKLOG_BATCH}
        for name in _order(0):
            self._run(name, None, "fill", **fields)
        return count

    def send(self, load: _Send, row: Comparison | None, number: int) -> None:
        seconds = _SECONDS if row is not None else _FIRST_WARM_UP_SECONDS
        times = {"seconds": seconds * self._scale, "warmUpSeconds": _WARM_UP_SECONDS * self._scale}
        for name in _order(number):
            measured = self._run(name, row, "send", **load.fields(), **times, batch=_BATCH)
            if row is not None and measured.failed:
                failed = f"{measured.failed} failed at {name} in round {number + 1}: {measured.failure}"
                row.note = f"{row.note}; {failed}" if row.note else failed

    def consume(self, backlog: int, row: Comparison | None, number: int) -> None:
        fields = {"topic": "LoadBacklog", "count": backlog, "group": f"LoadGroup{number + 1}"}
        for name in _order(number):
            self._run(name, row, "consume", **fields, seconds=_CONSUME_SECONDS)

    def _run(self, name: str, row: Comparison | None, op: str, **fields: object) -> Measured:
        rival = self._rivals[name]
        rival.go_on()
        before = 0.0

        def begin() -> None:
            nonlocal before
            before = cpu_seconds(rival.broker_pid)

        measured = self._java.do(op, begin, namesrv=rival.namesrv, **fields)
        used = cpu_seconds(rival.broker_pid) - before
        rival.rest()
        if row is not None:
            side = _side(row, name)
            side.samples.append(measured.rate)
            side.cpu.append(used / max(measured.messages, 1) * 1e6)
        return measured


def _side(row: Comparison, name: str) -> Side:
    return row.real if name == REAL else row.ours


def _order(number: int) -> tuple[str, str]:
    """Who goes first takes turns, too."""
    return (OURS, REAL) if number % 2 else (REAL, OURS)
