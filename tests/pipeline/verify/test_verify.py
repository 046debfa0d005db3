"""Verification of stores: intact stores give no finding, and each deliberate fault is reported."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rewindmq.broker.store.layout.index import (
    ENTRY,
    HEADER,
    HEADER_BYTES,
    SLOT,
    file_bytes,
    index_keys,
    key_hash,
    time_diff,
)
from rewindmq.pipeline.verify.job import verify_stores
from rewindmq.pipeline.verify.report import RULES, Check, Severity, Tally, VerifyReport, render_text
from tests.pipeline.logs import GROUP, LogWriter, random_store
from tests.pipeline.reference import read_log
from tests.support.unused_topics import remove_unused_topics

if TYPE_CHECKING:
    from rewindmq.pipeline.engines.runner import Runner

TOPIC = "Orders"
QUEUE_ENTRY = struct.Struct(">qiq")
SLOTS, ENTRIES = 128, 512
BODY_AT = 88


def intact_store(root: Path) -> None:
    """Three queues of two topics, a delayed message, an index, and everything consumed in part."""
    writer = LogWriter(root, segment_bytes=8_192, consume_queue_bytes=400)
    for number in range(90):
        writer.now += 10
        writer.put(TOPIC, number % 2, b"body %d" % number, keys=f"key-{number % 7} other", tag="TagA")
        if number % 5 == 0:
            writer.put_delayed("Prices", 0, b"late", "k", 2, deliver=number % 10 == 0)
        if number % 9 == 0:
            writer.put_transaction(TOPIC, 0, b"sum", "t", ("commit", "rollback")[number % 2])
    writer.offsets = {f"{TOPIC}@{GROUP}": {0: 3, 1: 45}}
    writer.finish()
    write_index(root)


def deleted_topic(root: Path, queues: int, lives: int) -> None:
    """Write a store with a topic of three queues that was deleted; it may have queues again."""
    writer = LogWriter(root, segment_bytes=8_192, consume_queue_bytes=400)
    for _ in range(lives):
        for number in range(25):
            writer.put("Prices", number % 2)
            writer.put(TOPIC, number % 3, b"earlier life")
        remove_unused_topics(writer.store.cleaner, {"Prices"})
    for number in range(7):
        writer.put("Prices", number % 2)
        if queues:
            writer.put(TOPIC, number % queues, b"present life")
    if not queues:
        writer.topics.discard(TOPIC)
    writer.finish()


def write_index(root: Path, slot_count: int = SLOTS, capacity: int = ENTRIES, *, tags: bool = False) -> None:
    """Write one index file with few slots, so that chains are long.

    Args:
        tags: index tags, too, as 5.5.0 does.
    """
    log = read_log(root)
    slots, entries = [0] * slot_count, [bytes(ENTRY.size)]
    for message in log:
        keys = [*index_keys(message.properties.get("UNIQ_KEY"), message.keys)]
        if tags and message.tags:
            keys.append(f"T#{message.tags}")
        for key in keys:
            value = key_hash(message.topic, key)
            diff = time_diff(message.store_timestamp, log[0].store_timestamp)
            entries.append(ENTRY.pack(value, message.commit_log_offset, diff, slots[value % slot_count]))
            slots[value % slot_count] = len(entries) - 1
    first, last = log[0], log[-1]
    header = HEADER.pack(
        *(first.store_timestamp, last.store_timestamp),
        *(first.commit_log_offset, last.commit_log_offset),
        *(sum(map(bool, slots)), len(entries)),
    )
    data = header + b"".join(map(SLOT.pack, slots)) + b"".join(entries)
    (root / "index").mkdir(exist_ok=True)
    (root / "index" / "20231114221320000").write_bytes(data.ljust(file_bytes(slot_count, capacity), b"\0"))


def poke(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def queue_entry_file(root: Path, number: int, queue: str = f"{TOPIC}/0") -> tuple[Path, int]:
    """The file of an entry, and where in it."""
    base = number * 20 // 400 * 400
    return root / "consumequeue" / queue / f"{base:020d}", number * 20 - base


def read_queue_entry(root: Path, number: int, queue: str = f"{TOPIC}/0") -> tuple[int, int, int]:
    path, at = queue_entry_file(root, number, queue)
    return QUEUE_ENTRY.unpack_from(path.read_bytes(), at)


def record_file(root: Path, position: int) -> tuple[Path, int]:
    base = position // 8_192 * 8_192
    return root / "commitlog" / f"{base:020d}", position - base


def flip_body(root: Path) -> None:
    position = read_queue_entry(root, 5)[0]
    path, at = record_file(root, position)
    poke(path, at + BODY_AT, b"\xff")


def drop_queue_entry(root: Path) -> None:
    path, at = queue_entry_file(root, 7)
    poke(path, at, bytes(20))


def drop_last_queue_entries(root: Path) -> None:
    """Remove the last entries of one queue, while other queues continue."""
    for number in range(46, 56):
        path, at = queue_entry_file(root, number)
        if path.exists():
            poke(path, at, bytes(20))


def wrong_tag(root: Path) -> None:
    position, size, code = read_queue_entry(root, 4)
    path, at = queue_entry_file(root, 4)
    poke(path, at, QUEUE_ENTRY.pack(position, size, code + 1))


def wrong_size(root: Path) -> None:
    position, size, code = read_queue_entry(root, 4)
    path, at = queue_entry_file(root, 4)
    poke(path, at, QUEUE_ENTRY.pack(position, size - 1, code))


def swap_queue_entries(root: Path) -> None:
    first, second = read_queue_entry(root, 2), read_queue_entry(root, 3)
    for number, queue_entry in ((2, second), (3, first)):
        path, at = queue_entry_file(root, number)
        poke(path, at, QUEUE_ENTRY.pack(*queue_entry))


def queue_entry_into_nowhere(root: Path) -> None:
    position, size, code = read_queue_entry(root, 4)
    path, at = queue_entry_file(root, 4)
    poke(path, at, QUEUE_ENTRY.pack(position + 1, size, code))


def queue_entry_of_another_queue(root: Path) -> None:
    path, at = queue_entry_file(root, 4)
    poke(path, at, QUEUE_ENTRY.pack(*read_queue_entry(root, 4, f"{TOPIC}/1")))


def wrong_delivery_time(root: Path) -> None:
    position, size, code = read_queue_entry(root, 1, "SCHEDULE_TOPIC_XXXX/1")
    path, at = queue_entry_file(root, 1, "SCHEDULE_TOPIC_XXXX/1")
    poke(path, at, QUEUE_ENTRY.pack(position, size, code - 1))


def break_record(root: Path) -> None:
    path, at = record_file(root, read_queue_entry(root, 5)[0])
    poke(path, at + 4, b"none")


def clock_steps_back(root: Path) -> None:
    path, at = record_file(root, read_queue_entry(root, 5)[0])
    poke(path, at + 56, struct.pack(">q", 1_600_000_000_000))


def entry_at(root: Path, number: int) -> tuple[Path, int]:
    return root / "index" / "20231114221320000", HEADER_BYTES + SLOTS * 4 + number * ENTRY.size


def wrong_entry_position(root: Path) -> None:
    path, at = entry_at(root, 9)
    hashed, _, diff, previous = ENTRY.unpack_from(path.read_bytes(), at)
    poke(path, at, ENTRY.pack(hashed, read_queue_entry(root, 40)[0], diff, previous))


def entry_into_nowhere(root: Path) -> None:
    path, at = entry_at(root, 9)
    hashed, position, diff, previous = ENTRY.unpack_from(path.read_bytes(), at)
    poke(path, at, ENTRY.pack(hashed, position + 1, diff, previous))


def cut_chain(root: Path) -> None:
    path, at = entry_at(root, 102)
    hashed, position, diff, previous = ENTRY.unpack_from(path.read_bytes(), at)
    assert previous
    poke(path, at, ENTRY.pack(hashed, position, diff, 0))


def wrong_index_header(root: Path) -> None:
    path, _ = entry_at(root, 0)
    poke(path, 24, struct.pack(">q", 4_711))


def offset_beyond(root: Path) -> None:
    table = {"offsetTable": {f"{TOPIC}@{GROUP}": {"0": 3, "1": 46}}}
    (root / "config" / "consumerOffset.json").write_text(json.dumps(table))


def delay_offset_beyond(root: Path) -> None:
    (root / "config" / "delayOffset.json").write_text('{"offsetTable":{2:1000}}')


def short_queue_file(root: Path) -> None:
    last = max((root / "consumequeue" / TOPIC / "0").iterdir())
    last.write_bytes(last.read_bytes()[:380])


def missing_queue_file(root: Path) -> None:
    sorted((root / "consumequeue" / TOPIC / "0").iterdir())[1].unlink()


def stray_file(root: Path) -> None:
    (root / "commitlog" / ".DS_Store").touch()


def future_checkpoint(root: Path) -> None:
    (root / "checkpoint").write_bytes(struct.pack(">qqq", 2**60, 0, 0).ljust(4_096, b"\0"))


def expired_offset(root: Path) -> None:
    min((root / "commitlog").iterdir()).unlink()


def tear(root: Path) -> None:
    segment = [path for path in sorted((root / "commitlog").iterdir()) if any(path.read_bytes())][-1]
    data = segment.read_bytes().rstrip(b"\0")
    at = read_log(root)[-1]
    end = at.commit_log_offset + at.store_size - int(segment.name)
    assert end + 60 < 8_192, data
    poke(segment, end, data[:4] + b"\xda\xa3\x20\xa7" + b"\x01" * 40)


# A fault, the check that finds it, and an example's beginning.
FAULTS: list[tuple[Callable[[Path], None], str, str]] = [
    (flip_body, "body CRC", "record at "),
    (drop_queue_entry, "queue without holes", "Orders/0 entry 7 is empty"),
    (drop_last_queue_entries, "record has a queue entry", "record at "),
    (wrong_tag, "queue entry tagsCode", "Orders/0 entry 4 has tagsCode 2598920"),
    (wrong_size, "queue entry size", "Orders/0 entry 4 has size "),
    (swap_queue_entries, "queue entry order", "Orders/0 entry 3: "),
    (swap_queue_entries, "queue entry place", "Orders/0 entry 3 points to "),
    (queue_entry_into_nowhere, "queue entry has a record", "Orders/0 entry 4 points to "),
    (queue_entry_of_another_queue, "queue entry place", "Orders/0 entry 4 points to "),
    (wrong_delivery_time, "delivery time", "SCHEDULE_TOPIC_XXXX/1 entry 1 has tagsCode "),
    (break_record, "log without holes", ""),
    (break_record, "queue entry has a record", "Orders/0 entry 5 points to "),
    (clock_steps_back, "store times", "record at "),
    (wrong_entry_position, "index key", "20231114221320000 entry 9: the record at "),
    (wrong_entry_position, "key has an index entry", "record at "),
    (entry_into_nowhere, "index entry has a record", "20231114221320000 entry 9 points to "),
    (cut_chain, "index chain", "20231114221320000 entry 102: previous is 0"),
    (wrong_index_header, "index file", "20231114221320000: endPhyOffset is 4711"),
    (offset_beyond, "consumer offset", f"{TOPIC}@{GROUP} queue 1: offset 46, the queue has [0, 45]"),
    (delay_offset_beyond, "delay offset", "level 2: offset 1000"),
    (short_queue_file, "queue files", "Orders/0/"),
    (missing_queue_file, "queue files", "Orders/0/"),
    (stray_file, "log files", "commitlog/.DS_Store"),
    (future_checkpoint, "checkpoint", "physicMsgTimestamp is "),
    (expired_offset, "consumer offset expired", f"{TOPIC}@{GROUP} queue 0: offset 3"),
    (tear, "log tail", "at "),
]


# maxHashSlotNum and maxIndexNum that are not one to four.
PROPORTIONS = [(1, 900), (97, 1_000), (600, 700), (4_000, 500)]


# Queues of a topic that was created again, 0 if it was not, and how many lives it had before.
LIVES = [(0, 1), (1, 1), (3, 2)]


@pytest.fixture(scope="module")
def reports(runner: Runner, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[VerifyReport, Path]]:
    """Every kind of store, verified at once."""
    folder = tmp_path_factory.mktemp("stores")
    roots = {"intact": folder / "intact" / "store"}
    intact_store(roots["intact"])
    for fault, _, _ in FAULTS:
        root = roots[fault.__name__] = folder / fault.__name__
        if not root.exists():
            shutil.copytree(roots["intact"], root)
            fault(root)
    for slots, entries in PROPORTIONS:
        root = roots[f"{slots} slots"] = shutil.copytree(roots["intact"], folder / f"{slots}-slots")
        write_index(root, slots, entries)
    root = roots["tags"] = shutil.copytree(roots["intact"], folder / "tags")
    write_index(root, tags=True)
    for queues, lives in LIVES:
        root = roots[f"{queues} queues after {lives}"] = folder / f"lives-{queues}-{lives}"
        deleted_topic(root, queues, lives)
    for seed in range(6):
        roots[f"random {seed}"] = folder / f"random-{seed}"
        random_store(roots[f"random {seed}"], seed)
    found = verify_stores(runner, list(roots.values()))
    return {name: (report, roots[name]) for name, report in zip(roots, found, strict=True)}


def test_an_intact_store_gives_no_finding(reports: dict[str, tuple[VerifyReport, Path]]) -> None:
    report, root = reports["intact"]
    assert report.findings() == []
    assert report.is_intact
    checked = {check.name: check.checked for check in report.checks}
    log = read_log(root)
    assert checked["body CRC"] == checked["store times"] == len(log)
    assert checked["record has a queue entry"] == checked["queue entry has a record"] == len(log)
    assert checked["index entry has a record"] == checked["index key"] > len(log)
    assert checked["delivery time"] == 18
    assert checked["consumer offset"] == 2


@pytest.mark.parametrize("slots", [slots for slots, _ in PROPORTIONS])
def test_an_index_of_any_proportion_of_slots_is_intact(
    reports: dict[str, tuple[VerifyReport, Path]], slots: int
) -> None:
    report, root = reports[f"{slots} slots"]
    assert report.findings() == []
    checked = {check.name: check.checked for check in report.checks}
    assert checked["index key"] == HEADER.unpack_from(entry_at(root, 0)[0].read_bytes())[5] - 1


def test_an_index_may_hold_tags(reports: dict[str, tuple[VerifyReport, Path]]) -> None:
    """5.5.0 indexes each message's tags under ``T#``; no other release does."""
    report, _ = reports["tags"]
    assert report.findings() == []
    checked, without = (
        {check.name: check.checked for check in reports[name][0].checks} for name in ("tags", "intact")
    )
    assert checked["index key"] > without["index key"]
    assert checked["key has an index entry"] == without["key has an index entry"]


def test_random_stores_are_intact_and_torn_tails_are_noted(
    reports: dict[str, tuple[VerifyReport, Path]],
) -> None:
    for seed in range(6):
        report, _ = reports[f"random {seed}"]
        assert report.is_intact, render_text(report)
        assert {check.name for check in report.findings()} <= {"log tail", "delivery time"}


@pytest.mark.parametrize(
    ("fault", "name", "example"),
    [pytest.param(*fault, id=f"{fault[0].__name__}: {fault[1]}") for fault in FAULTS],
)
def test_a_deliberate_fault_is_found_and_named(
    reports: dict[str, tuple[VerifyReport, Path]], fault: Callable[[Path], None], name: str, example: str
) -> None:
    report, _ = reports[fault.__name__]
    found = {check.name: check for check in report.findings()}
    assert name in found, render_text(report)
    check = found[name]
    assert any(text.startswith(example) for text in check.examples), check
    assert report.is_intact == (not report.findings(Severity.ERROR))
    assert check.name in render_text(report)


@pytest.mark.parametrize("fault", [wrong_tag, wrong_size, flip_body, cut_chain, offset_beyond])
def test_a_fault_is_found_once_and_nothing_else_is(
    reports: dict[str, tuple[VerifyReport, Path]], fault: Callable[[Path], None]
) -> None:
    report, _ = reports[fault.__name__]
    assert [check.wrong for check in report.findings()] == [1]


def test_the_furthest_step_of_the_clock_comes_first() -> None:
    tally = Tally()
    tally.add(0, "store times", 9, 9, [(-step, f"{step} ms") for step in range(9)])
    assert tally.checks(0) == (Check("store times", 9, 9, ("8 ms", "7 ms", "6 ms", "5 ms", "4 ms")),)


def test_a_report_is_json_with_stable_names(reports: dict[str, tuple[VerifyReport, Path]]) -> None:
    table = json.loads(json.dumps(reports["flip_body"][0].to_json()))
    assert set(table) == {"format", "store", "out", "isIntact", "checks"}
    assert table["isIntact"] is False
    assert {check["name"] for check in table["checks"]} <= set(RULES)


@pytest.mark.parametrize("kind", [f"{queues} queues after {lives}" for queues, lives in LIVES])
def test_a_store_whose_topic_was_deleted_is_intact(
    reports: dict[str, tuple[VerifyReport, Path]], kind: str
) -> None:
    """The messages of a topic's earlier lives stay in the log, and belong to no queue."""
    report, root = reports[kind]
    assert report.findings() == []
    assert b"earlier life" in b"".join(path.read_bytes() for path in (root / "commitlog").iterdir())
