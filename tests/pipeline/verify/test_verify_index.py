"""The proof for an index: an honest output passes, and each deliberate fault is found and named."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from rewindmq.pipeline.index.job import build_index
from rewindmq.pipeline.index.options import IndexOptions
from rewindmq.pipeline.snapshot.snapshot import take_snapshot
from rewindmq.pipeline.verify.job import verify
from rewindmq.pipeline.verify.outputs import open_output
from rewindmq.pipeline.verify.report import VerifyReport, render_text
from tests.pipeline.logs import random_store

if TYPE_CHECKING:
    from rewindmq.pipeline.engines.runner import Runner

OPTIONS = IndexOptions(max_hash_slot_num=256, max_index_num=1_024, message_delay_level="1s 5s 10s")


@pytest.fixture(scope="module")
def made(runner: Runner, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A store, and its index."""
    folder = tmp_path_factory.mktemp("indexed")
    random_store(folder / "store", 4)
    build_index(runner, folder / "store", folder / "out", OPTIONS)
    return folder / "store", folder / "out"


def poke(path: Path, at: int, data: bytes) -> None:
    content = bytearray(path.read_bytes())
    content[at : at + len(data)] = data
    path.unlink()
    path.write_bytes(content)


def spoil(out: Path) -> None:
    """A fault in each part of the output."""
    folder = out / "generation-1"
    entries = folder / "consumequeue" / "Orders" / "0" / ("0" * 20)
    position, size, code = struct.unpack_from(">qiq", entries.read_bytes(), 20)
    poke(entries, 20, struct.pack(">qiq", position, size + 1, code + 1))
    poke(entries, 60, bytes(20))
    poke(folder / "timeindex" / "Orders" / "1" / ("0" * 20), 8, struct.pack(">q", 4_711))
    index = min((folder / "index").iterdir())
    entry = 40 + 256 * 4 + 3 * 20
    position = struct.unpack_from(">q", index.read_bytes(), entry + 9 * 20 + 4)[0]
    poke(index, entry + 4, struct.pack(">q", position))
    copy = min((folder / "messages").iterdir())
    table = pq.read_table(copy)
    copy.unlink()
    pq.write_table(table.slice(1), copy)


FINDINGS = {
    "output: queue without holes": "Orders/0 entry 3 is empty",
    "output: record has a queue entry": "record at ",
    "output: queue entry size": "Orders/0 entry 1 has size ",
    "output: queue entry tagsCode": "Orders/0 entry 1 has tagsCode ",
    "output: time index": "Orders/1 entry 1 has time 4711",
    "output: index key": "",
    "output: key has an index entry": "record at ",
    "output: Parquet copy": "record at ",
}


def test_an_honest_index_gives_no_finding(runner: Runner, made: tuple[Path, Path]) -> None:
    report = verify(runner, *made)
    assert report.is_intact, render_text(report)
    found = {check.name for check in report.findings()}
    # The store was written with other delay levels than RocketMQ's.
    assert found <= {"delivery time", "output: delivery time"}, render_text(report)
    checked = {check.name: check.checked for check in report.checks}
    assert checked["output: Parquet copy"] == 2 * checked["body CRC"]
    assert checked["output: time index"] == checked["output: queue entry size"] == checked["queue entry size"]
    assert checked["output: index key"] > checked["body CRC"]


def test_each_deliberate_fault_is_found_and_named(
    runner: Runner, made: tuple[Path, Path], tmp_path: Path
) -> None:
    root, out = made
    spoiled = tmp_path / "out"
    shutil.copytree(out, spoiled)
    spoil(spoiled)
    report = VerifyReport(str(root), str(spoiled), open_output(take_snapshot(root), spoiled).check(runner))
    found = {check.name: check for check in report.findings() if check.name != "output: delivery time"}
    assert set(found) == set(FINDINGS), render_text(report)
    for name, example in FINDINGS.items():
        assert any(text.startswith(example) for text in found[name].examples), found[name]
    assert not report.is_intact
