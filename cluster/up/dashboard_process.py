"""The dashboard of ``rewindmq up --dashboard``: a process of its own beside the cluster."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from rewindmq.cluster.errors import ClusterError
from rewindmq.protocol.files.private import make_private_folder, open_private
from rewindmq.protocol.remoting.runtime import Timers
from rewindmq.protocol.text import escape_controls

_START_SECONDS: Final = 30.0
_STOP_SECONDS: Final = 10.0
_READY: Final = b"dashboard: "
# Bytes at the end of the log in which the last line is looked for.
_LAST_BYTES: Final = 4096


class DashboardProcess:
    """A dashboard that serves.

    Attributes:
        url: the address of its pages.
    """

    def __init__(self, url: str, process: asyncio.subprocess.Process, errors: _Errors) -> None:
        self.url = url
        self._process = process
        self._errors = errors
        self._is_reported = False

    @property
    def pid(self) -> int:
        return self._process.pid

    async def wait(self) -> None:
        """Wait until the process has ended."""
        await self._process.wait()

    def report_ended(self) -> None:
        """Print one line if the process has ended by itself; once."""
        status = self._process.returncode
        if status is None or self._is_reported:
            return
        self._is_reported = True
        how = f"exit status {status}" if status >= 0 else f"killed by {_signal_name(-status)}"
        print(
            f"rewindmq up: the dashboard has ended ({how}): {self._errors.last_line()}; the cluster runs on,"
            f" see {self._errors.log}",
            file=sys.stderr,
            flush=True,
        )


class _Errors:
    """What this process writes to its log; the file may have lines of processes before it."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self._begin = log.stat().st_size

    def last_line(self) -> str:
        """Return the last line, in printable characters, without the command's name."""
        try:
            with self.log.open("rb") as file:
                end = file.seek(0, os.SEEK_END)
                file.seek(max(self._begin, end - _LAST_BYTES))
                lines = file.read(_LAST_BYTES).decode(errors="replace").split("\n")
        except OSError as error:
            return f"its log cannot be read, {error.strerror}"
        said = [line for line in lines if line.strip()]
        return (
            escape_controls(said[-1].removeprefix("rewindmq dashboard: ")) if said else "it did not say why"
        )


@contextlib.asynccontextmanager
async def dashboard_process(
    namesrv: str, port: int, log: Path, timers: Timers, *, history: Path, time_scale: float
) -> AsyncIterator[DashboardProcess]:
    """Run the dashboard during an ``async with`` statement.

    Args:
        port: 0 takes any free one.
        log: the file of its standard error.
        history: the folder of its watched resets.
        time_scale: the cluster's.

    Raises:
        ClusterError: it did not start: its extra is not installed, or the port is taken.
    """
    make_private_folder(log.parent)
    with open_private(log, "ab") as file:
        errors = _Errors(log)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "rewindmq", "dashboard", "--exit-with-parent"),
            *("-n", namesrv, "--port", str(port), "--history", str(history)),
            *("--time-scale", str(time_scale)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=file,
            # Ctrl-C at the terminal is for the parent, which stops it.
            process_group=0,
        )
    try:
        yield DashboardProcess(await _url(process, errors, timers), process, errors)
    finally:
        await _stop(process, timers)


async def _url(process: asyncio.subprocess.Process, errors: _Errors, timers: Timers) -> str:
    assert process.stdout is not None
    timer = timers.call_timeout(_START_SECONDS, process.kill)
    try:
        line = await process.stdout.readline()
    finally:
        timer.cancel()
    if not line.startswith(_READY):
        await process.wait()
        raise ClusterError(f"the dashboard did not start: {errors.last_line()}")
    return line.removeprefix(_READY).decode().strip()


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


async def _stop(process: asyncio.subprocess.Process, timers: Timers) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    timer = timers.call_timeout(_STOP_SECONDS, process.kill)
    try:
        await process.wait()
    finally:
        timer.cancel()
