"""The dashboard of ``rewindmq up --dashboard``: a process of its own beside the cluster."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from rewindmq.cluster.errors import ClusterError
from rewindmq.protocol.files.private import make_private_folder, open_private
from rewindmq.protocol.remoting.runtime import Timers

_START_SECONDS: Final = 30.0
_STOP_SECONDS: Final = 10.0
_READY: Final = b"dashboard: "


@contextlib.asynccontextmanager
async def dashboard_process(
    namesrv: str, port: int, log: Path, timers: Timers, *, history: Path, time_scale: float
) -> AsyncIterator[str]:
    """Run the dashboard during an ``async with`` statement; yield its URL.

    Args:
        port: 0 takes any free one.
        log: the file of its standard error.
        history: the folder of its watched resets.
        time_scale: the cluster's.

    Raises:
        ClusterError: it did not start: its extra is not installed, or the port is taken.
    """
    make_private_folder(log.parent)
    with open_private(log, "ab") as errors:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "rewindmq", "dashboard", "--exit-with-parent"),
            *("-n", namesrv, "--port", str(port), "--history", str(history)),
            *("--time-scale", str(time_scale)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            # Ctrl-C at the terminal is for the parent, which stops it.
            process_group=0,
        )
    try:
        yield await _url(process, log, timers)
    finally:
        await _stop(process, timers)


async def _url(process: asyncio.subprocess.Process, log: Path, timers: Timers) -> str:
    assert process.stdout is not None
    timer = timers.call_timeout(_START_SECONDS, process.kill)
    try:
        line = await process.stdout.readline()
    finally:
        timer.cancel()
    if not line.startswith(_READY):
        await process.wait()
        raise ClusterError(f"the dashboard did not start: {_last_line(log)}")
    return line.removeprefix(_READY).decode().strip()


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()
    return lines[-1].removeprefix("rewindmq dashboard: ") if lines else "it did not say why"


async def _stop(process: asyncio.subprocess.Process, timers: Timers) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    timer = timers.call_timeout(_STOP_SECONDS, process.kill)
    try:
        await process.wait()
    finally:
        timer.cancel()
