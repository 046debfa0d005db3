"""Segments and queue files: sizes, names, rolling, a full disk (docs/spec/store.md 16.3, 16.4)."""

from __future__ import annotations

import errno
import mmap
import weakref
from collections import Counter
from pathlib import Path

import pytest

from rewindmq.broker.store import BatchEntry, GetMessageStatus, PutStatus, StoreConfig, StoredMessage
from rewindmq.broker.store.files.disk import OsDisk
from rewindmq.protocol.message.record import BLANK, MAGIC_BLANK
from tests.broker.store.store_box import StoreBox

SEGMENT = 65_536
OVERHEAD = 91 + 1  # of a record of topic T


class FullDisk(OsDisk):
    """A disk that runs full when the test says so."""

    def __init__(self) -> None:
        self.is_full = False
        self.maps_nothing = False

    def create(self, path: Path, size: int) -> None:
        self._check()
        super().create(path, size)

    def allocate(self, path: Path, offset: int, length: int) -> None:
        self._check()
        super().allocate(path, offset, length)

    def write(self, path: Path, data: bytes) -> None:
        self._check()
        super().write(path, data)

    def map(self, path: Path, size: int) -> mmap.mmap:
        if self.maps_nothing:
            raise OSError(errno.EMFILE, "Too many open files")
        return super().map(path, size)

    def max_mappings(self) -> int:
        return 3

    def _check(self) -> None:
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")


def segment_names(box: StoreBox) -> list[str]:
    return sorted(path.name for path in (box.root / "commitlog").iterdir())


@pytest.mark.parametrize(("left", "rolls"), [(8, False), (7, True)])
def test_a_segment_rolls_when_less_than_a_blank_record_would_be_left(
    box: StoreBox, left: int, rolls: bool
) -> None:
    store = box.open()
    first = box.put(store, body=b"a" * 1_000)
    box.put(store, body=b"b" * (SEGMENT - first.size - OVERHEAD - left))
    assert store.max_commit_log_offset == (SEGMENT + SEGMENT - first.size - left if rolls else SEGMENT - left)
    after = box.put(store, body=b"c")
    end_of_first = first.size if rolls else SEGMENT - 8
    blank = (box.root / "commitlog" / segment_names(box)[0]).read_bytes()[end_of_first : end_of_first + 8]
    assert blank == BLANK.pack(SEGMENT - end_of_first, MAGIC_BLANK)
    assert segment_names(box) == ["0" * 20, f"{SEGMENT:020d}"]
    assert after.physical_offset == (2 * SEGMENT - first.size - left if rolls else SEGMENT)
    result = store.get_message("T", 0, 0, 32, None)
    assert result.message_count == 3
    store.close()
    assert box.open().get_message("T", 0, 0, 32, None).body == result.body


def test_a_batch_moves_to_the_next_segment_as_a_whole(box: StoreBox) -> None:
    store = box.open()
    box.put(store, body=b"a" * 60_000)
    result = box.put_batch(store, [b"b" * 2_000] * 4)
    assert result.physical_offset == SEGMENT
    entries = [store.entry("T", 0, 1 + number) for number in range(4)]
    assert all(entry is not None and SEGMENT <= entry[0] < 2 * SEGMENT for entry in entries)
    assert store.get_message("T", 0, 0, 32, None).message_count == 5


def test_files_have_exactly_the_configured_size_and_are_sparse(box: StoreBox) -> None:
    store = box.open(config=StoreConfig())
    box.put(store)
    segment = box.root / "commitlog" / ("0" * 20)
    queue_file = box.root / "consumequeue" / "T" / "0" / ("0" * 20)
    assert segment.stat().st_size == 1_073_741_824
    assert queue_file.stat().st_size == 6_000_000
    assert segment.stat().st_blocks * 512 < 16_777_216
    assert queue_file.stat().st_blocks * 512 < 262_144


def test_a_queue_file_rolls_at_300_entries(box: StoreBox) -> None:
    store = box.open()
    for number in range(299):
        box.put(store, body=b"%d" % number)
    box.put_batch(store, [b"299", b"300", b"301"])
    folder = box.root / "consumequeue" / "T" / "0"
    assert sorted(path.name for path in folder.iterdir()) == ["0" * 20, f"{6_000:020d}"]
    assert {path.stat().st_size for path in folder.iterdir()} == {6_000}
    assert store.max_offset("T", 0) == 302
    at_the_edge = store.get_message("T", 0, 290, 32, None)
    # A read returns messages of one file only.
    assert (at_the_edge.message_count, at_the_edge.next_begin_offset) == (10, 300)
    assert store.get_message("T", 0, 300, 32, None).message_count == 2
    store.close()
    again = box.open()
    assert again.max_offset("T", 0) == 302
    assert box.put(again).queue_offset == 302


def test_topic_names_are_directory_names_as_they_are(box: StoreBox) -> None:
    store = box.open()
    box.put(store, topic="%RETRY%group-1")
    box.put(store, topic="%DLQ%group|1", queue_id=12)
    folder = box.root / "consumequeue"
    assert sorted(path.name for path in folder.iterdir()) == ["%DLQ%group|1", "%RETRY%group-1"]
    store.close()
    again = box.open()
    assert again.max_offset("%RETRY%group-1", 0) == 1
    assert again.max_offset("%DLQ%group|1", 12) == 1


def test_a_full_disk_refuses_sends_but_serves_reads(box: StoreBox) -> None:
    disk = FullDisk()
    store = box.open(disk=disk)
    written = 20
    for _ in range(written):
        box.put(store, body=b"x" * 3_000)
    disk.is_full = True
    message = StoredMessage("T", 0, b"x" * 40_000)
    assert store.put_message(message).status is PutStatus.CREATE_MAPPED_FILE_FAILED
    new_queue = StoredMessage("Other", 0, b"x")
    assert store.put_message(new_queue).status is PutStatus.CREATE_MAPPED_FILE_FAILED
    batch = [BatchEntry(b"x" * 20_000, b"")] * 2
    assert store.put_batch(StoredMessage("T", 0, b""), batch).status is PutStatus.CREATE_MAPPED_FILE_FAILED
    assert store.max_offset("T", 0) == written
    assert store.max_offset("Other", 0) == 0
    assert store.get_message("T", 0, 0, 32, None).status is GetMessageStatus.FOUND
    disk.is_full = False
    assert store.put_message(message).queue_offset == written
    assert store.put_message(new_queue).queue_offset == 0
    disk.is_full = True
    crashed = box.crash().open()
    assert crashed.max_offset("T", 0) == written + 1
    crashed.close()
    disk.is_full = False


def test_where_a_queue_cannot_be_mapped_the_log_gets_no_record_either(box: StoreBox) -> None:
    disk = FullDisk()
    store = box.open(disk=disk)
    topics = [f"T{number}" for number in range(4)]
    for topic in topics:
        box.put(store, topic)
    end = store.max_commit_log_offset
    disk.maps_nothing = True
    for topic in (topics[0], "New"):
        message = StoredMessage(topic, 0, b"x")
        assert store.put_message(message).status is PutStatus.CREATE_MAPPED_FILE_FAILED
        assert store.put_batch(message, [BatchEntry(b"x", b"")]).status is PutStatus.CREATE_MAPPED_FILE_FAILED
    assert store.max_commit_log_offset == end
    disk.maps_nothing = False
    assert box.put(store, topics[0]).queue_offset == 1
    assert box.put(store, "New").queue_offset == 0
    crashed = box.crash().open()
    assert [crashed.max_offset(topic, 0) for topic in (*topics, "New")] == [2, 1, 1, 1, 1]


def test_more_queues_than_mappings(box: StoreBox) -> None:
    class FewMappings(OsDisk):
        def max_mappings(self) -> int:
            return 3

    store = box.open(disk=FewMappings())
    for number in range(60):
        box.put(store, topic=f"T{number % 20}", body=b"%d" % number)
    for number in range(20):
        result = store.get_message(f"T{number}", 0, 0, 32, None)
        assert result.message_count == 3
    store.close()
    again = box.open(disk=FewMappings())
    assert [again.max_offset(f"T{number}", 0) for number in range(20)] == [3] * 20


def test_what_is_used_stays_mapped_among_many_files_used_once(box: StoreBox) -> None:
    """The pool of mappings is no queue: a busy file does not have to be mapped again and again."""

    class CountingDisk(OsDisk):
        def __init__(self) -> None:
            self.mapped: Counter[str] = Counter()

        def map(self, path: Path, size: int) -> mmap.mmap:
            self.mapped[path.parent.parent.name] += 1
            return super().map(path, size)

        def max_mappings(self) -> int:
            return 16

    disk = CountingDisk()
    store = box.open(disk=disk)
    for number in range(200):
        box.put(store, topic=f"Once{number}")
        box.put(store, topic="Busy")
        assert store.get_message("Busy", 0, number, 1, None).message_count == 1
    assert disk.mapped["Busy"] == 1
    assert disk.mapped["Once7"] == 1


def test_a_pool_keeps_no_more_mappings_than_it_may(box: StoreBox) -> None:
    class TrackingDisk(OsDisk):
        def __init__(self) -> None:
            self.mappings: list[weakref.ref[mmap.mmap]] = []

        def map(self, path: Path, size: int) -> mmap.mmap:
            mapping = super().map(path, size)
            self.mappings.append(weakref.ref(mapping))
            return mapping

        def max_mappings(self) -> int:
            return 16

        @property
        def open(self) -> int:
            return sum(reference() is not None for reference in self.mappings)

    disk = TrackingDisk()
    store = box.open(disk=disk)
    most = 0
    for number in range(300):
        box.put(store, topic=f"T{number * 7 % 40}")
        most = max(most, disk.open)
    # The log keeps the mapping of the segment it writes to, whatever the pool does.
    assert 16 <= most <= 17
