"""Plays every scenario with one client against one cluster, and keeps what came of it.

A run is made once in a session, when its first result is asked for. Everything in it goes on at the same
time, since most of a scenario is waiting.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from interop.clients import CLIENTS, Client
from interop.driver import Driver
from interop.scenarios import SCENARIOS, Scenario, Stage
from interop.scenarios.scenario import Outcome
from interop.servers import OurServer, RealServer, Server
from interop.versions import SERVER_4, SERVER_5

from rewindmq.client import AdminClient
from rewindmq.protocol.profile import Profile

# Retries and checks back come quickly: the same in theirs and in ours.
QUICK: Final = {
    "messageDelayLevel": "1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s",
    "transactionCheckInterval": 1_000,
    "transactionTimeOut": 1_000,
}
SCENARIO_SECONDS: Final = 150.0

SERVERS: Final[dict[str, Callable[[], Server]]] = {
    "rewindmq-v49": lambda: OurServer(Profile.V49, **QUICK),
    "rewindmq-v53": lambda: OurServer(Profile.V53, **QUICK),
    f"rocketmq-{SERVER_4}": lambda: RealServer(SERVER_4, **QUICK),
    f"rocketmq-{SERVER_5}": lambda: RealServer(SERVER_5, **QUICK),
}
# The real cluster that each of ours is compared with.
REFERENCE: Final = {
    "rewindmq-v49": f"rocketmq-{SERVER_4}",
    "rewindmq-v53": f"rocketmq-{SERVER_5}",
}


def pairs() -> list[tuple[Client, str]]:
    """Each client with each kind of cluster that it is run against."""
    return [(client, server) for client in CLIENTS for server in SERVERS]


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
    client: Client
    server: Server
    version: str = ""
    results: dict[str, Result] = field(default_factory=dict)


class Runs:
    """The clusters of a session and the runs made so far.

    Args:
        directory: where drivers' standard errors go.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._servers: dict[str, Server] = {}
        self._runs: dict[tuple[str, str], Run | BaseException] = {}

    def server(self, name: str) -> Server:
        if name not in self._servers:
            self._servers[name] = SERVERS[name]()
        return self._servers[name]

    def run(self, client: Client, server: str) -> Run:
        """The run of ``client`` against ``server``.

        Raises:
            Exception: the driver did not start, every time the same.
        """
        key = (client.name, server)
        if key not in self._runs:
            # Building and starting block; only the playing is asynchronous.
            try:
                client.command()
                self._runs[key] = asyncio.run(self._play(client, self.server(server)))
            except Exception as error:
                self._runs[key] = error
        run = self._runs[key]
        if isinstance(run, BaseException):
            raise run
        return run

    def close(self) -> None:
        for server in self._servers.values():
            server.close()
        self._servers.clear()

    async def _play(self, client: Client, server: Server) -> Run:
        driver = await client.start(self._directory / f"{client.name}-{server.name}.log")
        run = Run(client, server, driver.version)
        async with AdminClient(server.namesrv_address) as admin:
            try:
                await asyncio.gather(
                    *(self._one(run, scenario, driver, admin) for scenario in SCENARIOS.values())
                )
            finally:
                await driver.stop()
        return run

    async def _one(self, run: Run, scenario: Scenario, driver: Driver, admin: AdminClient) -> None:
        result = run.results[scenario.feature] = Result(lacking=scenario.needs - driver.ops)
        if result.lacking:
            return
        prefix = f"{scenario.feature}-{run.client.name}-{run.server.name.replace('.', '')}"
        started = time.monotonic()
        try:
            async with asyncio.timeout(SCENARIO_SECONDS):
                result.outcome = await scenario.play(Stage(driver, run.server, admin, prefix))
        except Exception as error:
            result.error = error
        result.seconds = time.monotonic() - started
