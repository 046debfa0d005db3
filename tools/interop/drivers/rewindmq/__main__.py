"""Drives RewindMQ's producers and consumers; ../README.md describes the lines it reads and writes."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from rewindmq.protocol.command import SerializeType
from rewindmq.protocol.errors import RewindMQError
from tools.interop.drivers.rewindmq.consuming import DriverConsumers
from tools.interop.drivers.rewindmq.lines import Fields, failure, say
from tools.interop.drivers.rewindmq.polling import LiteConsumers, PullConsumers
from tools.interop.drivers.rewindmq.producing import Producers

_LINE_BYTES: Final = 64 << 20
# Long, because the broker of a busy machine may answer late.
_API_TIMEOUT_MS: Final = 30_000

Op = Callable[[Fields], Awaitable[Fields]]


async def _answer(op: Op | None, request: Fields) -> None:
    try:
        if op is None:
            raise ValueError(f"no operation {request['op']}")
        say({"id": request["id"], "ok": await op(request)})
    except (RewindMQError, OSError, AssertionError, KeyError, TypeError, ValueError) as error:
        say({"id": request["id"], "error": failure(error)})


async def _drive(options: dict[str, Any], offsets: Path) -> None:
    """Carry out requests until standard input ends; then shut down consumers before producers."""
    clients = (
        DriverConsumers(options, offsets),
        LiteConsumers(options),
        PullConsumers(options),
        Producers(options),
    )
    ops: dict[str, Op] = {name: op for client in clients for name, op in client.ops.items()}
    say({"ready": {"client": "rewindmq", "version": version("rewindmq"), "ops": sorted(ops)}})
    requests = asyncio.StreamReader(limit=_LINE_BYTES)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(requests), sys.stdin)
    async with asyncio.TaskGroup() as tasks:
        async for line in requests:
            request = json.loads(line)
            tasks.create_task(_answer(ops.get(request["op"]), request))
    for client in clients:
        await client.shutdown()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serialize-type", default="auto", choices=("auto", "JSON", "ROCKETMQ", "MSGPACK"))
    serialize_type = parser.parse_args().serialize_type
    with tempfile.TemporaryDirectory(prefix="rewindmq-interop-") as offsets:
        codec = None if serialize_type == "auto" else SerializeType[serialize_type]
        options = {"serialize_type": codec, "mq_client_api_timeout": _API_TIMEOUT_MS}
        asyncio.run(_drive(options, Path(offsets)))


if __name__ == "__main__":
    main()
