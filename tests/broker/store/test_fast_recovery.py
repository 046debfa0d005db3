"""Recovery reads only what the checkpoint does not prove, and reads it as the check of one record does."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

from rewindmq.broker.store import MessageStore
from rewindmq.broker.store.files.disk import OsDisk
from rewindmq.broker.store.files.mapped_file import MappedFile, MmapCache
from rewindmq.broker.store.log.record_check import SegmentScan, check_record
from tests.broker.store.store_box import StoreBox

SEGMENT = 65_536
ENTRY_BYTES = 20


def patch(path: Path, position: int, data: bytes) -> None:
    with path.open("r+b") as file:
        os.pwrite(file.fileno(), data, position)


def log_file(box: StoreBox) -> Path:
    return box.root / "commitlog" / f"{0:020d}"


def queue_file(box: StoreBox, queue_id: int = 0) -> Path:
    return box.root / "consumequeue/T" / str(queue_id) / f"{0:020d}"


def entries(store: MessageStore, queue_id: int) -> list[tuple[int, int, int] | None]:
    return [store.entry("T", queue_id, offset) for offset in range(store.max_offset("T", queue_id))]


@pytest.fixture
def checkpointed(box: StoreBox) -> MessageStore:
    """One segment with 30 messages that the checkpoint covers, and 6 more, on two queues in turn."""
    store = box.open()
    for number in range(30):
        box.put(store, queue_id=number % 2, body=b"%d" % number, tag="blue", at=box.now + 10)
    box.now += 4_000
    for number in range(30, 33):
        box.put(store, queue_id=number % 2, body=b"%d" % number, tag="blue")
    store.flush_all()
    for number in range(33, 36):
        box.put(store, queue_id=number % 2, body=b"%d" % number, tag="blue")
    return store


def test_records_that_the_checkpoint_covers_are_not_read_again(
    box: StoreBox, checkpointed: MessageStore
) -> None:
    found = box.crash().open()
    assert found.rebuilt_entries == 6
    assert [entries(found, queue_id) for queue_id in (0, 1)] == [
        entries(checkpointed, queue_id) for queue_id in (0, 1)
    ]
    assert found.max_commit_log_offset == checkpointed.max_commit_log_offset
    assert box.put(found, at=1).queue_offset == 18


def test_the_store_time_goes_on_behind_the_last_record_that_is_not_read(box: StoreBox) -> None:
    store = box.open()
    for _ in range(2):
        box.put(store, at=box.now + 4_000)
    store.flush_all()
    crashed = box.crash()
    # The disk has lost the last record; the checkpoint's margin covers it no more.
    start = store.entry("T", 0, 1)
    assert start is not None
    patch(log_file(crashed), start[0], bytes(start[1]))
    found = crashed.open()
    crashed.now = 5
    offset = crashed.put(found).queue_offset
    assert offset == 1
    assert found.store_time("T", 0, 1) == found.store_time("T", 0, 0) == box.now - 4_000


@pytest.mark.parametrize("kept", [0, 3, 14])
def test_a_queue_that_lacks_covered_entries_is_completed(
    box: StoreBox, checkpointed: MessageStore, kept: int
) -> None:
    crashed = box.crash()
    patch(queue_file(crashed), kept * ENTRY_BYTES, bytes((18 - kept) * ENTRY_BYTES))
    found = crashed.open()
    assert [entries(found, queue_id) for queue_id in (0, 1)] == [
        entries(checkpointed, queue_id) for queue_id in (0, 1)
    ]


@pytest.mark.parametrize("lost", range(ENTRY_BYTES))
def test_entries_that_the_checkpoint_does_not_cover_may_be_torn_anywhere(
    box: StoreBox, checkpointed: MessageStore, lost: int
) -> None:
    crashed = box.crash()
    for queue_id in (0, 1):
        patch(queue_file(crashed, queue_id), 15 * ENTRY_BYTES, bytes(lost))
        patch(queue_file(crashed, queue_id), 16 * ENTRY_BYTES + lost, bytes(ENTRY_BYTES - lost))
    found = crashed.open()
    assert [entries(found, queue_id) for queue_id in (0, 1)] == [
        entries(checkpointed, queue_id) for queue_id in (0, 1)
    ]


def test_an_idle_queue_whose_messages_have_expired_keeps_its_end(box: StoreBox) -> None:
    """Only its end remains to be known, and no record tells it."""
    store = box.open()
    for _ in range(3):
        box.put(store, "Idle", body=bytes(20_000))
    for _ in range(6):
        box.put(store, body=bytes(30_000))
    store.cleaner.take_segment(None)
    box.put(store, at=box.now + 10_000)
    store.flush_all()
    crashed = box.crash()
    # The test's crash copies the segment that is being deleted.
    log_file(crashed).unlink(missing_ok=True)
    found = crashed.open()
    assert found.max_offset("Idle", 0) == found.min_offset("Idle", 0) == 3
    assert box.put(found, "Idle").queue_offset == 3


def test_a_scan_takes_what_the_check_of_one_record_takes(box: StoreBox) -> None:
    """Any byte may be damaged; the scan ends where the check of a record fails."""
    store = box.open()
    for number in range(12):
        box.put(store, body=b"body %d" % number, tag="blue" if number % 3 else None)
    store.flush()
    data = log_file(box).read_bytes()
    used = store.max_commit_log_offset
    chance = Random(1)
    path = box.root / "damaged"
    for _ in range(400):
        damaged = bytearray(data)
        at = chance.randrange(used)
        damaged[at] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, damaged[at] ^ 1))
        path.write_bytes(damaged)
        segment = MappedFile(MmapCache(OsDisk()), path, 0, SEGMENT, 0)
        expected = []
        position = 0
        while (record := check_record(bytes(damaged), position, SEGMENT, position, check_crc=True)) and (
            b"\0" not in record.topic
        ):
            expected.append((*record[:-1], record.properties(bytes(damaged), 0)))
            position += record.size
        scan = SegmentScan(segment, check_crc=True)
        assert list(scan) == expected
        assert scan.position == position
