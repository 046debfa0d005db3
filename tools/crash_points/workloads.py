"""The workloads: short programs that use everything a broker writes to its disk."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from rewindmq.broker.store.config import FlushDiskType
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from tools.crash_points.driver import COMMIT, ROLLBACK, BrokerDriver


@dataclass(frozen=True, slots=True)
class Workload:
    """A program and the broker that it runs on.

    Attributes:
        play: the program.
        keys: keys of ``BrokerConfig``.
        store: keys of ``StoreConfig``.
        is_replicated: the disk is a slave's; the program runs on its master.
        is_indexed: the program queries by key, and every message must be found.
    """

    name: str
    play: Callable[[BrokerDriver], Awaitable[None]]
    keys: Mapping[str, Any] = field(default_factory=dict)
    store: Mapping[str, Any] = field(default_factory=dict)
    is_replicated: bool = False
    is_indexed: bool = False

    @property
    def is_acknowledged_durably(self) -> bool:
        """True if an acknowledged message must survive."""
        return self.store.get("flush_disk_type", FlushDiskType.SYNC_FLUSH) is FlushDiskType.SYNC_FLUSH


async def _messages(driver: BrokerDriver) -> None:
    await driver.save_topic()
    for step in range(4):
        await driver.send(queue_id=step % 2)
        await driver.send_many(4)
        await driver.send_batch(20, queue_id=step % 2)
        await driver.world.sleep(4.0)
        await driver.send_many(3, f"Auto{step % 2}")


async def _retention(driver: BrokerDriver) -> None:
    await driver.save_topic()
    await driver.send_batch(40)
    await driver.send_many(12)
    await driver.world.sleep(50.0)
    await driver.expire()
    await driver.send_many(6)
    await driver.world.sleep(20.0)
    await driver.send_many(12)
    await driver.world.sleep(12.0)
    await driver.clean_queues()
    await driver.send_many(2)


async def _offsets(driver: BrokerDriver) -> None:
    await driver.save_topic()
    await driver.send_batch(30)
    for step in range(5):
        for mode in ResetMode:
            group = f"G-{mode}"
            await driver.heartbeat(group)
            await driver.commit(0, 1, group)
            await driver.commit(4 * step + 1, group=group)
            await driver.reset(mode, 0 if step % 2 else -1, group)
            await driver.commit(4 * step + 2, group=group)
        await driver.commit(step, 1, "Other")
        await driver.world.sleep(7.0)
        await driver.commit(4 * step + 3, group="Other")
        await driver.send()


async def _tables(driver: BrokerDriver) -> None:
    for step in range(4):
        await driver.save_topic("T", 2 + step)
        await driver.save_topic(f"Other{step}", 1)
        await driver.save_group(f"G{step}", 3)
        await driver.save_group("G0", 4 + step)
        await driver.send_many(3, f"Other{step}", 1)
        await driver.send_many(3, f"Auto{step}", 1)
        if step % 2:
            await driver.drop_topic(f"Other{step}")
        await driver.world.sleep(3.0)


async def _lives(driver: BrokerDriver) -> None:
    """Topics are deleted and created again, by request or by a send, with as many queues or fewer."""
    await driver.save_topic("Kept")
    for step in range(4):
        await driver.save_topic("T", 3 - step % 2)
        await driver.send_many(5)
        await driver.send_batch(30)
        await driver.send_many(3, "Auto", 2)
        await driver.world.sleep(3.5)
        await driver.send_many(4)
        await driver.drop_topic("T")
        if step % 2:
            await driver.save_topic("T", 1)
            await driver.send_many(3, queues=1)
            await driver.send("Kept")
            await driver.drop_topic("T")
        await driver.drop_topic("Auto")
        await driver.send_many(2, "Auto", 2)
        await driver.world.sleep(1.5)
    await driver.save_topic("T")
    await driver.send_many(3)


async def _delays(driver: BrokerDriver) -> None:
    await driver.save_topic()
    for step in range(8):
        await driver.send(delay=1 + step % 3)
        await driver.send(delay=1)
        await driver.world.sleep(2.3)
    await driver.world.sleep(15.0)


async def _timers(driver: BrokerDriver) -> None:
    """Some messages are due while others are sent, some are rolled, and some wait at the end."""
    await driver.save_topic()
    for step in range(8):
        for timer_ms in (1, 900, 2_500 + 700 * step, 9_000):
            await driver.send(queue_id=step % 2, timer_ms=timer_ms)
        await driver.send()
        await driver.world.sleep(1.3)


async def _transactions(driver: BrokerDriver) -> None:
    await driver.save_topic()
    for step in range(5):
        first, at = await driver.send_half()
        second, other = await driver.send_half()
        await driver.send_half()
        await driver.end(first, at, COMMIT)
        await driver.world.sleep(8.0)
        await driver.end(second, other, ROLLBACK if step % 2 else COMMIT)


async def _compaction(driver: BrokerDriver) -> None:
    await driver.save_topic("Prices", 1, is_compacted=True)
    for step in range(6):
        for number in range(5):
            await driver.send("Prices", key=f"P{(step + number) % 4}")
        await driver.world.sleep(3.0)


async def _index(driver: BrokerDriver) -> None:
    await driver.save_topic()
    for step in range(8):
        await driver.send_many(3)
        await driver.query(f"K{step}")
        await driver.world.sleep(3.0)


_V53: Final = {"profile": Profile.V53}
_SMALL_TIMERS: Final = {
    "timer_wheel_slots": 128,
    "timer_roll_window_slot": 6,
    "mapped_file_size_timer_log": 600,
}
_ASYNC: Final = {"flush_disk_type": FlushDiskType.ASYNC_FLUSH}
WORKLOADS: Final = (
    Workload("messages", _messages),
    Workload("messages-async", _messages, store=_ASYNC),
    Workload("retention", _retention, {"file_reserved_time": 0}),
    Workload("offsets", _offsets),
    Workload("tables", _tables),
    Workload("lives", _lives),
    Workload("lives-async", _lives, store=_ASYNC),
    Workload("delays", _delays),
    Workload("timers", _timers, _V53, _SMALL_TIMERS),
    Workload("transactions", _transactions, {"transaction_check_interval": 10_000}),
    Workload("compaction", _compaction, _V53),
    Workload("compaction-async", _compaction, _V53, _ASYNC),
    Workload("index", _index, is_indexed=True),
    Workload("replication", _messages, is_replicated=True),
    Workload("replication-lives", _lives, is_replicated=True),
)
