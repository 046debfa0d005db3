"""Consumer offsets after a power failure that took messages from the log, but not the offsets of them."""

from __future__ import annotations

import pytest

from rewindmq.broker.broker import Broker
from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.store.config import StoreConfig
from rewindmq.broker.store.model import PutStatus, StoredMessage
from rewindmq.race.sim import SimDisk, World

_NEVER = 86_400_000


def make_broker(world: World, disk: SimDisk) -> Broker:
    """The log is flushed only by the test; consumerOffset.json is written after 10 s, and then every 5 s."""
    config = BrokerConfig(
        bind_address="broker",
        broker_ip1="10.0.0.9",
        store_path_root_dir="/store",
        flush_interval_commit_log=_NEVER,
        flush_consume_queue_thorough_interval=_NEVER,
        store=StoreConfig(mapped_file_size_commit_log=1 << 16, mapped_file_size_consume_queue=6_000),
    )
    return Broker(world.runtime("broker"), config, disk)


async def put(broker: Broker, count: int) -> None:
    for _ in range(count):
        result = broker.context.store.put_message(StoredMessage("T", 0, b"body"))
        assert result.status is PutStatus.PUT_OK


async def commit(broker: Broker, offset: int) -> None:
    broker.context.offsets.commit("G", "T", 0, offset)


def stored_offset(broker: Broker) -> int:
    return broker.context.offsets.query("G", "T", 0)


@pytest.mark.parametrize(("committed", "expected"), [(20, 10), (11, 10), (10, 10), (7, 7)])
def test_a_group_misses_no_message_that_takes_the_place_of_a_lost_one(committed: int, expected: int) -> None:
    """The group is away while new messages take the offsets of those that it had consumed."""
    world = World(0)

    async def main() -> None:
        disk = SimDisk(world.runtime("broker").clock.now_ms, remembers_synced=True)
        broker = make_broker(world, disk)
        await world.spawn("broker", broker.start())
        await world.spawn("broker", put(broker, 10))
        broker.context.store.flush()
        await world.spawn("broker", put(broker, 10))
        await world.spawn("broker", commit(broker, committed))
        await world.sleep(12)
        world.kill("broker")
        disk.lose_power()
        broker = make_broker(world, disk)
        await world.spawn("broker", broker.start())
        assert broker.context.store.max_offset("T", 0) == 10
        await world.spawn("broker", put(broker, 10))
        assert stored_offset(broker) == expected
        await world.spawn("broker", broker.close())
        broker = make_broker(world, disk)
        await world.spawn("broker", broker.start())
        assert stored_offset(broker) == expected
        await world.spawn("broker", broker.close())

    world.run(main())


def test_a_clean_stop_keeps_an_offset_behind_the_end() -> None:
    """As in RocketMQ: a consumer may store any offset."""
    world = World(0)

    async def main() -> None:
        disk = SimDisk(world.runtime("broker").clock.now_ms)
        broker = make_broker(world, disk)
        await world.spawn("broker", broker.start())
        await world.spawn("broker", put(broker, 10))
        await world.spawn("broker", commit(broker, 20))
        await world.spawn("broker", broker.close())
        broker = make_broker(world, disk)
        await world.spawn("broker", broker.start())
        assert stored_offset(broker) == 20
        await world.spawn("broker", broker.close())

    world.run(main())
