"""One worker process of the soak, which the driver starts as ``python -m tools.soak.worker``.

It is a producer, a consumer or the hostile peer. It journals what it does, and each second prints its
counters as a line of JSON. ``stop`` on standard input ends a producer's sending. The end of standard input,
or SIGTERM, ends the process cleanly.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import signal
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.process.runner import loop_factory
from rewindmq.protocol.remoting.runtime import Runtime, system_runtime
from tools.soak.consuming import consume_lite, consume_orderly, consume_pulling, consume_pushed
from tools.soak.context import WorkerContext
from tools.soak.hostile import attack
from tools.soak.journal import Header, JournalWriter
from tools.soak.options import GROUPS
from tools.soak.pauses import pause
from tools.soak.producing import produce

_ROLES: Final[dict[str, Callable[[WorkerContext], Awaitable[None]]]] = {
    "producer": produce,
    "push": consume_pushed,
    "orderly": consume_orderly,
    "pull": consume_pulling,
    "lite": consume_lite,
    "hostile": attack,
}

# Seconds between two lines of counters.
_REPORT_SECONDS: Final = 1.0


async def _print_counts(counts: Counter[str]) -> None:
    while True:
        await pause(_REPORT_SECONDS)
        sys.stdout.write(json.dumps(counts) + "\n")
        sys.stdout.flush()


async def _run(arguments: argparse.Namespace) -> None:
    group = next((group for group in GROUPS if group.name == arguments.group), None)
    header = Header(arguments.owner, arguments.group, arguments.producer)
    chain = {"now": 0}

    def probe(point: Point, details: dict[str, Any]) -> None:
        if point is Point.LISTENER_CALLED:
            chain["now"] = details.get("chain", 0)

    runtime: Runtime = system_runtime(time_scale=arguments.time_scale, probe=probe)
    context = WorkerContext(
        namesrv=arguments.namesrv,
        runtime=runtime,
        profile=arguments.profile,
        group=group,
        producer=arguments.producer,
        rate=arguments.rate,
        time_scale=arguments.time_scale,
        without=frozenset(filter(None, arguments.without.split(","))),
        journal=JournalWriter(arguments.journal, header),
        counts=Counter(),
        stopping=asyncio.Event(),
        ending=asyncio.Event(),
        chain=lambda: chain["now"],
    )
    printing = asyncio.create_task(_print_counts(context.counts))
    listening = asyncio.create_task(_listen(context))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, context.ending.set)
    try:
        await _ROLES[arguments.role](context)
    finally:
        for task in (printing, listening):
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(printing, listening)
        runtime.workers.close()


async def _listen(context: WorkerContext) -> None:
    """Read ``stop`` and the end of standard input."""
    commands = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    while await commands.readline():
        context.stopping.set()
    context.stopping.set()
    context.ending.set()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=sorted(_ROLES))
    parser.add_argument("--namesrv", required=True)
    parser.add_argument("--owner", required=True)
    parser.add_argument("--group", default="")
    parser.add_argument("--producer", type=int, default=-1)
    parser.add_argument("--rate", type=float, default=0)
    parser.add_argument("--time-scale", type=float, required=True)
    parser.add_argument("--profile", type=Profile, required=True)
    parser.add_argument("--journal", type=Path, required=True)
    parser.add_argument("--without", default="")
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_run(parser.parse_args()))


if __name__ == "__main__":
    main()
