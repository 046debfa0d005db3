"""Starts and ends the worker processes for the driver."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Final

from tools.soak.hostile import ATTACKS
from tools.soak.options import SoakGroup, SoakOptions

# The place of the hostile peer.
HOSTILE: Final = "hostile"
_STOP_SECONDS: Final = 15.0
_LINE_BYTES: Final = 65_536


class WorkerPool:
    """All worker processes, running and ended.

    Args:
        namesrv: the address that all workers use.

    Attributes:
        workers: by place, such as ``SoakFenced-0`` or ``producer-1``; a new process takes an ended one's
            place.
    """

    def __init__(self, options: SoakOptions, namesrv: str) -> None:
        self.workers: dict[str, SoakWorker] = {}
        self.ended_by_themselves: list[str] = []
        self._options = options
        self._namesrv = namesrv
        self._incarnations: dict[str, int] = {}
        self._producers = 0
        self._past: dict[str, int] = {}

    async def start_consumer(self, group: SoakGroup, place: str) -> None:
        """Start a consumer of a group."""
        profile = group.profile or self._options.profile
        await self._start(place, group.role, ["--group", group.name, "--profile", profile])

    async def start_producer(self, place: str, rate: float) -> None:
        number = self._producers
        self._producers += 1
        options = ["--producer", str(number), "--rate", str(rate), "--profile", self._options.profile]
        await self._start(place, "producer", options)

    async def start_hostile_peer(self) -> None:
        await self._start(HOSTILE, "hostile", ["--profile", self._options.profile])

    async def _start(self, place: str, role: str, arguments: list[str]) -> None:
        incarnation = self._incarnations[place] = self._incarnations.get(place, -1) + 1
        worker = SoakWorker(f"{place}.{incarnation}", self._options, self._namesrv)
        await worker.start(role, arguments)
        self.workers[place] = worker

    async def end(self, place: str, *, kill: bool) -> None:
        """End a worker, by SIGKILL or cleanly."""
        worker = self.workers.pop(place)
        if kill:
            await worker.kill()
        else:
            await worker.stop()
        self._remember(worker)

    def collect_ended(self) -> list[str]:
        """Remove the processes that ended by themselves, and return their places."""
        dead = [place for place, worker in self.workers.items() if not worker.is_running]
        for place in dead:
            worker = self.workers.pop(place)
            self.ended_by_themselves.append(f"{worker.owner}: {worker.last_log_line()}")
            self._remember(worker)
        return dead

    def count(self, what: str) -> int:
        """Return the sum of a counter over all workers, running and ended, at most a second old."""
        return self._past.get(what, 0) + sum(worker.counts.get(what, 0) for worker in self.workers.values())

    def attacks(self) -> Counter[str]:
        """Return how often the hostile peer made each of its attacks."""
        counts = Counter(self._past)
        for worker in self.workers.values():
            counts.update(worker.counts)
        return Counter({what: count for what, count in counts.items() if what in ATTACKS})

    def pids(self) -> dict[int, str]:
        return {worker.pid: place for place, worker in self.workers.items() if worker.is_running}

    async def close(self) -> None:
        """Stop all processes, cleanly if possible."""
        await asyncio.gather(*(self.end(place, kill=False) for place in list(self.workers)))

    def kill_all(self) -> None:
        """Kill all processes without waiting, for a driver that cannot wait."""
        for worker in self.workers.values():
            worker.abort()

    def _remember(self, worker: SoakWorker) -> None:
        for what, count in worker.counts.items():
            self._past[what] = self._past.get(what, 0) + count


class SoakWorker:
    """One worker process; its journal and log are named after its owner, ``place.incarnation``."""

    def __init__(self, owner: str, options: SoakOptions, namesrv: str) -> None:
        self.owner = owner
        self.counts: dict[str, int] = {}
        self._options = options
        self._namesrv = namesrv
        self._log = options.directory / "logs" / f"{owner}.log"
        self._process: asyncio.subprocess.Process
        self._reading: asyncio.Task[None]

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.returncode is None

    @property
    def is_at_work(self) -> bool:
        """True once it has sent or received a message, or has attacked."""
        return any(self.counts.get(what) for what in ("acked", "delivered", *ATTACKS))

    async def start(self, role: str, arguments: list[str]) -> None:
        options = self._options
        environment = dict(os.environ)
        root = str(Path(__file__).parents[2])
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (root, environment.get("PYTHONPATH"))))
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "tools.soak.worker", role, "--owner", self.owner, *arguments),
                *("--namesrv", self._namesrv, "--time-scale", str(options.time_scale)),
                *("--journal", str(options.journals / f"{self.owner}.journal")),
                *("--without", ",".join(sorted(options.without))),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                limit=_LINE_BYTES,
                env=environment,
                process_group=0,
            )
        self._reading = asyncio.create_task(self._read())

    def tell_to_stop_sending(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(b"stop\n")

    async def kill(self) -> None:
        self.abort()
        await self._process.wait()
        await self._reading

    async def stop(self) -> None:
        """Stop it cleanly; kill it if that takes too long."""
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await self._process.wait()
        except TimeoutError:
            await self.kill()
        await self._reading

    def abort(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    def last_log_line(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines()
        return f"exit code {self._process.returncode}, {lines[-1] if lines else 'no log'}"

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            self.counts = json.loads(line)
