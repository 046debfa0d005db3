"""The simulated disk: a file is what was written to it."""

from __future__ import annotations

import mmap
from pathlib import Path

from rewindmq.race.sim import SimDisk


def test_a_file_keeps_what_a_mapping_gives_up() -> None:
    """As a file on a disk does: private memory would become zeros."""
    disk = SimDisk(lambda: 0)
    path = Path("/store/file")
    disk.create(path, 4_096)
    disk.map(path, 4_096)[:4] = b"data"
    disk.map(path, 4_096).madvise(mmap.MADV_DONTNEED, 0, 4_096)
    assert disk.map(path, 4_096)[:4] == b"data"
