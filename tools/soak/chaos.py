"""Disturbs the cluster and its clients while they work: kills, stops, restarts and resets.

The actions form a deck that the seed shuffles. Every action of the deck happens before the deck is shuffled
again, so that even a short soak sees each kind. Processes whose memory is judged are protected: the first
consumer of each group and the first producer always, the name server and the last broker after the first
twelfth of the soak.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from typing import Final

from rewindmq import AsyncLocalCluster
from rewindmq.protocol.errors import RewindMQError
from tools.soak.journal import ALL, JournalWriter, now_us
from tools.soak.options import SoakGroup, SoakOptions
from tools.soak.pauses import pause
from tools.soak.processes import WorkerPool
from tools.soak.resets import Rewinder

NAMESRV: Final = "namesrv"
KILLABLE_PRODUCER: Final = "producer-1"
_DECK: Final = {
    "rewind": 9,
    "kill consumer": 3,
    "stop consumer": 2,
    "join": 2,
    "kill producer": 1,
    "kill broker": 2,
    "stop broker": 1,
    "kill namesrv": 1,
    "stop namesrv": 1,
}
_OPENING: Final = ("kill namesrv", "stop namesrv", "kill last broker")
# The longest times, s, until a killed server and a killed consumer are started again.
_LONGEST_OUTAGE: Final = 3.0
_LONGEST_ABSENCE: Final = 1.0


class Chaos:
    """Carries out the actions.

    Attributes:
        counts: how often each kind of action was carried out.
    """

    def __init__(
        self,
        options: SoakOptions,
        groups: tuple[SoakGroup, ...],
        cluster: AsyncLocalCluster,
        pool: WorkerPool,
        rewinder: Rewinder,
        notes: JournalWriter,
        progress: Callable[[str], None],
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._protects_servers = False
        self._options = options
        self._groups = groups
        self._cluster = cluster
        self._pool = pool
        self._rewinder = rewinder
        self._notes = notes
        self._progress = progress
        self._chance = random.Random(options.seed)
        self._deck: list[str] = []
        self._rewinds: list[SoakGroup] = []
        self._outage: asyncio.Task[None] | None = None

    def protect_servers(self) -> None:
        """From now on do not end the servers whose memory is judged."""
        self._protects_servers = True

    async def run_opening(self) -> None:
        """End the name server and the last broker, which are protected later: each soak must include this."""
        if "kills" not in self._options.without:
            for action in _OPENING:
                await self._act(action)
            assert self._outage is not None
            await self._outage

    async def run(self) -> None:
        """Act until cancelled; before it returns, it starts again every server that it ended."""
        while True:
            await pause(self._chance.expovariate(1 / self._options.pause_seconds))
            # An action that has begun runs to its end, so that no process is left stopped.
            acting = asyncio.create_task(self._act(self._draw()))
            try:
                await asyncio.shield(acting)
            except asyncio.CancelledError:
                await acting
                if self._outage is not None:
                    await self._outage
                raise

    def _draw(self) -> str:
        if not self._deck:
            without = self._options.without
            left_out = {"rewind"} if "resets" in without else set()
            if "kills" in without:
                left_out |= _DECK.keys() - {"rewind"}
            self._deck = [
                action for action, count in _DECK.items() for _ in range(count) if action not in left_out
            ]
            self._chance.shuffle(self._deck)
        return self._deck.pop() if self._deck else "nothing"

    async def _act(self, action: str) -> None:
        what, _, target = action.partition(" ")
        if what == "rewind":
            done = await self._rewind()
        elif what == "join":
            done = await self._join()
        elif target == "consumer":
            done = await self._end_consumer(kill=what == "kill")
        elif target == "producer":
            done = await self._kill_producer()
        elif what == "nothing":
            return
        else:
            done = await self._begin_outage(self._server_to_end(target), kill=what == "kill")
        self._report(f"{action}: {done}")

    def _report(self, what: str) -> None:
        self._notes.note(what)
        self._progress(what)

    # Resets.

    async def _rewind(self) -> str:
        if not self._rewinds:
            self._rewinds = [group for group in self._groups if group.reset_mode is not None]
            self._chance.shuffle(self._rewinds)
        group = self._rewinds.pop()
        addresses = {name: broker.address for name, broker in self._cluster.brokers.items()}
        try:
            done = await self._rewinder.rewind(group, addresses)
        except RewindMQError as error:
            self.counts[f"{group.reset_mode} reset refused"] += 1
            return f"{group.name}: {error}"
        if "was rewound" in done:
            self.counts[f"{group.reset_mode} reset"] += 1
        return done

    # Consumers and producers.

    async def _end_consumer(self, *, kill: bool) -> str:
        """End a consumer: a killed one is started again soon, a stopped one stays away for a while."""
        groups = [group for group in self._groups if self._places(group)]
        if not groups:
            return "no consumer may be ended"
        group = self._chance.choice(groups)
        place = self._chance.choice(self._places(group))
        await self._pool.end(place, kill=kill)
        self.counts["consumer killed" if kill else "consumer left"] += 1
        if kill:
            await pause(self._chance.uniform(0, _LONGEST_ABSENCE))
            await self._pool.start_consumer(group, place)
        return place

    def _places(self, group: SoakGroup) -> list[str]:
        """Return the consumers that may be ended: all but the first, or the only one of a group."""
        first = 0 if group.consumers == 1 else 1
        return [
            place
            for place in (f"{group.name}-{number}" for number in range(first, group.consumers + 1))
            if place in self._pool.workers
        ]

    async def _join(self) -> str:
        """Start one more consumer, up to one more than usual."""
        vacant = [
            (group, f"{group.name}-{number}")
            for group in self._groups
            if group.consumers > 1
            for number in range(1, group.consumers + 1)
            if f"{group.name}-{number}" not in self._pool.workers
        ]
        if not vacant:
            return "all processes run"
        group, place = self._chance.choice(vacant)
        await self._pool.start_consumer(group, place)
        self.counts["consumer joined"] += 1
        return place

    async def fill_up(self) -> None:
        """Start the consumers that groups lack."""
        for group in self._groups:
            for number in range(group.consumers):
                if f"{group.name}-{number}" not in self._pool.workers:
                    await self._pool.start_consumer(group, f"{group.name}-{number}")

    async def _kill_producer(self) -> str:
        await self._pool.end(KILLABLE_PRODUCER, kill=True)
        await self._pool.start_producer(KILLABLE_PRODUCER, self._options.rate / 2)
        self.counts["producer killed"] += 1
        return KILLABLE_PRODUCER

    # Servers.

    def _server_to_end(self, target: str) -> str:
        brokers = sorted(self._cluster.brokers)
        if target == "broker":
            return self._chance.choice(brokers[:-1] if self._protects_servers else brokers)
        return NAMESRV if target == NAMESRV else brokers[-1]

    async def _begin_outage(self, name: str, *, kill: bool) -> str:
        """End a server for some seconds while all else goes on; only one server is down at a time."""
        if name == NAMESRV and self._protects_servers:
            return "protected"
        if self._outage is not None:
            await self._outage
        seconds = self._chance.uniform(0, _LONGEST_OUTAGE)
        self._outage = asyncio.create_task(self._outage_of(name, seconds, kill=kill))
        return f"{name}, for {seconds:.1f} s"

    async def _outage_of(self, name: str, seconds: float, *, kill: bool) -> None:
        since = now_us()
        await (self._cluster.kill(name) if kill else self._cluster.stop(name))
        await pause(seconds)
        await self._cluster.restart(name)
        self._notes.outage(ALL if name == NAMESRV else name[-1], since)
        kind = "name server" if name == NAMESRV else "broker"
        self.counts[f"{kind} {'killed' if kill else 'stopped'}"] += 1
        self._report(f"{name} is back")
