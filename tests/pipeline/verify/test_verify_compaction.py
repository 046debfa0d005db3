"""The proof for a compaction: honest outputs pass, and each deliberate fault is found and named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rewindmq.broker.store.layout.compaction import ENTRY
from rewindmq.pipeline.compact.job import compact
from rewindmq.pipeline.compact.options import CompactOptions, Format, Scope
from rewindmq.pipeline.errors import PipelineError
from rewindmq.pipeline.snapshot.snapshot import take_snapshot
from rewindmq.pipeline.verify.job import verify
from rewindmq.pipeline.verify.outputs import open_output
from rewindmq.pipeline.verify.report import VerifyReport, render_text
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message.record import QUEUE_OFFSET_AT, decode_record
from tests.pipeline.logs import GROUP, LogWriter, random_store

if TYPE_CHECKING:
    from rewindmq.pipeline.engines.runner import Runner

TOPIC = "Orders"
GRACE_MS = 10_000
STORE = CompactOptions(format=Format.STORE, tombstone_grace_ms=GRACE_MS)
LAYOUT = CompactOptions(
    tombstone_grace_ms=GRACE_MS, log_file_bytes=4_096, cq_file_bytes=4_600, topics=(TOPIC,)
)


def write_store(root: Path) -> None:
    """Keys 0 to 9 many times, in records of one size, with tombstones within and after their grace."""
    writer = LogWriter(root, segment_bytes=65_536, consume_queue_bytes=6_000)
    for number in range(60):
        writer.now += 300
        body = b"" if number % 10 in (3, 4) else b"body %02d" % number
        writer.put(TOPIC, 0, body, keys=f"key-{number % 10}")
        writer.put(TOPIC, 1, b"other", keys=f"key-{number}")
    writer.put(TOPIC, 0, b"", keys="gone!")
    writer.now += GRACE_MS + 5_000
    for number in range(3):
        writer.put(TOPIC, 0, b"", keys=f"key-{number}")
    writer.put(TOPIC, 0, b"last", keys="last")
    writer.put_delayed(TOPIC, 0, b"late", "key-1", 2, deliver=False)
    writer.offsets = {f"{TOPIC}@{GROUP}": {0: 55, 1: 7}}
    writer.finish()


@pytest.fixture(scope="module")
def made(runner: Runner, tmp_path_factory: pytest.TempPathFactory) -> dict[Format, tuple[Path, Path]]:
    """A store with both kinds of compaction."""
    folder = tmp_path_factory.mktemp("compacted")
    root = folder / "store"
    write_store(root)
    compact(runner, root, folder / "fresh", STORE)
    compact(runner, root, folder / "layout", LAYOUT)
    return {Format.STORE: (root, folder / "fresh"), Format.COMPACTION: (root, folder / "layout")}


def log_files(out: Path, queue: str = f"{TOPIC}/0") -> list[Path]:
    """Return the records of a new store, or of one queue of a compaction store."""
    fresh = out / "generation-1" / "commitlog"
    folder = fresh if fresh.exists() else out / "generation-1" / "compaction" / "compactionLog" / queue
    return sorted(folder.iterdir())


def records(path: Path) -> list[tuple[int, MessageExt]]:
    """Place in the file, and record."""
    data, at, found = path.read_bytes(), 0, []
    while data[at + 4 : at + 8] == b"\xda\xa3\x20\xa7":
        message = decode_record(data, at)
        found.append((at, message))
        at += message.store_size
    return found


def poke(path: Path, at: int, data: bytes) -> None:
    content = bytearray(path.read_bytes())
    content[at : at + len(data)] = data
    # Files of an output are links to those of others.
    path.unlink()
    path.write_bytes(content)


def patch(out: Path, offset: int, change: Callable[[bytearray], None], queue_id: int = 0) -> None:
    """Change the record that stands at a queue offset of the output."""
    for path in log_files(out, f"{TOPIC}/{queue_id}"):
        for at, message in records(path):
            if (message.topic, message.queue_id, message.queue_offset) == (TOPIC, queue_id, offset):
                record = bytearray(path.read_bytes()[at : at + message.store_size])
                change(record)
                poke(path, at, bytes(record))
                return
    pytest.fail(f"no queue offset {offset} in queue {queue_id}")


def change_body(record: bytearray) -> None:
    record[88] ^= 0xFF


def change_property(record: bytearray) -> None:
    record[-1] ^= 1


def rename(record: bytearray) -> None:
    """Replace a message by one that was never sent."""
    record[QUEUE_OFFSET_AT : QUEUE_OFFSET_AT + 8] = (4_711).to_bytes(8, "big")


def from_log(out: Path, offset: int) -> Callable[[bytearray], None]:
    """Put another record of the log there, of the same size, with the position that belongs there."""
    [log] = (out.parent / "store" / "commitlog").iterdir()
    at, old = next(
        item
        for item in records(log)
        if (item[1].topic, item[1].queue_id, item[1].queue_offset) == (TOPIC, 0, offset)
    )

    def change(record: bytearray) -> None:
        assert old.store_size == len(record)
        position = record[28:36]
        record[:] = log.read_bytes()[at : at + old.store_size]
        record[28:36] = position

    return change


def swap(out: Path, first: int, second: int) -> None:
    """Exchange two records of one size in queue 1, including their positions."""
    found: dict[int, bytes] = {}

    def note(offset: int) -> Callable[[bytearray], None]:
        return lambda record: found.__setitem__(offset, bytes(record))

    for offset in (first, second):
        patch(out, offset, note(offset), 1)

    def to(offset: int, other: int) -> Callable[[bytearray], None]:
        def change(record: bytearray) -> None:
            record[:] = found[other][:28] + found[offset][28:36] + found[other][36:]

        return change

    # Through a free offset, since both records are found by their offsets.
    patch(out, first, lambda record: record.__setitem__(slice(20, 28), (9_999).to_bytes(8, "big")), 1)
    patch(out, second, to(second, first), 1)
    patch(out, 9_999, to(first, second), 1)


def wrong_entry(out: Path) -> None:
    path = min((out / "generation-1" / "compaction" / "compactionCq" / TOPIC / "1").iterdir())
    fields = list(ENTRY.unpack_from(path.read_bytes(), ENTRY.size))
    fields[1] += 1
    poke(path, ENTRY.size, ENTRY.pack(*fields))


def wrong_offset(out: Path, by: int) -> None:
    path = out / "generation-1" / "config" / "consumerOffset.json"
    table = json.loads(path.read_text())
    table["offsetTable"][f"{TOPIC}@{GROUP}"]["0"] += by
    path.write_text(json.dumps(table))


def spoil_layout(out: Path) -> None:
    """Every fault that a compaction store can have, each at another message."""
    # Superseded by offset 55, which goes.
    patch(out, 55, from_log(out, 5))
    # Remove two tombstones within their grace: for a superseded message, and for a tombstone after its grace.
    patch(out, 61, from_log(out, 3))
    patch(out, 62, from_log(out, 60))
    patch(out, 56, change_body)
    patch(out, 57, change_property)
    patch(out, 58, rename)
    swap(out, 20, 21)
    wrong_entry(out)
    wrong_offset(out, 1)


def spoil_store(out: Path) -> None:
    """The same for a new store, where the offset map gives the original of each message."""
    patch(out, 0, change_body)
    patch(out, 1, change_property)
    patch(out, 2, rename)
    swap(out, 20, 21)
    wrong_offset(out, -1)


# The check that finds a fault, and how an example of it begins.
LAYOUT_FINDINGS = {
    "survivor kept": "Orders/0 queue offset 55 is not in the output",
    "nothing superseded": "Orders/0 queue offset 5 has a newer message",
    "tombstone kept": "Orders/0 queue offset 61 is not in the output",
    "nothing expired": "Orders/0 queue offset 60 should not be",
    "bytes kept": "Orders/0 queue offset 56 differs in",
    "nothing invented": "Orders/0 queue offset 4711 is not in the log",
    "order kept": "Orders/1 queue offset 20 follows",
    "output files": "",
    "offset map": "Orders/0 queue offset ",
    "offset translated": "Orders@G queue 0: 56 instead of 55",
}
STORE_FINDINGS = {
    "bytes kept": "Orders/0 queue offset ",
    "nothing invented": "Orders/0 queue offset 4711 is not in the log",
    "survivor kept": "",
    "order kept": "Orders/1 queue offset 20 follows",
    "offset map": "Orders/",
    "offset translated": "Orders@G queue 0: ",
}


def _findings(report: VerifyReport) -> dict[str, int]:
    return {check.name: check.wrong for check in report.findings()}


@pytest.mark.parametrize("kind", [Format.COMPACTION, pytest.param(Format.STORE, marks=pytest.mark.slow)])
def test_an_honest_compaction_gives_no_finding(
    runner: Runner, made: dict[Format, tuple[Path, Path]], kind: Format
) -> None:
    report = verify(runner, *made[kind])
    assert _findings(report) == {}, render_text(report)
    checked = {check.name: check.checked for check in report.checks}
    assert checked["survivor kept"] >= 60
    assert checked["tombstone kept"] == 3
    assert checked["offset translated"] == 2
    assert checked["bytes kept"] == checked["nothing invented"] == checked["offset map"]


@pytest.mark.parametrize(
    ("kind", "spoil", "expected"),
    [(Format.COMPACTION, spoil_layout, LAYOUT_FINDINGS), (Format.STORE, spoil_store, STORE_FINDINGS)],
)
def test_each_deliberate_fault_is_found_and_named(
    runner: Runner,
    made: dict[Format, tuple[Path, Path]],
    tmp_path: Path,
    kind: Format,
    spoil: Callable[[Path], None],
    expected: dict[str, str],
) -> None:
    root, out = made[kind]
    spoiled = tmp_path / "out"
    shutil.copytree(out, spoiled)
    (tmp_path / "store").symlink_to(root)
    spoil(spoiled)
    checks = open_output(take_snapshot(root), spoiled).check(runner)
    report = VerifyReport(str(root), str(spoiled), checks)
    found = {check.name: check for check in report.findings()}
    assert set(found) == set(expected), render_text(report)
    for name, example in expected.items():
        assert any(text.startswith(example) for text in found[name].examples), found[name]
    assert not report.is_intact


def test_what_is_no_output_of_this_store_is_refused(
    made: dict[Format, tuple[Path, Path]], tmp_path: Path
) -> None:
    root, out = made[Format.STORE]
    with pytest.raises(PipelineError, match="is not the output of a job"):
        open_output(take_snapshot(root), root)
    other = tmp_path / "store"
    shutil.copytree(root, other)
    with pytest.raises(PipelineError, match="was made from"):
        open_output(take_snapshot(other), out)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_random_stores_compacted_in_every_way_are_proved(runner: Runner, tmp_path: Path, seed: int) -> None:
    root = tmp_path / "store"
    random_store(root, seed)
    for kind in Format:
        for scope in Scope:
            out = tmp_path / f"{kind}-{scope}"
            compact(runner, root, out, CompactOptions(format=kind, scope=scope, tombstone_grace_ms=20_000))
            checks = open_output(take_snapshot(root), out).check(runner)
            report = VerifyReport(str(root), str(out), checks)
            assert _findings(report) == {}, render_text(report)
