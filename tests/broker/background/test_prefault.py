"""The pages of a growing log come into memory before they are written."""

from __future__ import annotations

import asyncio
import ctypes
import mmap
import platform
import subprocess
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

    def prefault(self, path: Path, start: int, end: int) -> None:
        data = self.read(path)
        assert data is not None
        assert not data[start:end].strip(b"\0"), "the log has written this part already"
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
    disk.prefault = lambda path, start, end: parts.append((start, end))  # type: ignore[method-assign]
    growing = LogPrefault(workers, disk)
    growing.begin(tmp_path, 0, MIB)
    growing.begin(tmp_path, MIB, 2 * MIB)
    await workers.finish()
    growing.begin(tmp_path, 2 * MIB, 3 * MIB)
    await workers.finish()
    assert parts == [(0, MIB), (2 * MIB, 3 * MIB)]


def cached_pages(path: Path) -> int:
    """Return how many pages of a file are in the page cache, as mincore(2) tells."""
    with path.open("r+b") as file:
        mapping = mmap.mmap(file.fileno(), 0)
    pages = (ctypes.c_ubyte * (len(mapping) // mmap.PAGESIZE))()
    first = ctypes.c_char.from_buffer(mapping)
    library = ctypes.CDLL(None)
    library.mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
    assert library.mincore(ctypes.addressof(first), len(mapping), ctypes.addressof(pages)) == 0
    return sum(page & 1 for page in pages)


@pytest.mark.skipif(LINUX < (5, 14), reason="MADV_POPULATE_READ came with Linux 5.14")
def test_a_prefaulted_part_is_in_memory_and_unchanged(tmp_path: Path) -> None:
    disk, path = OsDisk(), tmp_path / "log"
    disk.create(path, 64 * MIB)
    disk.allocate(path, 0, 64 * MIB)
    mapping = disk.map(path, 64 * MIB)
    mapping[33 * MIB : 33 * MIB + 5] = b"hello"
    before = cached_pages(path)
    # Neither end is that of a page.
    disk.prefault(path, 4 * MIB + 100, 60 * MIB - 100)
    assert cached_pages(path) >= max(before, 56 * MIB // mmap.PAGESIZE)
    assert before < 40 * MIB // mmap.PAGESIZE
    assert mapping[33 * MIB : 33 * MIB + 5] == b"hello"
    assert mapping[:].replace(b"hello", bytes(5)) == bytes(64 * MIB)


def test_a_file_that_is_deleted_or_cut_meanwhile_is_not_prefaulted(tmp_path: Path) -> None:
    path = tmp_path / "log"
    prefault(path, 0, MIB)
    assert not path.exists()
    path.write_bytes(b"hello")
    prefault(path, 0, MIB)
    assert path.read_bytes() == b"hello"


@pytest.mark.parametrize("begin", ["ctypes.CDLL = lambda name: object()", "sys.modules['ctypes'] = None"])
def test_a_system_that_cannot_prefault_does_nothing(tmp_path: Path, begin: str) -> None:
    path = tmp_path / "log"
    path.write_bytes(bytes(MIB))
    program = (
        f"import ctypes, pathlib, sys\n{begin}\nfrom rewindmq.broker.store.files.prefault import prefault\n"
        f"prefault(pathlib.Path({str(path)!r}), 0, {MIB})\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    assert path.read_bytes() == bytes(MIB)
