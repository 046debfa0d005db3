"""Half messages outlive a machine that loses power just after they were gone through."""

from __future__ import annotations

from rewindmq.broker.broker import Broker
from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.store.config import StoreConfig
from rewindmq.broker.store.model import StoredMessage
from rewindmq.protocol.names import TRANS_HALF_TOPIC
from rewindmq.race.sim import SimDisk, World

_NEVER = 86_400_000


def make_broker(world: World, disk: SimDisk) -> Broker:
    """The log is flushed only when it must be durable; the groups' progress every 5 s."""
    config = BrokerConfig(
        bind_address="broker",
        broker_ip1="10.0.0.9",
        store_path_root_dir="/store",
        flush_interval_commit_log=_NEVER,
        flush_consume_queue_thorough_interval=_NEVER,
        transaction_check_interval=10_000,
        store=StoreConfig(mapped_file_size_commit_log=1 << 16, mapped_file_size_consume_queue=6_000),
    )
    return Broker(world.runtime("broker"), config, disk)


async def put_half(broker: Broker, now_ms: int) -> None:
    """A half message, as a producer that is gone has left it; it is durable."""
    text = b"TRAN_MSG\x01true\x02PGROUP\x01PG\x02REAL_TOPIC\x01T\x02REAL_QID\x010"
    broker.context.sends.appender.put(
        StoredMessage(TRANS_HALF_TOPIC, 0, b"body", text, born_timestamp=now_ms)
    )
    broker.context.store.flush()


def half_messages(broker: Broker) -> int:
    return broker.context.store.max_offset(TRANS_HALF_TOPIC, 0)


def test_progress_is_kept_only_when_what_was_stored_again_is_durable() -> None:
    """A check stores the message again; after a power failure the progress must not be ahead of the log."""
    world = World(0)

    async def main() -> None:
        now_ms = world.runtime("broker").clock.now_ms
        disk = SimDisk(now_ms, remembers_synced=True)
        broker = make_broker(world, disk)
        await world.spawn("broker", broker.start())
        await world.spawn("broker", put_half(broker, now_ms()))
        # Checked at 10 s; the progress of groups is written at 10 and at 15 s.
        await world.sleep(17)
        assert half_messages(broker) == 2
        world.kill("broker")
        disk.lose_power()
        broker = make_broker(world, disk)
        await world.spawn("broker", broker.start())
        before = half_messages(broker)
        await world.sleep(17)
        assert half_messages(broker) > before
        await world.spawn("broker", broker.close())

    world.run(main())
