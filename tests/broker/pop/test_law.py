"""The law of POP: each message is acknowledged, in flight, or delivered again; none twice within its
invisible time.

A broker process is killed and started again in between. As in RocketMQ, what was popped shortly before a kill
may come again at once, because offsets are saved every 5 s.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress

import pytest

from rewindmq.broker.broker import Broker
from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.store.config import StoreConfig
from rewindmq.protocol.errors import RemotingError
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.race.sim import SimDisk, World
from tests.broker.pop.asking import Lent, ack, batch_ack, change, pop
from tests.support.peer import Peer

HOST = "10.0.0.1"
PORT = 10_911
INVISIBLE_MS = (1_000, 3_000, 10_000, 31_000)


class Story:
    """What the clients have seen.

    Attributes:
        sent: messages whose sends succeeded.
        acked: messages whose ack succeeded while they were in flight.
        tried: messages for which an ack was sent: a late one counts if the message is not revived yet.
        until: when the invisible time of each message's last delivery ends, s.
        kills: when the broker was killed.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self.sent: set[bytes] = set()
        self.acked: dict[bytes, float] = {}
        self.tried: set[bytes] = set()
        self.until: dict[bytes, float] = {}
        self._first_at: dict[bytes, float] = {}
        self._place_at: dict[tuple[str, int, int], float] = {}
        self.kills: list[float] = []
        self.deliveries = 0

    def deliver(self, lent: Lent, popped_at: float, invisible_ms: int) -> None:
        body, now = lent.body, self._world.now
        # A kill brings a message back from each place where it was stored, and from each of them once.
        first_at = self._first_at.setdefault(body, now)
        place = lent.topic, lent.queue_id, lent.offset
        place_at = self._place_at.get(place)
        assert place_at is None or self._was_killed_since(place_at), f"{body!r} comes twice from {place}"
        if not self._was_killed_since(first_at):
            assert body not in self.acked, (
                f"{body!r} comes again at {now}, acknowledged at {self.acked[body]}"
            )
            assert now >= self.until.get(body, 0.0), f"{body!r} comes again before {self.until[body]}"
        self.acked.pop(body, None)
        self.tried.discard(body)
        self._place_at[place] = now
        self.until[body] = popped_at + invisible_ms / 1_000
        self.deliveries += 1

    def _was_killed_since(self, moment: float) -> bool:
        return any(kill >= moment for kill in self.kills)

    def acknowledge(self, body: bytes) -> None:
        if self._world.now < self.until[body]:
            self.acked[body] = self._world.now

    @property
    def open(self) -> set[bytes]:
        """The messages that no ack has reached, in time or late."""
        return self.sent - self.tried


class Play:
    """A broker that is killed, and two clients."""

    def __init__(self, world: World, disk: SimDisk, seed: int) -> None:
        self.world = world
        self.story = Story(world)
        self._disk = disk
        self._random = random.Random(seed)
        self._count = 0

    def runtime(self, host: str) -> Runtime:
        return self.world.runtime(host)

    async def start(self) -> None:
        config = BrokerConfig(
            broker_name="broker-a",
            bind_address=HOST,
            broker_ip1=HOST,
            listen_port=PORT,
            store_path_root_dir="/store",
            profile=Profile.V53,
            store=StoreConfig(
                mapped_file_size_commit_log=1 << 20,
                mapped_file_size_consume_queue=20_000,
                mapped_file_size_timer_log=100_000,
                timer_wheel_slots=128,
            ),
        )
        broker = Broker(self.world.runtime(HOST), config, self._disk)
        await self.world.spawn(HOST, broker.start())

    async def kill(self) -> None:
        self.world.kill(HOST)
        self._disk.release_locks()
        self.story.kills.append(self.world.now)
        await self.world.sleep(self._random.uniform(0.1, 4.0))
        await self.start()

    async def send(self, peer: Peer) -> None:
        for _ in range(self._random.randrange(1, 8)):
            self._count += 1
            body = b"%d" % self._count
            response = await peer.send(body=body, queue_id=self._random.randrange(2))
            if response.code == 0:
                self.story.sent.add(body)

    async def consume(self, peer: Peer, *, acks: float = 0.6, invisible: int | None = None) -> int:
        story, chance = self.story, self._random
        invisible = chance.choice(INVISIBLE_MS) if invisible is None else invisible
        asked_at = self.world.now
        popped = await pop(
            peer, count=chance.choice((1, 4, 32)), invisible=invisible, poll=chance.choice((0, 500))
        )
        if popped.response.code != 0:
            return 0
        # The invisible time begins when the broker pops.
        popped_at = (popped.header.pop_time - self._epoch_ms) / 1_000
        assert asked_at - 0.001 <= popped_at
        for lent in popped.messages:
            story.deliver(lent, popped_at, invisible)
        taken = [lent for lent in popped.messages if chance.random() < acks]
        if chance.random() < 0.3:
            await self.world.sleep(chance.uniform(0.0, 3.0))
        story.tried.update(lent.body for lent in taken)
        if taken and chance.random() < 0.5:
            if (await batch_ack(peer, taken)).code == 0:
                for lent in taken:
                    story.acknowledge(lent.body)
        else:
            for lent in taken:
                if (await ack(peer, lent)).code == 0:
                    story.acknowledge(lent.body)
        for lent in popped.messages:
            if lent not in taken and chance.random() < 0.3 and self.world.now < story.until[lent.body]:
                longer = chance.choice(INVISIBLE_MS)
                asked_at = self.world.now
                response, renewed = await change(peer, lent, longer)
                if response.code == 0:
                    story.until[lent.body] = asked_at + longer / 1_000
                    if chance.random() < acks:
                        story.tried.add(lent.body)
                        if (await ack(peer, renewed)).code == 0:
                            story.acknowledge(lent.body)
        return len(popped.messages)

    @property
    def _epoch_ms(self) -> float:
        return self.runtime("probe").clock.now_ms() - self.world.now * 1_000


@pytest.mark.parametrize("seed", range(4))
def test_the_law_of_pop(seed: int) -> None:
    world = World(seed)
    play = Play(world, world.disk(HOST), seed)

    async def act(peer: Peer, chance: random.Random, end: float) -> None:
        while world.now < end:
            with suppress(RemotingError):
                await (play.send(peer) if chance.random() < 0.3 else play.consume(peer))
            await world.sleep(chance.uniform(0.0, 0.5))

    async def scenario() -> None:
        await play.start()
        peers = [
            Peer(play.runtime(f"10.0.1.{number}"), f"{HOST}:{PORT}", client_id=f"c{number}")
            for number in range(2)
        ]
        await peers[0].create_topic(write=2, read=2)
        chance = random.Random(seed)
        actors = [
            asyncio.ensure_future(act(peer, random.Random(seed * 10 + number), 60.0))
            for number, peer in enumerate(peers)
        ]
        for _ in range(seed % 3 + 1 if seed else 0):
            await world.sleep(chance.uniform(5.0, 20.0))
            await play.kill()
        await asyncio.gather(*actors)
        quiet_since = world.now
        while world.now < quiet_since + 40.0:
            if await play.consume(peers[0], acks=1.0, invisible=10_000):
                quiet_since = world.now
            await world.sleep(0.2)
        for peer in peers:
            await peer.client.close()

    world.run(scenario())
    story = play.story
    assert story.open == set()
    assert len(story.sent) > 50
    assert story.deliveries > len(story.sent)
