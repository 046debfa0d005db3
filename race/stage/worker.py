"""The process of one consumer: ``python -m rewindmq.race.stage.worker --time-scale X``.

Standard input has one JSON object a line: first the consumer's settings, then one order a line. Standard
output has one JSON object a line: each trace point that the consumer passes, and the replies ``ready``,
``stalled``, ``done`` and ``failed``. When standard input ends, the process ends at once without a shutdown
of the consumer.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from dataclasses import replace
from typing import Any, Final

from rewindmq.client.core.remedy import Remedy
from rewindmq.client.push.push_consumer import PushConsumer
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.process.runner import configure_log, loop_factory
from rewindmq.protocol.remoting.runtime import Runtime, SystemClock, system_runtime
from rewindmq.race.stage.consumer import make_consumer
from rewindmq.race.stage.listener import PlannedListener
from rewindmq.race.stage.stage import ListenerPlan
from rewindmq.race.stage.stall import StallGate, StallRule

_STDOUT: Final = 1


def write_line(**value: Any) -> None:
    """Write one line to standard output, unbuffered."""
    data = json.dumps(value, separators=(",", ":")).encode() + b"\n"
    while data:
        data = data[os.write(_STDOUT, data) :]


class _Worker:
    """Executes the orders of the stage."""

    def __init__(self, runtime: Runtime, gate: StallGate, settings: dict[str, Any]) -> None:
        plan = settings["listener"]
        slow = {int(offset): seconds for offset, seconds in plan["slow"].items()}
        self._gate = gate
        self._rules: dict[int, StallRule] = {}
        self._listener = PlannedListener(
            ListenerPlan(plan["seconds"], slow, frozenset(plan["blocked"]), plan["again"]), runtime.timers
        )
        self._consumer: PushConsumer = make_consumer(
            runtime,
            settings["namesrv"],
            profile=Profile(settings["profile"]),
            remedy=None if settings["remedy"] is None else Remedy(settings["remedy"]),
            instance_name=settings["instance_name"],
            listener=self._listener,
            tags=settings["tags"],
            options=settings["options"],
        )
        for stall in settings["stalls"]:
            self.stall(**stall)

    async def start(self) -> None:
        await self._consumer.start()
        write_line(ready=True)

    async def execute(self, do: str, **how: Any) -> None:
        """Execute one order; ``how`` holds its arguments."""
        if do == "stop":
            await self._consumer.shutdown()
        elif do == "suspend":
            self._consumer.suspend()
        elif do == "resume":
            await self._consumer.resume()
        elif do == "release":
            self._listener.release(how["offset"])
        elif do == "stall":
            self.stall(**how)
        else:
            assert do == "go_on", do
            self._rules[how["number"]].release()

    def stall(self, number: int, kind: str, wanted: dict[str, Any]) -> None:
        rule = self._rules[number] = StallRule(kind, wanted, lambda: write_line(stalled=number))
        self._gate.rules.append(rule)


async def _work(time_scale: float) -> None:
    clock = SystemClock(time_scale)

    def probe(point: Point, details: dict[str, Any]) -> None:
        write_line(at=clock.monotonic(), kind=point, details=details)

    gate = StallGate()
    runtime = replace(system_runtime(time_scale=time_scale, probe=probe), failpoint=gate)
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    settings = await lines.readline()
    try:
        if settings:
            worker = _Worker(runtime, gate, json.loads(settings))
            await worker.start()
            await _execute_orders(worker, lines)
    except RewindMQError as error:
        write_line(failed=str(error))
    finally:
        runtime.workers.close()


async def _execute_orders(worker: _Worker, lines: asyncio.StreamReader) -> None:
    """Start each order as it arrives; a slow order does not delay the next one."""
    begun: set[asyncio.Task[None]] = set()

    async def execute(number: int, order: dict[str, Any]) -> None:
        await worker.execute(**order)
        write_line(done=number)

    while line := await lines.readline():
        order = json.loads(line)
        task = asyncio.create_task(execute(order.pop("order"), order))
        begun.add(task)
        task.add_done_callback(begun.discard)


def main() -> None:
    """Consume until standard input ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--time-scale", type=float, required=True)
    time_scale = parser.parse_args().time_scale
    configure_log("warning")
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_work(time_scale))


if __name__ == "__main__":
    main()
