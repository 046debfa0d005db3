"""Runs scenarios and keeps the result of each.

The first request for a result runs all requested scenarios, many at the same time, since a scenario mostly
waits. Two cores are enough because few processes start at once, and few scenarios are in their first steps: a
scenario that reaches its first wait lets the next one start.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rewindmq import AdminClient
from rewindmq.protocol.profile import Profile
from tools.interop.clients import ClientProgram
from tools.interop.driver import DriverProgram
from tools.interop.plan import V49, V53, Play, with_references
from tools.interop.scenarios import SCENARIOS, InteropStage
from tools.interop.scenarios.scenario import Outcome, within
from tools.interop.servers import ORDERED_COMMITS, RewindMQServer, RocketMQServer, Server
from tools.interop.versions import SERVER_4, SERVER_5

# Short delays for redeliveries and transaction checks, the same at both kinds of server.
_QUICK: Final[dict[str, object]] = {
    "messageDelayLevel": "1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s",
    "transactionCheckInterval": 1_000,
    "transactionTimeOut": 1_000,
    # The default of 15 would discard a message after 15 s. A client whose first heartbeat fails, because the
    # route came 3 s late, sends the next one 30 s later; until then the broker can ask nobody.
    "transactionCheckMax": 1_000,
    # Not every library can have the broker create the trace topic by the first record.
    "traceTopicEnable": "true",
}
_REAL: Final[dict[str, object]] = {**_QUICK, **ORDERED_COMMITS}
# Without its timers a 5.5.0 broker deletes no topic: it looks into their metrics.
_TIMERS: Final[dict[str, object]] = {"timerWheelEnable": "true", "mappedFileSizeTimerLog": 1 << 20}
_DRIVERS_STARTING: Final = 2
_BEGINNING: Final = 4
# Without this limit 190 scenarios with 80 processes ran at once, and nearly a hundred threads waited for two
# cores: longer than some libraries wait for an answer.
_PLAYING: Final = 48
# A bound for a scenario that hangs where no bound of its own applies.
_SCENARIO_SECONDS: Final = 900.0
# From its first transaction on, a RocketMQ 5.5.0 broker keeps a core busy once it has been idle for 3 s
# (TransactionalOpBatchService). So scenarios with transactions start after all others at that cluster.
_LAST: Final = "send.transaction"

SERVERS: Final[dict[str, Callable[[], Server]]] = {
    V49: lambda: RewindMQServer(Profile.V49, config=_QUICK),
    V53: lambda: RewindMQServer(Profile.V53, config=_QUICK),
    f"rocketmq-{SERVER_4}": lambda: RocketMQServer(SERVER_4, config=_REAL),
    f"rocketmq-{SERVER_5}": lambda: RocketMQServer(SERVER_5, config={**_REAL, **_TIMERS}),
}


@dataclass
class Result:
    """The result of one scenario.

    Attributes:
        outcome: what the scenario returned; None if it did not run or failed.
        error: why it failed.
        lacking: the operations that the client's library does not have; the scenario then did not run.
        seconds: from its beginning to its end.
    """

    outcome: Outcome | None = None
    error: Exception | None = None
    lacking: frozenset[str] = frozenset()
    seconds: float = 0.0


class Runs:
    """The clusters of a session, and the results of the scenarios at them.

    Args:
        directory: for the drivers' standard error.
        asked: the plays to run; the plays they are compared with run, too.
    """

    def __init__(self, directory: Path, asked: Iterable[Play]) -> None:
        self._directory = directory
        self._plays = with_references(asked)
        self._servers: dict[str, Server] = {}
        self._results: dict[Play, Result] = {}

    def result(self, play: Play) -> Result:
        """Return the result of a requested play."""
        return self.results()[play]

    def results(self) -> dict[Play, Result]:
        """Return all results; the first call runs the plays."""
        if not self._results:
            self._results = self._play()
        return self._results

    def close(self) -> None:
        with ExitStack() as exits:
            for server in self._servers.values():
                exits.callback(server.close)
        self._servers.clear()

    def _play(self) -> dict[Play, Result]:
        # Builds and server starts block, so they come before the event loop.
        failures: dict[ClientProgram | str, Exception] = {}
        for client in dict.fromkeys(play.client for play in self._plays):
            try:
                client.command()
            except Exception as error:
                failures[client] = error
        failures.update(self._start_servers(play.server for play in self._plays))
        results = {
            play: Result(error=failures.get(play.client) or failures.get(play.server)) for play in self._plays
        }
        playable = [play for play, result in results.items() if result.error is None]
        results.update(asyncio.run(_Playing(self._directory, self._servers).all(playable)))
        return results

    def _start_servers(self, names: Iterable[str]) -> dict[str, Exception]:
        """Start each server once; return the error of each that did not start."""
        failures: dict[str, Exception] = {}
        with ThreadPoolExecutor() as threads:
            starting = {name: threads.submit(SERVERS[name]) for name in dict.fromkeys(names)}
        for name, future in starting.items():
            try:
                self._servers[name] = future.result()
            except Exception as error:
                failures[name] = error
        return failures


class _Playing:
    """Runs many plays at the same time."""

    def __init__(self, directory: Path, servers: dict[str, Server]) -> None:
        self._directory = directory
        self._servers = servers
        self._starting = asyncio.Semaphore(_DRIVERS_STARTING)
        self._beginning = asyncio.Semaphore(_BEGINNING)
        self._playing = asyncio.Semaphore(_PLAYING)
        self._results: dict[Play, Result] = {}
        # By server, how many plays are left, except those that come last; the event is set at 0.
        self._left: dict[str, int] = defaultdict(int)
        self._only_last: dict[str, asyncio.Event] = defaultdict(asyncio.Event)

    async def all(self, plays: Sequence[Play]) -> dict[Play, Result]:
        clusters: dict[str, dict[ClientProgram, list[Play]]] = defaultdict(lambda: defaultdict(list))
        for play in plays:
            clusters[play.server][play.client].append(play)
            self._left[play.server] += not _is_last(play)
        for server, count in self._left.items():
            if not count:
                self._only_last[server].set()
        await asyncio.gather(*(self._at(server, drivers) for server, drivers in clusters.items()))
        return self._results

    async def _at(self, server: str, clients: Mapping[ClientProgram, Sequence[Play]]) -> None:
        """Run all plays at one cluster, then close it."""
        await asyncio.gather(*(self._of(client, server, plays) for client, plays in clients.items()))
        await asyncio.to_thread(self._servers.pop(server).close)

    async def _of(self, client: ClientProgram, server: str, plays: Sequence[Play]) -> None:
        """Run all plays of one client at one cluster, in one process or in a process for each play."""
        shares = (
            {str(play): [play] for play in plays} if client.is_alone else {f"{client.name}-{server}": plays}
        )
        async with AdminClient(self._servers[server].namesrv_address) as admin:
            await asyncio.gather(
                *(self._with_driver(client, name, share, admin) for name, share in shares.items())
            )

    async def _with_driver(
        self, client: ClientProgram, name: str, plays: Sequence[Play], admin: AdminClient
    ) -> None:
        """Run some plays in one process."""
        try:
            async with self._starting:
                driver = await client.start(self._directory / f"{name}.log")
        except Exception as error:
            for play in plays:
                self._over(play, Result(error=error))
            return
        try:
            await asyncio.gather(*(self._one(play, driver, admin) for play in plays))
        finally:
            await driver.stop()

    async def _one(self, play: Play, driver: DriverProgram, admin: AdminClient) -> None:
        lacking = SCENARIOS[play.feature].needs - driver.ops
        if play.unplayed is not None:
            lacking |= {play.unplayed}
        if lacking:
            self._over(play, Result(lacking=lacking))
            return
        if _is_last(play):
            await self._only_last[play.server].wait()
        async with self._playing:
            await self._beginning.acquire()
            self._over(play, await self._played(play, driver, admin, _Once(self._beginning.release)))

    async def _played(
        self, play: Play, driver: DriverProgram, admin: AdminClient, begun: Callable[[], None]
    ) -> Result:
        """Run one scenario and return its result; call ``begun`` when it first waits, or at its end."""
        result = Result()
        started = time.monotonic()
        server = self._servers[play.server]
        # The compatibility page names the version.
        is_right = play.client.version in ("", driver.version)
        prefix = f"{play.feature}-{play.client.name}-{server.name.replace('.', '')}"
        try:
            assert is_right, f"{play.client.name} is {driver.version}"
            async with within(_SCENARIO_SECONDS, lambda: "the scenario has not ended"):
                stage = InteropStage(driver, server, admin, prefix, begun)
                outcome = await SCENARIOS[play.feature].play(stage)
                await stage.close()
            result.outcome = outcome
        except Exception as error:
            server.note_logs(error)
            driver.note_log(error)
            result.error = error
        finally:
            begun()
        result.seconds = time.monotonic() - started
        return result

    def _over(self, play: Play, result: Result) -> None:
        self._results[play] = result
        if not _is_last(play):
            self._left[play.server] -= 1
            if not self._left[play.server]:
                self._only_last[play.server].set()


def _is_last(play: Play) -> bool:
    return _LAST in SCENARIOS[play.feature].needs


class _Once:
    """Calls a function at most once, however often it is called itself."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call
        self._is_over = False

    def __call__(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._call()
