"""A member that is not ours: any program, behind a proxy."""

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
    """What of the cast is not ours.

    Attributes:
        client_command: a program that consumes, with ``{namesrv}``, ``{topic}`` and ``{group}`` where they
            go; None for our own consumer.
        namesrv: of a cluster that is not ours, ``host:port``; None starts one.
    """

    client_command: str | None = None
    namesrv: str | None = None


ALL_OURS: Final = Outside()


def check_command(command: str) -> list[str]:
    """The words of a client command.

    Raises:
        RaceError: it cannot be split, or does not say where the addresses go.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise RaceError(f"--client-command: {error}") from None
    missing = [name for name in PLACEHOLDERS if not any(name in word for word in words)]
    if missing:
        raise RaceError(f"--client-command needs {', '.join(missing)} where its values belong")
    return words


class ForeignMember:
    """A consumer program in a process group of its own; what it does is known from its frames alone."""

    def __init__(self, name: str, words: list[str], journal: Journal, log_path: Path) -> None:
        self.name = name
        self._words = words
        self._process_name = consumer_process(name)
        self._journal = journal
        self._log_path = log_path
        self._process: asyncio.subprocess.Process | None = None

    async def start(self, namesrv: str, plan: ListenerPlan) -> None:
        """Start it and wait for its first heartbeat to be answered.

        Raises:
            RaceError: it cannot be started, ends, or is silent; or the race needs a listener that obeys.
        """
        if plan.blocked:
            self._refuse("keep a message back")
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
        """SIGTERM, then SIGKILL when that takes longer than 10 s."""
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
        """SIGKILL to it and whatever it started. May be repeated."""
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
                last = lines[-1] if lines else "it said nothing"
                raise RaceError(f"{self._words[0]} ended with code {process.returncode}: {last}")
            heartbeat.result()
        finally:
            heartbeat.cancel()
            ended.cancel()

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        # Its whole group: the program may be a script that started the real one.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def _refuse(self, what: str) -> NoReturn:
        raise RaceError(f"a client that is not ours cannot be told to {what}, which this race needs")


def _fill(word: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        word = word.replace(name, value)
    return word
