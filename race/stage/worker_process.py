"""The stage's side of a consumer process."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from rewindmq.race.errors import RaceError

_LINE_BYTES: Final = 1 << 20
_EXIT_SECONDS: Final = 5.0


class WorkerProcess:
    """Launches a process of ``worker``, sends it settings and orders, and ends it."""

    def __init__(self, log_path: Path) -> None:
        self._log_path = log_path
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._on_line: Callable[[dict[str, Any]], None] = _ignore
        self._answers: dict[int, asyncio.Future[None]] = {}
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._orders = 0

    async def launch(self, time_scale: float) -> None:
        """Start the process, which loads its modules and waits for ``begin``."""
        with self._log_path.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-m", "rewindmq.race.stage.worker", "--time-scale", str(time_scale)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                limit=_LINE_BYTES,
                # The laboratory handles Ctrl-C at the terminal.
                start_new_session=True,
            )
        self._reading = asyncio.create_task(self._read(self._process))

    async def begin(self, settings: Mapping[str, Any], on_line: Callable[[dict[str, Any]], None]) -> None:
        """Send the consumer's settings and wait until it has started.

        Args:
            on_line: called with every line of the process that is a point or a stall.

        Raises:
            RaceError: the consumer cannot start; the text is the one that the process has sent.
        """
        self._on_line = on_line
        self._write(settings)
        await self._ready

    async def order(self, do: str, **how: Any) -> None:
        """Send an order and wait until it is done.

        Raises:
            RaceError: the process has ended meanwhile.
        """
        number = self.begin_order(do, **how)
        try:
            await self._answers[number]
        finally:
            self._answers.pop(number, None)

    def begin_order(self, do: str, **how: Any) -> int:
        """Send an order without waiting for it; return its number."""
        self._orders += 1
        answer = self._answers[self._orders] = asyncio.get_running_loop().create_future()
        if self._reading is None or self._reading.done():
            _fail(answer, self._gone())
        else:
            self._write({"order": self._orders, "do": do, **how})
        return self._orders

    async def end(self) -> None:
        """Close standard input and wait for the process to end; kill it after 5 s."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_EXIT_SECONDS):
                await self._process.wait()
        await self.kill()

    async def kill(self) -> None:
        """Kill the process; return when it has ended and its output is read. May be repeated."""
        process, reading = self._process, self._reading
        if process is None or reading is None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        await reading
        if process.stdin is not None:
            process.stdin.close()

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        decoder = msgspec.json.Decoder(dict[str, Any])
        async for line in process.stdout:
            self._hear(decoder.decode(line))
        gone = self._gone()
        for waiter in (self._ready, *self._answers.values()):
            _fail(waiter, gone)

    def _hear(self, value: dict[str, Any]) -> None:
        if "done" in value:
            answer = self._answers.get(value["done"])
            if answer is not None and not answer.done():
                answer.set_result(None)
        elif "ready" in value:
            self._ready.set_result(None)
        elif "failed" in value:
            self._ready.set_exception(RaceError(value["failed"]))
        else:
            self._on_line(value)

    def _write(self, value: Mapping[str, Any]) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(value).encode() + b"\n")

    def _gone(self) -> RaceError:
        lines = self._log_path.read_text(errors="replace").splitlines()
        return RaceError(f"a consumer's process has ended: {lines[-1] if lines else 'its log is empty'}")


def _fail(waiter: asyncio.Future[None], error: RaceError) -> None:
    if not waiter.done():
        waiter.set_exception(error)
        # Marks the error as retrieved: asyncio would log it if no task waits for it any more.
        waiter.exception()


def _ignore(value: dict[str, Any]) -> None:
    """Ignore a line that comes before ``begin``."""
