"""Plays every scenario with one client against one cluster, and keeps what came of it.

A run is made once, when its first result is asked for, and with it all runs of the same wave.
Everything in a wave goes on at the same time, since most of a scenario is waiting.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from rewindmq.client import AdminClient
from rewindmq.protocol.profile import Profile
from tools.interop.clients import CLIENTS, Client
from tools.interop.differences import UNPLAYED
from tools.interop.driver import Driver
from tools.interop.results import PLAYED_AGAIN
from tools.interop.scenarios import SCENARIOS, Scenario, Stage
from tools.interop.scenarios.scenario import Outcome, within
from tools.interop.servers import OurServer, RealServer, Server
from tools.interop.versions import SERVER_4, SERVER_5

# Retries and checks back come quickly: the same in theirs and in ours.
QUICK: Final = {
    "messageDelayLevel": "1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s",
    "transactionCheckInterval": 1_000,
    "transactionTimeOut": 1_000,
    # Not every library can have it created by its first record.
    "traceTopicEnable": "true",
}
# So many scenarios of a client go on at once: more would all begin together, which two cores do not carry.
_AT_ONCE: Final = 12
SCENARIO_SECONDS: Final = 150.0
# How ``toolchains`` says that a tool is missing or a build failed is no ``Exception``.
_FAILURES: Final = (Exception, pytest.skip.Exception, pytest.fail.Exception)

SERVERS: Final[dict[str, Callable[[], Server]]] = {
    "rewindmq-v49": lambda: OurServer(Profile.V49, **QUICK),
    # As 5.2 and later are unless told otherwise.
    "rewindmq-v53": lambda: OurServer(Profile.V53, resetMode="server", **QUICK),
    f"rocketmq-{SERVER_4}": lambda: RealServer(SERVER_4, **QUICK),
    f"rocketmq-{SERVER_5}": lambda: RealServer(SERVER_5, **QUICK),
}
# The real cluster that each of ours is compared with.
REFERENCE: Final = {
    "rewindmq-v49": f"rocketmq-{SERVER_4}",
    "rewindmq-v53": f"rocketmq-{SERVER_5}",
}


# Clients that are run at the same time, by name, each with those of our clusters that it meets; it is
# run against their references, too. A wave is as large as two cores carry within a scenario's bounds.
_BOTH: Final = ("rewindmq-v49", "rewindmq-v53")
WAVES: Final[tuple[dict[str, tuple[str, ...]], ...]] = (
    # Two JVMs each; more make each other time out.
    {"java-498-json": ("rewindmq-v49",)},
    {"java-550-json": ("rewindmq-v49",)},
    # The codec is all that is new, so each release meets its own.
    {"java-498-rocketmq": ("rewindmq-v49",)},
    {"go": ("rewindmq-v49",), "node": ("rewindmq-v49",)},
    {"rewindmq-json": ("rewindmq-v49",)},
    # A real 5.5.0 keeps a core busy from its first transaction on, once it has nothing to do for 3 s
    # (TransactionalOpBatchService): what needs none comes before.
    {"java-498-json": ("rewindmq-v53",)},
    {"java-550-json": ("rewindmq-v53",)},
    {"java-550-rocketmq": ("rewindmq-v53",)},
    {"rewindmq-auto": _BOTH},
    {"rewindmq-rocketmq": ("rewindmq-v53",)},
)


def pairs() -> list[tuple[Client, str]]:
    """Each client with each kind of cluster that it is run against, wave by wave."""
    return [pair for wave in WAVES for pair in _pairs(wave)]


def _pairs(wave: Mapping[str, Iterable[str]]) -> list[tuple[Client, str]]:
    clients = {client.name: client for client in CLIENTS}
    return [
        (clients[name], server)
        for name, ours in wave.items()
        for our in ours
        for server in (our, REFERENCE[our])
    ]


@dataclass
class Result:
    """What came of one scenario.

    Attributes:
        outcome: what the scenario returned; None when it was not played or failed.
        error: why it failed.
        lacking: the operations that the client's library does not have; it was not played then.
    """

    outcome: Outcome | None = None
    error: BaseException | None = None
    lacking: frozenset[str] = frozenset()
    seconds: float = 0.0


@dataclass
class Run:
    """One client at one cluster, and what came of each scenario, by feature."""

    client: Client
    server: Server
    results: dict[str, Result] = field(default_factory=dict)


def _unbuilt(clients: Iterable[Client]) -> dict[Client, BaseException]:
    """Those that cannot be started here, and why: each for itself, and tried once."""
    unbuilt: dict[Client, BaseException] = {}
    for client in dict.fromkeys(clients):
        try:
            client.command()
        except _FAILURES as error:
            unbuilt[client] = error
    return unbuilt


class Runs:
    """The clusters of a session and the runs made so far.

    Args:
        directory: where drivers' standard errors go.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._servers: dict[str, Server] = {}
        self._runs: dict[tuple[str, str], Run | BaseException] = {}

    def run(self, client: Client, server: str) -> Run:
        """The run of ``client`` against ``server``.

        Raises:
            BaseException: why it was not made, every time the same.
        """
        key = (client.name, server)
        if key not in self._runs:
            self._play_wave(next(wave for wave in map(_pairs, WAVES) if (client, server) in wave))
        run = self._runs[key]
        if isinstance(run, BaseException):
            raise run
        return run

    def play_alone(self, client: Client, server: str, feature: str, why: str) -> None:
        """One scenario once more, at one of our clusters and at its reference, with nothing else going on.

        What comes of that counts.
        """
        PLAYED_AGAIN.append(f"{feature} with {client.name} at {server}: {why}")
        for name in (server, REFERENCE[server]):
            asyncio.run(self._play_alone(self.run(client, name), SCENARIOS[feature], "-alone"))

    async def _play_alone(self, run: Run, scenario: Scenario, suffix: str) -> None:
        log = self._directory / f"{run.client.name}-{run.server.name}-{scenario.feature}{suffix}.log"
        driver = await run.client.start(log)
        async with AdminClient(run.server.namesrv_address) as admin:
            try:
                await self._one(run, scenario, driver, admin, suffix)
            finally:
                await driver.stop()

    def close(self) -> None:
        with ExitStack() as exits:
            for server in self._servers.values():
                exits.callback(server.close)
        self._servers.clear()

    def _start_servers(self, names: Iterable[str]) -> None:
        missing = [name for name in dict.fromkeys(names) if name not in self._servers]
        with ThreadPoolExecutor() as threads:
            starting = {name: threads.submit(SERVERS[name]) for name in missing}
        started = {name: future.result() for name, future in starting.items() if not future.exception()}
        self._servers.update(started)
        for future in starting.values():
            future.result()

    def _play_wave(self, wave: Sequence[tuple[Client, str]]) -> None:
        # Building and starting block; only the playing is asynchronous.
        unbuilt = _unbuilt(client for client, _ in wave)
        playing = [pair for pair in wave if pair[0] not in unbuilt]
        runs: Sequence[Run | BaseException]
        try:
            self._start_servers(server for _, server in playing)
            runs = asyncio.run(self._play_all(playing))
        except _FAILURES as error:
            runs = [error] * len(playing)
        played = dict(zip(playing, runs, strict=True))
        for client, server in wave:
            self._runs[client.name, server] = unbuilt.get(client) or played[client, server]

    async def _play_all(self, wave: Sequence[tuple[Client, str]]) -> list[Run | BaseException]:
        plays = (self._play(client, self._servers[server]) for client, server in wave)
        return await asyncio.gather(*plays, return_exceptions=True)

    async def _play(self, client: Client, server: Server) -> Run:
        driver = await client.start(self._directory / f"{client.name}-{server.name}.log")
        run = Run(client, server)
        turns = asyncio.Semaphore(_AT_ONCE)

        async def play(scenario: Scenario, admin: AdminClient) -> None:
            async with turns:
                await self._one(run, scenario, driver, admin)

        async with AdminClient(server.namesrv_address) as admin:
            try:
                # The page names it.
                assert client.version in ("", driver.version), f"{client.name} is {driver.version}"
                await asyncio.gather(*(play(scenario, admin) for scenario in SCENARIOS.values()))
            finally:
                await driver.stop()
        await self._play_again(run)
        return run

    async def _play_again(self, run: Run) -> None:
        # Two cores that start JVMs keep no client's bounds, and a library that a dozen scenarios share may
        # be left in a bad way by one. What fails in a process of its own with nothing else going on, fails.
        for feature, result in list(run.results.items()):
            if result.error is not None:
                PLAYED_AGAIN.append(
                    f"{feature} with {run.client.name} at {run.server.name}: {result.error!r}"
                )
                await self._play_alone(run, SCENARIOS[feature], "-again")

    async def _one(
        self, run: Run, scenario: Scenario, driver: Driver, admin: AdminClient, suffix: str = ""
    ) -> None:
        lacking = scenario.needs - driver.ops
        if (reason := UNPLAYED.get((run.client.name, scenario.feature, run.server.name))) is not None:
            lacking |= {reason}
        result = run.results[scenario.feature] = Result(lacking=lacking)
        if result.lacking:
            return
        prefix = f"{scenario.feature}-{run.client.name}-{run.server.name.replace('.', '')}{suffix}"
        started = time.monotonic()
        try:
            async with within(SCENARIO_SECONDS, "the scenario is not over"):
                result.outcome = await scenario.play(Stage(driver, run.server, admin, prefix))
        except Exception as error:
            result.error = error
        result.seconds = time.monotonic() - started
