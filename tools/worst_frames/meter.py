"""Measures the processor time of each step of one host in a simulated world."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from rewindmq.race.sim import World
from rewindmq.race.sim.host import incarnation_of
from rewindmq.race.sim.loop import VirtualLoop
from rewindmq.race.sim.world import InlineWorkers


@dataclass(slots=True)
class Meter:
    """Processor time, user and system, of one host's steps since ``reset``. Other hosts are not counted.

    Attributes:
        host: the host to measure.
        longest_ns: the longest step on the event loop.
        loop_ns: all steps on the event loop.
        worker_ns: the longest call on a worker thread, which this simulation runs between two steps.
        steps: number of steps on the event loop.
    """

    host: str = ""
    longest_ns: int = 0
    loop_ns: int = 0
    worker_ns: int = 0
    steps: int = 0

    def reset(self, host: str) -> None:
        self.host = host
        self.longest_ns = self.loop_ns = self.worker_ns = self.steps = 0

    def count(self, nanoseconds: int, *, on_worker: bool) -> None:
        """Add one step or one call on a worker thread."""
        if on_worker:
            self.worker_ns = max(self.worker_ns, nanoseconds)
        else:
            self.steps += 1
            self.loop_ns += nanoseconds
            self.longest_ns = max(self.longest_ns, nanoseconds)


class MeteredWorld(World):
    """A world whose network takes no time, with a meter of one host's steps."""

    def __init__(self) -> None:
        super().__init__(seed=1, latency=(0.0, 0.0))
        self.meter = Meter()

    def _make_loop(self) -> VirtualLoop:
        self._loop = _MeteredLoop(self.meter)
        return self._loop


class _MeteredLoop(VirtualLoop):
    def __init__(self, meter: Meter) -> None:
        super().__init__()
        self._meter = meter

    def _run_handle(self, handle: asyncio.Handle) -> None:
        owner = incarnation_of(handle._context)  # type: ignore[attr-defined]
        if owner is None or owner.host != self._meter.host:
            handle._run()
            return
        callback = handle._callback  # type: ignore[attr-defined]
        began = time.thread_time_ns()
        handle._run()
        on_worker = callback is InlineWorkers.perform
        self._meter.count(time.thread_time_ns() - began, on_worker=on_worker)
