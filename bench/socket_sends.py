"""Sends as the Java client writes them, from a raw client over a socket to one broker process."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from bench.cluster_start import cpu_seconds
from bench.hot_path import one_message
from bench.pipelined_client import PipelinedClient
from rewindmq.protocol.remoting.process.speedups import PURE_VARIABLE

# Different frames; a send's opaque, queue and UNIQ_KEY repeat after so many.
_FRAMES: Final = 1_024


@contextmanager
def running_broker(*, is_pure: bool) -> Iterator[tuple[str, int, int]]:
    """Start a broker process and give its host, port and process id; the block's end kills it.

    Args:
        is_pure: without ``rewindmq-speedups``, installed or not.
    """
    environment = {**os.environ, PURE_VARIABLE: "1" if is_pure else "0"}
    with tempfile.TemporaryDirectory(prefix="rewindmq-bench-") as root:
        command = [sys.executable, "-m", "rewindmq", "broker", "-p", "0", "--root", root]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, text=True
        ) as broker:
            try:
                assert broker.stdout is not None
                ready = broker.stdout.readline()
                if not ready:
                    raise SystemExit("bench: the broker does not start")
                host, _, port = json.loads(ready)["address"].rpartition(":")
                yield host, int(port), broker.pid
            finally:
                broker.send_signal(signal.SIGKILL)


async def measure(
    host: str, port: int, pid: int, size: int, in_flight: int, total: int
) -> tuple[float, float]:
    """Send ``total`` messages of ``size`` bytes, ``in_flight`` at any time.

    Returns:
        Messages per second, and microseconds of the broker's processor time for each.
    """
    loop = asyncio.get_running_loop()
    frames = [one_message(size, number) for number in range(_FRAMES)]
    _, sender = await loop.create_connection(lambda: PipelinedClient(frames), host, port)
    # The first one makes the topic.
    await sender.send(1, 1)
    before, started = cpu_seconds(pid), time.perf_counter()
    await sender.send(in_flight, total)
    seconds, spent = time.perf_counter() - started, cpu_seconds(pid) - before
    sender.close()
    return total / seconds, spent / total * 1e6
