"""Delayed messages survive a kill of the broker, and a power failure of its machine."""

from __future__ import annotations

import random

import pytest

from rewindmq.broker.broker import Broker
from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.store.config import StoreConfig
from rewindmq.broker.store.model import StoredMessage
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message.record import decode_records
from rewindmq.protocol.names import SCHEDULE_TOPIC
from rewindmq.race.sim import SimDisk, World

DELAYS_MS = {1: 1_000, 2: 5_000, 3: 10_000}
COUNT = 60


def make_broker(world: World, disk: SimDisk, flush_ms: int = 500) -> Broker:
    config = BrokerConfig(
        bind_address="broker",
        broker_ip1="10.0.0.9",
        store_path_root_dir="/store",
        flush_interval_commit_log=flush_ms,
        store=StoreConfig(mapped_file_size_commit_log=1 << 16, mapped_file_size_consume_queue=6_000),
    )
    return Broker(world.runtime("broker"), config, disk)


async def send(broker: Broker, number: int, level: int) -> None:
    """To be spawned on the broker's host: the timers it sets have to end with that."""
    text = f"DELAY\x01{level}"
    message = StoredMessage("T", 0, b"%d" % number, text.encode())
    broker.context.sends.appender.put(broker.context.delays.hook.before_put(message, text))


def read(broker: Broker, topic: str, queue_id: int = 0) -> list[MessageExt]:
    messages: list[MessageExt] = []
    store = broker.context.store
    while len(messages) < store.max_offset(topic, queue_id):
        messages += decode_records(store.get_message(topic, queue_id, len(messages), 32, None).body)
    return messages


def judge(broker: Broker, acknowledged: set[bytes]) -> int:
    """Check that every acknowledged message arrived in order and not early; return how many arrived twice."""
    delivered = read(broker, "T")
    first: dict[bytes, MessageExt] = {}
    for message in delivered:
        first.setdefault(message.body, message)
    assert acknowledged <= set(first)
    for level, delay in DELAYS_MS.items():
        scheduled = read(broker, SCHEDULE_TOPIC, level - 1)
        mine = [body for body, message in first.items() if message.properties["DELAY"] == str(level)]
        assert mine == [message.body for message in scheduled if message.body in first]
        for message in scheduled:
            assert first[message.body].store_timestamp - message.store_timestamp >= delay
    return len(delivered) - len(first)


@pytest.mark.parametrize("seed", range(8))
def test_a_broker_killed_again_and_again_loses_nothing_and_delivers_nothing_early(seed: int) -> None:
    world = World(seed)
    chance = random.Random(seed)

    async def main() -> None:
        disk = SimDisk(world.runtime("broker").clock.now_ms)
        broker = make_broker(world, disk)
        await world.spawn("broker", broker.start())
        for number in range(COUNT):
            await world.spawn("broker", send(broker, number, chance.randint(1, 3)))
            await world.sleep(chance.random())
            if chance.random() < 0.15:
                world.kill("broker")
                disk.release_locks()
                await world.sleep(chance.choice((0.0, 0.5, 20.0)))
                broker = make_broker(world, disk)
                await world.spawn("broker", broker.start())
        await world.sleep(30)
        judge(broker, {b"%d" % number for number in range(COUNT)})
        await world.spawn("broker", broker.close())

    world.run(main())


@pytest.mark.parametrize("seed", range(8))
def test_flushed_data_survive_a_power_failure(seed: int) -> None:
    """Also for recent deliveries: a level's progress is saved after the log only."""
    world = World(seed)
    chance = random.Random(seed)

    async def main() -> None:
        disk = SimDisk(world.runtime("broker").clock.now_ms, remembers_synced=True)
        broker = make_broker(world, disk, flush_ms=3_000)
        await world.spawn("broker", broker.start())
        number = 0
        # Progress is saved at 10 s, between two flushes.
        while world.now < 10.2:
            number += 1
            await world.spawn("broker", send(broker, number, chance.randint(1, 3)))
            await world.sleep(chance.random() / 4)
        durable = broker.context.store.flushed_offset
        acknowledged = {
            message.body
            for level in DELAYS_MS
            for message in read(broker, SCHEDULE_TOPIC, level - 1)
            if message.commit_log_offset < durable
        }
        assert len(acknowledged) > 30
        world.kill("broker")
        disk.lose_power()
        broker = make_broker(world, disk)
        await world.spawn("broker", broker.start())
        await world.sleep(30)
        judge(broker, acknowledged)
        await world.spawn("broker", broker.close())

    world.run(main())


def test_a_clean_stop_delivers_nothing_twice() -> None:
    world = World()

    async def main() -> None:
        disk = SimDisk(world.runtime("broker").clock.now_ms)
        broker = make_broker(world, disk)
        await world.spawn("broker", broker.start())
        for number in range(COUNT):
            await world.spawn("broker", send(broker, number, 1 + number % 3))
            await world.sleep(0.3)
            if number % 20 == 19:
                await world.spawn("broker", broker.close())
                broker = make_broker(world, disk)
                await world.spawn("broker", broker.start())
        await world.sleep(30)
        assert judge(broker, {b"%d" % number for number in range(COUNT)}) == 0
        await world.spawn("broker", broker.close())

    world.run(main())
