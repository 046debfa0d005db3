"""A consumer that is not RewindMQ's: any program, behind a proxy."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from rewindmq.race.errors import RaceError
from rewindmq.race.history import Event, Lab
from rewindmq.race.stage.journal import Journal
from rewindmq.race.stage.stage import GROUP, TOPIC, ListenerPlan, consumer_process

_STOP_SECONDS: Final = 10.0
_HEARTBEAT_SECONDS: Final = 60.0
PLACEHOLDERS: Final = ("{namesrv}", "{topic}", "{group}")


@dataclass(frozen=True, slots=True)
class Outside:
    """The parts of a race that run programs other than RewindMQ's.

    Attributes:
        client_command: command of the consumer program, with the placeholders ``{namesrv}``, ``{topic}`` and
            ``{group}``; None runs RewindMQ's consumer.
        namesrv: ``host:port`` of the name server of a running cluster; None starts a cluster.
    """

    client_command: str | None = None
    namesrv: str | None = None


ALL_REWINDMQ: Final = Outside()


def check_command(command: str) -> list[str]:
    """Split a client command into words.

    Raises:
        RaceError: the command cannot be split, or a placeholder is missing.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise RaceError(f"--client-command: {error}") from None
    missing = [name for name in PLACEHOLDERS if not any(name in word for word in words)]
    if missing:
        raise RaceError(f"--client-command lacks {', '.join(missing)}")
    return words


class ForeignConsumer:
    """A consumer program in a process group of its own; only its frames show what it does."""

    def __init__(self, name: str, words: list[str], journal: Journal, log_path: Path) -> None:
        self.name = name
        self._words = words
        self._process_name = consumer_process(name)
        self._journal = journal
        self._log_path = log_path
        self._process: asyncio.subprocess.Process | None = None

    async def start(self, namesrv: str, plan: ListenerPlan) -> None:
        """Start the program and wait for the answer to its first heartbeat.

        Raises:
            RaceError: the program cannot be started, ends, or sends no heartbeat within 60 s; or the race
                needs a listener under its control.
        """
        if plan.blocked:
            self._refuse("keep a message in its listener")
        values = dict(zip(PLACEHOLDERS, (namesrv, TOPIC, GROUP), strict=True))
        words = [_fill(word, values) for word in self._words]
        self._journal.note(self._process_name, Lab.PROCESS_STARTED)
        try:
            with self._log_path.open("ab") as log:
                self._process = await asyncio.create_subprocess_exec(
                    *words, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
                )
        except OSError as error:
            raise RaceError(f"cannot start {words[0]}: {error.strerror}") from None
        await self._first_heartbeat(self._process)

    async def stop(self) -> None:
        """Send SIGTERM, and SIGKILL if the program still runs after 10 s."""
        self._signal(signal.SIGTERM)
        assert self._process is not None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_STOP_SECONDS):
                await self._process.wait()
        await self.end()
        self._journal.note(self._process_name, Lab.PROCESS_STOPPED)

    async def kill(self) -> None:
        killed = Event(self._journal.now, self._process_name, Lab.PROCESS_KILLED)
        await self.end()
        self._journal.add(killed)

    async def end(self) -> None:
        """Send SIGKILL to the program's process group. May be repeated."""
        if self._process is not None:
            self._signal(signal.SIGKILL)
            await self._process.wait()

    async def suspend(self) -> None:
        self._refuse("suspend")

    async def resume(self) -> None:
        self._refuse("resume")

    async def release(self, offset: int) -> None:
        self._refuse("release a message")

    async def _first_heartbeat(self, process: asyncio.subprocess.Process) -> None:
        heartbeat = asyncio.ensure_future(
            self._journal.until(
                Lab.FRAME_ARRIVED,
                seconds=_HEARTBEAT_SECONDS,
                count=1,
                wanted={"name": "HEART_BEAT", "form": "response", "target": self._process_name},
            )
        )
        ended = asyncio.ensure_future(process.wait())
        try:
            await asyncio.wait((heartbeat, ended), return_when=asyncio.FIRST_COMPLETED)
            if not heartbeat.done():
                lines = self._log_path.read_text(errors="replace").splitlines()
                last = lines[-1] if lines else "it printed nothing"
                raise RaceError(f"{self._words[0]} ended with code {process.returncode}: {last}")
            heartbeat.result()
        finally:
            heartbeat.cancel()
            ended.cancel()

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        # The whole process group: the program may be a script that starts the real client.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def _refuse(self, action: str) -> NoReturn:
        raise RaceError(f"this race must make the consumer {action}, which needs RewindMQ's own consumer")


def _fill(word: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        word = word.replace(name, value)
    return word
