"""Timer messages survive kills, power failures, and missing or torn files (docs/spec/timers.md 4)."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rewindmq.broker.broker import Broker
from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.store.config import StoreConfig
from rewindmq.broker.store.model import StoredMessage
from rewindmq.protocol.profile import Profile
from rewindmq.race.sim import SimDisk, World
from rewindmq.race.sim.disk import SimFile
from tests.broker.timer.box import stored, waiting

COUNT = 60
ROOT = Path("/store")
WHEEL = ROOT / "timerwheel"
UNITS = ROOT / "timerlog" / f"{0:020d}"
CHECKPOINT = ROOT / "config" / "timercheck"


def make_broker(world: World, disk: SimDisk, flush_ms: int = 500, **store: int) -> Broker:
    settings: dict[str, Any] = {
        "mapped_file_size_commit_log": 1 << 16,
        "mapped_file_size_consume_queue": 6_000,
        "mapped_file_size_timer_log": 1_000,
        "timer_wheel_slots": 128,
        **store,
    }
    config = BrokerConfig(
        bind_address="broker",
        broker_ip1="10.0.0.9",
        store_path_root_dir=str(ROOT),
        flush_interval_commit_log=flush_ms,
        profile=Profile.V53,
        store=StoreConfig(**settings),
    )
    return Broker(world.runtime("broker"), config, disk)


async def started(world: World, disk: SimDisk, flush_ms: int = 500, **store: int) -> Broker:
    broker = make_broker(world, disk, flush_ms, **store)
    await world.spawn("broker", broker.start())
    return broker


async def send(broker: Broker, number: int, delay_ms: int) -> None:
    """To be spawned on the broker's host: the timers it sets have to end with that."""
    text = f"UNIQ_KEY\x01{number}\x02TIMER_DELAY_MS\x01{delay_ms}"
    timers = broker.context.timers
    assert timers is not None
    message = StoredMessage("T", 0, b"%d" % number, text.encode())
    broker.context.sends.appender.put(timers.hook.before_put(message, text))


def due_times(broker: Broker) -> dict[bytes, int]:
    """Return the earliest time at which each message may come: the end of its slot."""
    return {message.body: int(message.properties["TIMER_OUT_MS"]) + 1_000 for message in waiting(broker)}


def judge(broker: Broker, acknowledged: set[bytes]) -> Counter[bytes]:
    """Check that every acknowledged message arrived, and none early; return how often each did."""
    due = due_times(broker)
    delivered = stored(broker)
    assert acknowledged <= {message.body for message in delivered}
    for message in delivered:
        assert message.store_timestamp >= due[message.body]
    return Counter(message.body for message in delivered)


async def restarted(world: World, disk: SimDisk, after: float, **store: int) -> Broker:
    """Kill the broker, and start it again ``after`` seconds later."""
    world.kill("broker")
    disk.release_locks()
    await world.sleep(after)
    return await started(world, disk, **store)


@pytest.mark.parametrize("seed", range(8))
def test_a_broker_killed_again_and_again_loses_nothing_and_delivers_nothing_early(seed: int) -> None:
    """Half of the seeds roll messages."""
    world = World(seed)
    chance = random.Random(seed)
    keys = {"timer_roll_window_slot": 6} if seed % 2 else {}

    async def main() -> None:
        disk = SimDisk(world.runtime("broker").clock.now_ms)
        broker = await started(world, disk, **keys)
        kills = []
        for number in range(COUNT):
            await world.spawn("broker", send(broker, number, chance.choice((1, 900, 5_000, 20_000))))
            await world.sleep(chance.random())
            if chance.random() < 0.15:
                kills.append(world.runtime("broker").clock.now_ms())
                broker = await restarted(world, disk, chance.choice((0.0, 0.5, 20.0)), **keys)
        await world.sleep(30)
        counts = judge(broker, {b"%d" % number for number in range(COUNT)})
        # Only messages that were delivered in the last seconds before a kill come again.
        again = {body for body, count in counts.items() if count > 1}
        for message in stored(broker):
            if message.body in again:
                assert any(kill - message.store_timestamp + 25_000 >= 0 for kill in kills)
        assert not again or kills
        await world.spawn("broker", broker.close())

    world.run(main())


@pytest.mark.parametrize("seed", range(8))
def test_flushed_messages_survive_a_power_failure(seed: int) -> None:
    """Also those whose delivery is recent: the index is saved after the log only."""
    world = World(seed)
    chance = random.Random(seed)

    async def main() -> None:
        disk = SimDisk(world.runtime("broker").clock.now_ms, remembers_synced=True)
        broker = await started(world, disk, flush_ms=3_000)
        number = 0
        while world.now < 10.2 + seed / 8:
            number += 1
            await world.spawn("broker", send(broker, number, chance.choice((1_000, 5_000, 9_000))))
            await world.sleep(chance.random() / 4)
        durable = broker.context.store.flushed_offset
        acknowledged = {message.body for message in waiting(broker) if message.commit_log_offset < durable}
        assert len(acknowledged) > 30
        world.kill("broker")
        disk.lose_power()
        broker = await started(world, disk)
        await world.sleep(30)
        judge(broker, acknowledged)
        await world.spawn("broker", broker.close())

    world.run(main())


def test_a_recall_shortly_before_a_kill_holds_although_the_broker_was_down_at_the_time() -> None:
    """The record that deletes is taken before the slot of the message is delivered."""
    world = World()

    async def delete(broker: Broker, due_ms: int) -> None:
        text = f"UNIQ_KEY\x011\x02TIMER_DEL_UNIQKEY\x011\x02TIMER_DELIVER_MS\x01{due_ms}"
        timers = broker.context.timers
        assert timers is not None
        message = StoredMessage("T", 0, b"deletes", text.encode())
        broker.context.sends.appender.put(timers.hook.before_put(message, text))

    async def main() -> None:
        disk = SimDisk(world.runtime("broker").clock.now_ms)
        broker = await started(world, disk)
        for number in (1, 2):
            await world.spawn("broker", send(broker, number, 10_000))
        due_ms = world.runtime("broker").clock.now_ms() + 10_000
        await world.sleep(5)
        await world.spawn("broker", delete(broker, due_ms))
        broker = await restarted(world, disk, 30.0)
        await world.sleep(5)
        assert [message.body for message in stored(broker)] == [b"2"]
        await world.spawn("broker", broker.close())

    world.run(main())


async def filled(world: World, disk: SimDisk, **store: int) -> Broker:
    """A broker with 20 messages delivered and 20 waiting, at 10 s."""
    broker = await started(world, disk, **store)
    for number in range(40):
        await world.spawn("broker", send(broker, number, 2_000 if number % 2 else 20_000 + number * 300))
    await world.sleep(10)
    assert len(stored(broker)) == 20
    return broker


async def stop(world: World, broker: Broker) -> None:
    await world.spawn("broker", broker.close())


@pytest.mark.parametrize("sleep", [0.0, 60.0, 86_400.0 * 10])
def test_a_clean_stop_delivers_nothing_twice(sleep: float) -> None:
    """And a broker that was down past the times delivers all at the start, in the order of their slots."""
    world = World()

    async def main() -> None:
        disk = SimDisk(world.runtime("broker").clock.now_ms)
        broker = await filled(world, disk, timer_wheel_slots=604_800)
        await stop(world, broker)
        await world.sleep(sleep)
        broker = await started(world, disk, timer_wheel_slots=604_800)
        await world.sleep(30)
        counts = judge(broker, {b"%d" % number for number in range(40)})
        assert set(counts.values()) == {1}
        assert [message.body for message in stored(broker)][20:] == [
            b"%d" % number for number in range(0, 40, 2)
        ]
        await stop(world, broker)

    world.run(main())


@pytest.mark.parametrize(
    "damage", ["no wheel", "short wheel", "no log", "empty log", "torn log", "no log, no wheel"]
)
def test_missing_and_torn_files_lose_nothing(damage: str) -> None:
    """Delivered messages do not come again, because the checkpoint says so."""
    world = World()

    async def main() -> None:
        disk = SimDisk(world.runtime("broker").clock.now_ms)
        broker = await filled(world, disk)
        await stop(world, broker)
        files = disk._files
        if "no wheel" in damage:
            disk.remove(WHEEL)
        if damage == "short wheel":
            files[WHEEL] = SimFile(b"\0" * 100, 0)
        if "no log" in damage:
            for path in disk.files():
                if path.parent == UNITS.parent:
                    disk.remove(path)
        if damage == "empty log":
            files[UNITS] = SimFile(b"", 0)
        if damage == "torn log":
            data = files[UNITS].data
            data[52:520] = bytes(468)  # type: ignore[index]
        broker = await started(world, disk)
        await world.sleep(60)
        counts = judge(broker, {b"%d" % number for number in range(40)})
        assert set(counts.values()) == {1}
        await stop(world, broker)

    world.run(main())


@pytest.mark.parametrize("content", [None, b"", b"\0" * 10])
def test_without_a_checkpoint_all_messages_come_again(content: bytes | None) -> None:
    """As at RocketMQ: nothing says which messages were delivered."""
    world = World()

    async def main() -> None:
        disk = SimDisk(world.runtime("broker").clock.now_ms)
        broker = await filled(world, disk)
        await stop(world, broker)
        disk.remove(CHECKPOINT)
        if content is not None:
            disk.write(CHECKPOINT, content)
        broker = await started(world, disk)
        await world.sleep(60)
        counts = judge(broker, {b"%d" % number for number in range(40)})
        assert all(counts[b"%d" % number] == 1 + number % 2 for number in range(40))
        await stop(world, broker)

    world.run(main())


def test_brokers_without_timers_write_no_timer_files() -> None:
    world = World()

    async def main() -> None:
        disk = SimDisk(world.runtime("broker").clock.now_ms)
        broker = await started(world, disk)
        await world.sleep(60)
        await stop(world, broker)
        assert not [path for path in disk.files() if "timer" in str(path)]

    world.run(main())
