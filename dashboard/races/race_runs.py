"""RaceRuns: plays simulated races for visitors, one at a time, each in a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from typing import Final

import msgspec

from rewindmq.dashboard.races.race_run import RaceCase, RaceRun
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.remoting.runtime import Timers

# Seconds after which a run is ended. One takes some 0.1 s, and its process 1 s to start on a busy machine.
LIMIT_SECONDS: Final = 30.0
# Runs that are kept, so that a link to one that was just played shows it at once.
MAX_KEPT: Final = 16
_WORKER: Final = ("-m", "rewindmq.dashboard.races.worker")
_log = logging.getLogger(__name__)


class BusyError(RewindMQError):
    """Another visitor's race is being played."""


class NotPlayedError(RewindMQError):
    """A race could not be played; the text says why."""


class RaceRuns:
    """Plays simulated races, one at a time.

    Args:
        timers: end a run that takes longer than ``LIMIT_SECONDS``.
        worker: arguments of the Python interpreter that run a case, which follows them as JSON.
    """

    def __init__(self, timers: Timers, worker: tuple[str, ...] = _WORKER) -> None:
        self._timers = timers
        self._worker = worker
        self._is_busy = False
        self._kept: dict[RaceCase, RaceRun] = {}

    async def play(self, case: RaceCase) -> RaceRun:
        """Play a case, or return the run that was kept of it. A cancelled call ends the run's process.

        Args:
            case: one that the catalogue has.

        Raises:
            BusyError: another run has not ended.
            NotPlayedError: the run took too long, or its process failed.
        """
        if (kept := self._kept.get(case)) is not None:
            return kept
        if self._is_busy:
            raise BusyError("another race is being played")
        self._is_busy = True
        try:
            run = await self._play(case)
        finally:
            self._is_busy = False
        self._kept[case] = run
        while len(self._kept) > MAX_KEPT:
            del self._kept[next(iter(self._kept))]
        return run

    async def _play(self, case: RaceCase) -> RaceRun:
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *self._worker,
                msgspec.json.encode(case).decode(),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                # Ctrl-C at the terminal is for the dashboard, which ends it. uvloop has no process_group.
                start_new_session=True,
            )
        except OSError as error:
            raise NotPlayedError(f"no process could be started: {error.strerror or error}") from None
        timer = self._timers.call_timeout(LIMIT_SECONDS, lambda: _kill(process))
        try:
            output, errors = await _read(process)
        finally:
            timer.cancel()
            _kill(process)
            await process.wait()
        return _decoded(process, output, errors)


async def _read(process: asyncio.subprocess.Process) -> tuple[bytes, bytes]:
    assert process.stdout is not None
    assert process.stderr is not None
    output, errors = await asyncio.gather(process.stdout.read(), process.stderr.read())
    await process.wait()
    return output, errors


def _kill(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        if process.returncode is None:
            process.kill()


def _decoded(process: asyncio.subprocess.Process, output: bytes, errors: bytes) -> RaceRun:
    if process.returncode != 0:
        _log.error("a race's process ended with %s: %s", process.returncode, errors.decode(errors="replace"))
        if process.returncode is not None and process.returncode < 0:
            raise NotPlayedError(f"its process was ended, at the latest after {LIMIT_SECONDS:g} s")
        raise NotPlayedError("its process failed, and the dashboard's log says how")
    return msgspec.json.decode(output, type=RaceRun)
