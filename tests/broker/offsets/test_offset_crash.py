"""Consumer offsets after a power failure: the log is durable before the offsets of its messages are."""

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
    broker.context.offsets.table.commit("G", "T", 0, offset)


def stored_offset(broker: Broker) -> int:
    return broker.context.offsets.table.query("G", "T", 0)


@pytest.mark.parametrize("committed", [20, 11, 10, 7])
def test_no_offset_in_the_file_is_newer_than_the_durable_log(committed: int) -> None:
    """Else the group would skip new messages, which take the offsets of those that it had consumed."""
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
        # Later messages and offsets, of which nothing is on the disk.
        await world.spawn("broker", put(broker, 10))
        await world.spawn("broker", commit(broker, 30))
        world.kill("broker")
        disk.lose_power()
        broker = make_broker(world, disk)
        await world.spawn("broker", broker.start())
        assert broker.context.store.max_offset("T", 0) == 20
        assert stored_offset(broker) == committed
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
