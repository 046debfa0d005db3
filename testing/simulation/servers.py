"""SimulatedServers: the kit's access to the servers of a simulated cluster."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from rewindmq.cluster.names import NAMESRV
from rewindmq.race.sim.host import HostKilledError
from rewindmq.race.sim.servers import NAMESRV_HOST, SimServers
from rewindmq.testing.clusters.servers import Servers
from rewindmq.testing.errors import KitError
from rewindmq.testing.simulation.fabric import KIT_HOST
from rewindmq.testing.simulation.schedule import Kill, SimulatedSchedule
from rewindmq.testing.simulation.world import SimulatedWorld

# Virtual seconds between two requests of a wait. Consumers store offsets every 5 s, and a request takes more
# time of the processor than the wait.
_POLL_INTERVALS: Final = (1.0, 5.0)


@dataclass(frozen=True, slots=True)
class SimulatedServers(Servers):
    """The name server and the brokers of one simulated test."""

    world: SimulatedWorld = field(kw_only=True)
    schedule: SimulatedSchedule = field(kw_only=True)
    kills: int = field(kw_only=True)
    sim: SimServers = field(kw_only=True)
    # Names of paused servers.
    paused: set[str] = field(default_factory=set)
    _running: dict[str, None] = field(default_factory=dict)
    # The servers that the test has killed and not restarted; the schedule leaves them down.
    _ended: set[str] = field(default_factory=set)
    _clients: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _planned: list[int] = field(default_factory=list)
    # References to restarts that the schedule has begun.
    _restarts: list[asyncio.Future[None]] = field(default_factory=list)

    async def start(self) -> None:
        """Start the name server, then the brokers."""
        self.world.names.update({host: name for name, host in self._hosts.items()})
        for name in self._hosts:
            await self._start(name)

    @property
    def is_own(self) -> bool:
        return True

    @property
    def is_for_one_test(self) -> bool:
        return True

    @property
    def poll_intervals(self) -> tuple[float, float]:
        return _POLL_INTERVALS

    @property
    def is_namesrv_running(self) -> bool:
        return NAMESRV in self._running

    def running_masters(self) -> set[str]:
        return set(self._running) - {NAMESRV}

    def options_for(self, client: str) -> dict[str, Any]:
        """Return the options of a client, which gets a host of its own."""
        # Rmq asks for the options of the kit's own client first.
        number = next(self._clients)
        host = KIT_HOST if number == 1 else f"10.0.2.{number}"
        self.world.names[host] = client
        return {**self.client_options, "runtime": self.world.runtime(host)}

    def new_token(self) -> str:
        """Return the same suffix for each run, as each run has a cluster of its own."""
        return "sim"

    def require_local(self, what: str) -> Any:
        raise KitError(f"{what} needs real processes, but the test is simulated: use the fixture rmq")

    async def kill(self, name: str) -> None:
        self._kill(name)
        self._ended.add(name)

    async def restart(self, name: str) -> None:
        self._kill(name)
        self._ended.discard(name)
        await self._start(name)

    def pause(self, name: str) -> None:
        self.world.pause(self._host(name))
        self.paused.add(name)

    def resume(self, name: str) -> None:
        self.world.resume(self._host(name))
        self.paused.discard(name)

    async def set_disk_full(self, name: str, is_full: bool) -> None:
        if name not in self.sim.hosts:
            raise KitError(f"the cluster has no broker {name!r}; brokers: {', '.join(self.sim.hosts)}")
        if name in self._running:
            self.sim.set_disk_full(name, is_full)
        elif is_full:
            raise KitError(f"{name} is not running")
        (self.full.add if is_full else self.full.discard)(name)

    async def travel(self, seconds: float) -> None:
        """Let virtual time pass: everything that happens meanwhile happens, heartbeats too."""
        await asyncio.sleep(seconds)

    async def restore(self) -> bool:
        """Resume paused servers; killed servers stay down, as the cluster ends with the test."""
        for name in self._hosts:
            if name in self.paused:
                self.resume(name)
        return False

    def consumer_starts(self) -> None:
        """Begin with the kills of the schedule at the first call.

        Before it, the test prepares topics and messages, and cannot expect that a broker dies. The kit does
        not see a start of the application's consumers, so ``Rmq.group`` calls it, too.
        """
        if not self._planned and self.kills:
            loop = asyncio.get_running_loop()
            for number in range(self.kills):
                self._planned.append(number)
                if (kill := self.schedule.kill(number)) is not None:
                    loop.call_later(kill.at, self._carry_out, number, kill)

    def _carry_out(self, number: int, kill: Kill) -> None:
        name = list(self.sim.hosts)[int(kill.victim * len(self.sim.hosts))]
        # The test itself may have killed it.
        if name in self._running:
            self.schedule.note_kill(number, name, kill, self.world.now)
            self._kill(name)
            self._restarts.append(asyncio.ensure_future(self._restart_after(name, kill.down)))

    async def _restart_after(self, name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        if name not in self._running and name not in self._ended:
            with contextlib.suppress(HostKilledError):
                await self._start(name)

    @property
    def _hosts(self) -> dict[str, str]:
        return {NAMESRV: NAMESRV_HOST, **self.sim.hosts}

    def _host(self, name: str) -> str:
        hosts = self._hosts
        if name not in hosts:
            raise KitError(f"the cluster has no server {name!r}; servers: {', '.join(hosts)}")
        return hosts[name]

    def _kill(self, name: str) -> None:
        self.world.kill(self._host(name))
        self._running.pop(name, None)
        self.paused.discard(name)

    async def _start(self, name: str) -> None:
        self._running[name] = None
        if name == NAMESRV:
            await self.sim.start_namesrv()
        else:
            await self.sim.start_broker(name)
            if name in self.full:
                self.sim.set_disk_full(name, True)
