"""The pages of a growing log come into memory before they are written."""

from __future__ import annotations

import asyncio
import mmap
import platform
import sys
from pathlib import Path

import pytest

from rewindmq.broker.background.prefault import LogPrefault
from rewindmq.broker.broker import Broker
from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.store.config import StoreConfig
from rewindmq.broker.store.files.disk import OsDisk
from rewindmq.broker.store.files.prefault import prefault
from rewindmq.broker.store.model import PutStatus, StoredMessage
from rewindmq.race.sim import SimDisk, World
from tests.support.hand_workers import HandWorkers

MIB = 1 << 20
LINUX = tuple(map(int, platform.release().split(".")[:2])) if sys.platform == "linux" else (0, 0)


class RecordingDisk(SimDisk):
    """Records the parts of the log that it was told to prefault, as MiB."""

    def __init__(self, world: World) -> None:
        super().__init__(lambda: 0)
        self.parts: list[tuple[float, float]] = []

    def prefault(self, mapping: mmap.mmap, start: int, end: int) -> None:
        assert not mapping[start:end].strip(b"\0"), "the log has written this part already"
        self.parts.append((start / MIB, end / MIB))


def make_broker(world: World, disk: SimDisk) -> Broker:
    config = BrokerConfig(
        bind_address="broker",
        store_path_root_dir="/store",
        store=StoreConfig(mapped_file_size_commit_log=14 * MIB),
    )
    return Broker(world.runtime("broker"), config, disk)


def test_the_log_is_prefaulted_behind_its_blocks_once_it_grows() -> None:
    world = World(seed=0)
    disk = RecordingDisk(world)

    async def scenario() -> None:
        broker = make_broker(world, disk)
        await broker.start()
        store, expected = broker.context.store, []
        # Blocks are allocated in steps of 4 MiB; a segment ends at 14 MiB.
        for number in range(36):
            result = store.put_message(StoredMessage("T", 0, bytes([number + 1]) * (MIB // 2 - 200)))
            assert result.status is PutStatus.PUT_OK
            await asyncio.sleep(0.001)
            if number in (8, 16):
                expected.append({8: (8.0, 12.0), 16: (12.0, 14.0)}[number])
            assert disk.parts == expected
        await broker.close()

    world.run(scenario())


async def test_one_part_is_prefaulted_at_a_time(tmp_path: Path) -> None:
    workers, disk, parts = HandWorkers(), OsDisk(), []
    disk.prefault = lambda mapping, start, end: parts.append((start, end))  # type: ignore[method-assign]
    growing = LogPrefault(workers, disk)
    mapping = mmap.mmap(-1, 4 * MIB)
    growing.begin(mapping, 0, MIB)
    growing.begin(mapping, MIB, 2 * MIB)
    await workers.finish()
    growing.begin(mapping, 2 * MIB, 3 * MIB)
    await workers.finish()
    assert parts == [(0, MIB), (2 * MIB, 3 * MIB)]


def resident_bytes(path: Path) -> int:
    """Return how many bytes of a file this process has mapped in memory."""
    sections = Path("/proc/self/smaps").read_text().split(f"{path}\n")
    assert len(sections) == 2
    (line,) = [line for line in sections[1].splitlines()[:10] if line.startswith("Rss:")]
    return int(line.split()[1]) * 1_024


@pytest.mark.skipif(LINUX < (5, 14), reason="MADV_POPULATE_READ came with Linux 5.14")
def test_a_prefaulted_part_is_in_memory_and_unchanged(tmp_path: Path) -> None:
    disk, path = OsDisk(), tmp_path / "log"
    disk.create(path, 64 * MIB)
    disk.allocate(path, 0, 8 * MIB)
    mapping = disk.map(path, 64 * MIB)
    mapping[5 * MIB : 5 * MIB + 5] = b"hello"
    assert resident_bytes(path) < 3 * MIB
    # Neither end is that of a page.
    disk.prefault(mapping, 4 * MIB + 100, 8 * MIB - 100)
    assert resident_bytes(path) >= 4 * MIB
    assert mapping[5 * MIB : 5 * MIB + 5] == b"hello"
    assert mapping[: 8 * MIB].replace(b"hello", bytes(5)) == bytes(8 * MIB)


def test_a_system_that_refuses_to_prefault_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"hello".ljust(mmap.PAGESIZE, b"\0"))
    with path.open("r+b") as file:
        mapping = mmap.mmap(file.fileno(), mmap.PAGESIZE)
        # The pages are beyond the end of the file, which Linux reports as a fault.
        file.truncate(0)
        prefault(mapping, 0, mmap.PAGESIZE)
        mapping.close()
