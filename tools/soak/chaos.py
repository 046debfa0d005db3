"""What is done to the cluster and its clients while they work: a deck of cards, shuffled by the seed.

All cards are dealt before the deck is shuffled again, so that even a short soak sees each kind. What is
needed alive for the memory's sake is spared: the first member of each group and the first producer always,
the name server and the last broker once the first twelfth of the soak is over.
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
from tools.soak.options import Group, SoakOptions
from tools.soak.pauses import pause
from tools.soak.processes import Crew
from tools.soak.resets import Rewinder

NAMESRV: Final = "namesrv"
MORTAL_PRODUCER: Final = "producer-1"
_DECK: Final = {
    "rewind": 9,
    "kill member": 3,
    "stop member": 2,
    "join": 2,
    "kill producer": 1,
    "kill broker": 2,
    "stop broker": 1,
    "kill namesrv": 1,
    "stop namesrv": 1,
}
_OPENING: Final = ("kill namesrv", "stop namesrv", "kill last broker")
# Seconds that a killed server, and a killed member of a group, stay away.
_LONGEST_OUTAGE: Final = 3.0
_LONGEST_ABSENCE: Final = 1.0


class Chaos:
    """Deals the cards.

    Attributes:
        counts: what was done how often.
    """

    def __init__(
        self,
        options: SoakOptions,
        groups: tuple[Group, ...],
        cluster: AsyncLocalCluster,
        crew: Crew,
        rewinder: Rewinder,
        notes: JournalWriter,
        tell: Callable[[str], None],
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._is_sparing = False
        self._options = options
        self._groups = groups
        self._cluster = cluster
        self._crew = crew
        self._rewinder = rewinder
        self._notes = notes
        self._tell = tell
        self._chance = random.Random(options.seed)
        self._deck: list[str] = []
        self._rewinds: list[Group] = []
        self._outage: asyncio.Task[None] | None = None

    def spare(self) -> None:
        """From now on let live what is to be judged by its memory."""
        self._is_sparing = True

    async def open(self) -> None:
        """What even the shortest soak has to see of those that it spares later."""
        if "kills" not in self._options.without:
            for card in _OPENING:
                await self._act(card)
            assert self._outage is not None
            await self._outage

    async def go_on(self) -> None:
        """Until cancelled; everything that was stopped runs again by then, but for members that left."""
        while True:
            await pause(self._chance.expovariate(1 / self._options.pause_seconds))
            # What has begun is carried to its end, so that nothing stays half done.
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
            self._deck = [card for card, count in _DECK.items() for _ in range(count) if card not in left_out]
            self._chance.shuffle(self._deck)
        return self._deck.pop() if self._deck else "nothing"

    async def _act(self, card: str) -> None:
        what, _, whom = card.partition(" ")
        if what == "rewind":
            done = await self._rewind()
        elif what == "join":
            done = await self._join()
        elif whom == "member":
            done = await self._end_member(kill=what == "kill")
        elif whom == "producer":
            done = await self._kill_producer()
        elif what == "nothing":
            return
        else:
            done = await self._begin_outage(self._victim(whom), kill=what == "kill")
        self._say(f"{card}: {done}")

    def _say(self, what: str) -> None:
        self._notes.note(what)
        self._tell(what)

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

    # Members and producers.

    async def _end_member(self, *, kill: bool) -> str:
        """A killed member comes back, one that is stopped leaves for a while."""
        groups = [group for group in self._groups if self._places(group)]
        if not groups:
            return "there is none to spare"
        group = self._chance.choice(groups)
        place = self._chance.choice(self._places(group))
        await self._crew.end(place, kill=kill)
        self.counts["member killed" if kill else "member left"] += 1
        if kill:
            await pause(self._chance.uniform(0, _LONGEST_ABSENCE))
            await self._crew.start_member(group, place)
        return place

    def _places(self, group: Group) -> list[str]:
        """Members that may be ended; a group of one has no other."""
        first = 0 if group.members == 1 else 1
        return [
            place
            for place in (f"{group.name}-{number}" for number in range(first, group.members + 1))
            if place in self._crew.workers
        ]

    async def _join(self) -> str:
        """One more member, up to one more than usual."""
        vacant = [
            (group, f"{group.name}-{number}")
            for group in self._groups
            if group.members > 1
            for number in range(1, group.members + 1)
            if f"{group.name}-{number}" not in self._crew.workers
        ]
        if not vacant:
            return "all processes run"
        group, place = self._chance.choice(vacant)
        await self._crew.start_member(group, place)
        self.counts["member joined"] += 1
        return place

    async def fill_up(self) -> None:
        """Every group has its members, and there is a second producer."""
        for group in self._groups:
            for number in range(group.members):
                if f"{group.name}-{number}" not in self._crew.workers:
                    await self._crew.start_member(group, f"{group.name}-{number}")

    async def _kill_producer(self) -> str:
        await self._crew.end(MORTAL_PRODUCER, kill=True)
        await self._crew.start_producer(MORTAL_PRODUCER, self._options.rate / 2)
        self.counts["producer killed"] += 1
        return MORTAL_PRODUCER

    # Servers.

    def _victim(self, whom: str) -> str:
        brokers = sorted(self._cluster.brokers)
        if whom == "broker":
            return self._chance.choice(brokers[:-1] if self._is_sparing else brokers)
        return NAMESRV if whom == NAMESRV else brokers[-1]

    async def _begin_outage(self, name: str, *, kill: bool) -> str:
        """Others go on meanwhile, but one server is down at a time."""
        if name == NAMESRV and self._is_sparing:
            return "spared"
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
        self._say(f"{name} is back")
