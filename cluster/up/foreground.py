"""Runs a cluster in the foreground until a stop signal."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NoReturn

from rewindmq.cluster.local_cluster import LocalCluster
from rewindmq.cluster.names import NAMESRV, broker_names, slave_names, spread_ports
from rewindmq.cluster.server_process import ServerProcess
from rewindmq.cluster.signals import stop_signals
from rewindmq.cluster.up.companion import Companion
from rewindmq.cluster.up.control import control_socket
from rewindmq.cluster.up.dashboard_process import DashboardProcess, dashboard_process
from rewindmq.cluster.up.display import ready_json, ready_table
from rewindmq.cluster.up.entrances import Entrances
from rewindmq.cluster.up.members import Members
from rewindmq.cluster.up.ports import read_ports, refuse_taken_ports, write_ports
from rewindmq.protocol.remoting.address import parse_address
from rewindmq.protocol.remoting.runtime import system_runtime

NAMESRV_PORT: Final = 9876
_EXIT_INTERRUPTED: Final = 130
_WATCH_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class Foreground:
    """What ``rewindmq up`` runs.

    Attributes:
        options: of ``LocalCluster``, without its ports.
        directory: remembers the ports; None: the cluster uses a temporary directory.
        namesrv_port: None takes the remembered port, else 9876; 0 the remembered port, else any free one.
        broker_port: broker-a's port; 0 takes the remembered ports, else any free ones.
        new_ports: ignore the remembered ports.
        create_topics: called with the running cluster, before it is reported ready; None: no topics.
        as_json: print one line of JSON instead of a table.
        companion: runs beside the cluster; None: nothing does.
        dashboard_port: of the dashboard's process; None: there is none.
    """

    options: Mapping[str, Any]
    directory: Path | None
    namesrv_port: int | None
    broker_port: int
    new_ports: bool = False
    create_topics: Callable[[LocalCluster], Coroutine[Any, Any, None]] | None = field(default=None)
    as_json: bool = False
    companion: Companion | None = None
    dashboard_port: int | None = None

    async def run(self) -> int:
        """Run until SIGINT, SIGTERM or SIGHUP; return the exit code: 130 after SIGINT, else 0.

        Raises:
            ClusterError: a process could not start, or has no port; nothing is left running.
            OSError: the directory cannot be written.
        """
        running = asyncio.create_task(self._run_until_cancelled())
        stopped_by: list[signal.Signals] = []

        def stop(number: signal.Signals) -> None:
            # A second signal must not interrupt the stop that the first one began.
            if not stopped_by:
                running.cancel()
            stopped_by.append(number)

        loop = asyncio.get_running_loop()
        for number in stop_signals():
            loop.add_signal_handler(number, stop, number)
        await asyncio.wait((running,))
        if not running.cancelled():
            running.result()
        return _EXIT_INTERRUPTED if stopped_by[0] is signal.SIGINT else 0

    async def _run_until_cancelled(self) -> NoReturn:
        remembered = self._remembered()
        cluster = LocalCluster(directory=self.directory, ports=self._ports(remembered), **self.options)
        async with cluster as started:
            members = Members(started)
            if self.directory is not None:
                write_ports(self.directory, remembered | _ports_of(members.processes))
            if self.create_topics is not None:
                await self.create_topics(cluster)
            async with (
                self._beside(cluster, members) as entrances,
                self._dashboard(cluster) as dashboard,
                control_socket(cluster.directory, members, entrances),
            ):
                url = None if dashboard is None else dashboard.url
                text = ready_table(members.processes, cluster.namesrv_address, entrances, url)
                print(ready_json(cluster, entrances, url) if self.as_json else text, flush=True)
                timers = system_runtime().timers
                while True:
                    await timers.sleep(_WATCH_SECONDS)
                    members.report_ended()
                    if dashboard is not None:
                        dashboard.report_ended()

    @contextlib.asynccontextmanager
    async def _beside(self, cluster: LocalCluster, members: Members) -> AsyncIterator[Entrances | None]:
        if self.companion is None:
            yield None
            return
        async with self.companion(cluster, members) as entrances:
            yield entrances

    @contextlib.asynccontextmanager
    async def _dashboard(self, cluster: LocalCluster) -> AsyncIterator[DashboardProcess | None]:
        if self.dashboard_port is None:
            yield None
            return
        log = cluster.directory / "logs" / "dashboard.log"
        timers = system_runtime().timers
        namesrv = cluster.namesrv_address
        async with dashboard_process(
            namesrv,
            self.dashboard_port,
            log,
            timers,
            history=cluster.directory / "resets",
            time_scale=self.options["time_scale"],
        ) as process:
            yield process

    def _remembered(self) -> dict[str, int]:
        if self.directory is None or self.new_ports:
            return {}
        return read_ports(self.directory)

    def _ports(self, remembered: Mapping[str, int]) -> dict[str, int]:
        """Return the port of each process that has a chosen one."""
        brokers, slaves = self.options["brokers"], self.options["slaves"]
        names = (*broker_names(brokers), *slave_names(brokers, slaves))
        chosen = {NAMESRV: self.namesrv_port or 0, **spread_ports(names, self.broker_port)}
        kept = {name: port for name, port in remembered.items() if chosen.get(name) == 0}
        if self.namesrv_port is None and NAMESRV not in kept:
            chosen[NAMESRV] = NAMESRV_PORT
        if kept:
            assert self.directory is not None
            refuse_taken_ports(self.options["host"], kept, self.directory)
        return chosen | kept


def _ports_of(processes: tuple[ServerProcess, ...]) -> dict[str, int]:
    return {process.name: parse_address(process.address)[1] for process in processes}
