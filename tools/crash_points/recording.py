"""Runs a workload once under virtual time and records its disk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

import msgspec

from rewindmq.broker.broker import Broker
from rewindmq.broker.config import BrokerConfig, BrokerRole
from rewindmq.broker.store.config import FlushDiskType, StoreConfig
from rewindmq.race.sim import World
from tools.crash_points.driver import BrokerDriver
from tools.crash_points.image import Image
from tools.crash_points.journal import JournalDisk
from tools.crash_points.ledger import CrashLedger, Fact
from tools.crash_points.operations import Operation
from tools.crash_points.workloads import Workload

ROOT: Final = Path("/store")
HOST: Final = "10.0.0.9"
_MASTER: Final = "10.0.0.8"
_PORT: Final = 10_911
_HA_PORT: Final = 10_912
# Small files, so that a short workload rolls each of them.
_STORE: Final = StoreConfig(
    mapped_file_size_commit_log=16_384,
    mapped_file_size_consume_queue=1_200,
    flush_disk_type=FlushDiskType.SYNC_FLUSH,
    max_hash_slot_num=64,
    max_index_num=60,
    compaction_cq_mapped_file_size=46 * 6,
    compaction_mapped_file_size=16_384,
    physical_memory_bytes=1 << 30,
)


@dataclass(frozen=True, slots=True)
class WorkloadRecording:
    """A workload's run.

    Attributes:
        config: of the broker whose disk was recorded.
        image: its disk at the beginning.
        log: a replicated workload's log: the master's bytes; empty otherwise.
    """

    workload: Workload
    config: BrokerConfig
    image: Image
    journal: list[Operation]
    facts: list[tuple[int, Fact]]
    log: bytes


def broker_config(workload: Workload) -> BrokerConfig:
    """Return the configuration of a workload's broker."""
    return BrokerConfig(
        bind_address=HOST,
        allow_open_access=True,
        ha_allowed_addresses=HOST,
        listen_port=_PORT,
        ha_listen_port=_HA_PORT,
        store_path_root_dir=str(ROOT),
        flush_interval_commit_log=2_000,
        flush_consume_queue_thorough_interval=5_000,
        store=msgspec.structs.replace(_STORE, **workload.store),
        **workload.keys,
    )


def record(
    workload: Workload,
    seed: int,
    is_dropped: Callable[[Operation], bool] = lambda operation: False,
) -> WorkloadRecording:
    """Run a workload to its end.

    Args:
        seed: of the world and of the workload's choices.
        is_dropped: see ``JournalDisk``.
    """
    world = World(seed)
    image = Image({}, {Path("/"), ROOT})
    disk = JournalDisk(world.runtime(HOST).clock.now_ms, image, is_dropped=is_dropped)
    config = broker_config(workload)
    ledger = CrashLedger(disk)
    log = world.run(_play(world, workload, config, disk, ledger))
    return WorkloadRecording(workload, config, image, disk.journal, ledger.facts, log)


async def _play(
    world: World, workload: Workload, config: BrokerConfig, disk: JournalDisk, ledger: CrashLedger
) -> bytes:
    master: Broker | None = None
    target = HOST
    if workload.is_replicated:
        target = _MASTER
        changed = msgspec.structs.replace(config, bind_address=target)
        master = Broker(world.runtime(target), changed, world.disk(target))
        await world.spawn(target, master.start())
        config = slave_config(config)
    broker = Broker(world.runtime(HOST), config, disk)
    await world.spawn(HOST, broker.start())
    driver = BrokerDriver(world, f"{target}:{_PORT}", ledger, Random(f"{world.seed} {workload.name}"))
    await workload.play(driver)
    await world.sleep(2.0)
    await driver.close()
    log = b""
    if master is not None:
        log = _log_of(master)
        assert _log_of(broker) == log, "the slave did not follow its master"
        await world.spawn(target, master.close())
    await world.spawn(HOST, broker.close())
    disk.note()
    return log


def slave_config(config: BrokerConfig) -> BrokerConfig:
    """Return the configuration of the slave of a workload's broker."""
    return msgspec.structs.replace(
        config, broker_id=1, broker_role=BrokerRole.SLAVE, ha_master_address=f"{_MASTER}:{_HA_PORT}"
    )


def _log_of(broker: Broker) -> bytes:
    store = broker.context.store
    return b"".join(
        store.log_chunk(position, _STORE.mapped_file_size_commit_log)
        for position in range(0, store.max_commit_log_offset, _STORE.mapped_file_size_commit_log)
    )
