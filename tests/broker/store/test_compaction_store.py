"""Compaction topics (docs/spec/store.md 14): served with gaps from a log that follows the commit log."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindmq.broker.store import (
    BatchEntry,
    Boundary,
    GetMessageStatus,
    MessageStore,
    PutStatus,
    SearchMode,
    StoreConfig,
    StoredMessage,
    StoreError,
)
from rewindmq.broker.store.files.disk import Disk, OsDisk
from rewindmq.broker.store.layout.compaction import ENTRY, ENTRY_BYTES
from rewindmq.protocol.message.properties import format_properties
from rewindmq.protocol.message.record import decode_records
from tests.broker.store.store_box import StoreBox, UnsyncedDisk

TOPIC = "Prices"
# 10 entries a file, the last for the end mark; 2300 bytes of records.
COMPACTED = StoreConfig(
    mapped_file_size_commit_log=65_536,
    mapped_file_size_consume_queue=6_000,
    compaction_cq_mapped_file_size=10 * ENTRY_BYTES,
    compaction_mapped_file_size=1,
)
LOG_BYTES = 5 * 10 * ENTRY_BYTES


@pytest.fixture
def box(box: StoreBox) -> StoreBox:
    box.config = COMPACTED
    return box


def opened(box: StoreBox, disk: Disk | None = None) -> MessageStore:
    store = box.open(disk)
    store.set_compaction_topics([TOPIC])
    return store


def message(key: str, body: bytes, topic: str = TOPIC) -> StoredMessage:
    return StoredMessage(topic, 0, body, format_properties({"KEYS": key} if key else {}).encode())


def put(box: StoreBox, store: MessageStore, key: str = "k", body: bytes = b"x") -> int:
    result = store.put_message(message(key, body))
    assert result.status is PutStatus.PUT_OK
    return result.queue_offset


def read(store: MessageStore, offset: int, count: int = 32) -> tuple[str, list[int], int]:
    """Status, queue offsets, next offset."""
    result = store.get_message(TOPIC, 0, offset, count, None)
    found = decode_records(result.body)
    assert len(found) == result.message_count
    return result.status.name, [item.queue_offset for item in found], result.next_begin_offset


def read_all(store: MessageStore) -> list[tuple[int, str | None, bytes]]:
    """Return queue offset, key and body of every message, as a consumer gets them from the first offset."""
    found: list[tuple[int, str | None, bytes]] = []
    offset = store.min_offset(TOPIC, 0)
    while offset < store.max_offset(TOPIC, 0):
        result = store.get_message(TOPIC, 0, offset, 32, None)
        found += [(item.queue_offset, item.keys, item.body) for item in decode_records(result.body)]
        assert result.next_begin_offset > offset
        offset = result.next_begin_offset
    return found


def folders(root: Path) -> list[Path]:
    return [root / "compaction" / name / TOPIC / "0" for name in ("compactionLog", "compactionCq")]


def compact(root: Path, kept: set[int], *, position: int | None = None) -> None:
    """Rewrite the compaction log of a closed store, keeping the messages whose queue offsets are ``kept``."""
    logs, entries = folders(root)
    records: list[tuple[tuple[int, ...], bytes]] = []
    for path in sorted(logs.iterdir()):
        for entry in ENTRY.iter_unpack((entries / path.name).read_bytes()):
            if entry[1] <= 0:
                break
            start = entry[0] - int(path.name)
            records.append((entry, path.read_bytes()[start : start + entry[1]]))
    records = [item for item in records if item[0][4] in kept]
    for folder in (logs, entries):
        shutil.rmtree(folder)
        folder.mkdir()
    for number in range(0, len(records), 5):
        base = number // 5 * LOG_BYTES
        log = cq = b""
        for entry, record in records[number : number + 5]:
            place = base + len(log)
            log += record[:28] + struct.pack(">q", place) + record[36:]
            cq += ENTRY.pack(place, *entry[1:])
        (logs / f"{base:020d}").write_bytes(log.ljust(LOG_BYTES, b"\0"))
        (entries / f"{base:020d}").write_bytes(cq.ljust(10 * ENTRY_BYTES, b"\0"))
    if position is not None:
        text = json.dumps({"queueOffsetMap": {f"{TOPIC}_0": position}})
        (root / "compaction" / "position-checkpoint").write_text(text)


def test_messages_are_copied_with_their_offsets_and_new_positions(box: StoreBox) -> None:
    store = opened(box)
    for number in range(12):
        put(box, store, key=f"k{number}")
    logs, entries = folders(box.root)
    assert [path.name for path in sorted(logs.iterdir())] == [f"{0:020d}", f"{LOG_BYTES:020d}"]
    assert {path.stat().st_size for path in logs.iterdir()} == {LOG_BYTES}
    first = (entries / f"{0:020d}").read_bytes()
    assert len(first) == 10 * ENTRY_BYTES
    found = list(ENTRY.iter_unpack(first))
    size = found[0][1]
    assert found[:9] == [(n * size, size, 0, box.now, n, 1, -1, 0) for n in range(9)]
    assert found[9] == (-1, 0, 0, 0, 0, 0, -1, 0)
    log = (logs / f"{0:020d}").read_bytes()
    copies = decode_records(log[: 9 * size])
    assert [(copy.queue_offset, copy.commit_log_offset) for copy in copies] == [
        (n, n * size) for n in range(9)
    ]
    assert struct.unpack_from(">iI", log, 9 * size) == (LOG_BYTES - 9 * size, 0xCBD43194)
    assert ENTRY.unpack((entries / f"{LOG_BYTES:020d}").read_bytes()[:ENTRY_BYTES])[::4] == (LOG_BYTES, 9)
    assert [offset for offset, _, _ in read_all(store)] == list(range(12))


def test_other_topics_have_no_compaction_folder(box: StoreBox) -> None:
    store = opened(box)
    box.put(store)
    assert not (box.root / "compaction").exists()


def test_batches_are_copied_too(box: StoreBox) -> None:
    store = opened(box)
    properties = format_properties({"KEYS": "a"}).encode()
    entries = [BatchEntry(b"%d" % number, properties) for number in range(3)]
    store.put_batch(StoredMessage(TOPIC, 0, b""), entries)
    assert read_all(store) == [(number, "a", b"%d" % number) for number in range(3)]


def test_a_message_without_key_is_not_copied(box: StoreBox) -> None:
    store = opened(box)
    put(box, store, key="")
    assert read(store, 0) == ("NO_MESSAGE_IN_QUEUE", [], 0)
    put(box, store, key="a")
    put(box, store, key="")
    assert read(store, 0) == ("FOUND", [1], 2)
    assert (store.min_offset(TOPIC, 0), store.max_offset(TOPIC, 0)) == (1, 2)


def test_a_removed_offset_gives_the_next_message(box: StoreBox) -> None:
    store = opened(box)
    for _ in range(20):
        put(box, store)
    store.close()
    compact(box.root, {3, 4, 9, 15, 16, 17, 19})
    store = opened(box)
    assert (store.min_offset(TOPIC, 0), store.max_offset(TOPIC, 0)) == (3, 20)
    assert read(store, 0, 1) == ("FOUND", [3], 4)
    assert read(store, 5, 1) == ("FOUND", [9], 10)
    # A read returns messages of one file only.
    assert read(store, 0) == ("FOUND", [3, 4, 9, 15, 16], 17)
    assert read(store, 17) == ("FOUND", [17, 19], 20)
    assert [store.store_time(TOPIC, 0, offset) > 0 for offset in (2, 3, 5, 9, 19, 20)] == [
        False, True, False, True, True, False,
    ]  # fmt: skip


def test_statuses_are_those_of_5x(box: StoreBox) -> None:
    store = opened(box)
    assert read(store, 0) == ("NO_MESSAGE_IN_QUEUE", [], 0)
    for _ in range(6):
        put(box, store)
    assert read(store, 6) == ("OFFSET_OVERFLOW_ONE", [], 6)
    # 5.3.3 sends a consumer beyond the end of a queue that begins at 0 to its beginning.
    assert read(store, 7) == ("OFFSET_OVERFLOW_BADLY", [], 0)
    store.close()
    compact(box.root, {4})
    store = opened(box)
    assert read(store, 9) == ("OFFSET_OVERFLOW_BADLY", [], 6)
    assert put(box, store) == 6


def test_tags_are_left_to_the_client(box: StoreBox) -> None:
    store = opened(box)
    put(box, store)
    assert store.get_message(TOPIC, 0, 0, 32, frozenset((1,))).message_count == 1


def test_one_read_is_bounded_by_count_and_bytes(box: StoreBox) -> None:
    box.config = msgspec.structs.replace(
        COMPACTED,
        max_transfer_bytes_on_message_in_memory=300,
        max_transfer_count_on_message_in_memory=3,
        compaction_cq_mapped_file_size=10_485_760,
        compaction_mapped_file_size=104_857_600,
    )
    store = opened(box)
    for size in (1, 1, 1, 1, 500, 1):
        put(box, store, body=bytes(size))
    assert [read(store, offset)[1] for offset in (0, 1, 2, 4, 5)] == [[0, 1], [1, 2], [2, 3], [4], [5]]
    assert read(store, 0, 1)[1] == [0]
    assert COMPACTED.compaction_log_file_bytes == 2_300
    assert box.config.compaction_log_file_bytes == 104_857_460


@pytest.mark.parametrize("clean", [True, False])
def test_a_restart_serves_the_same(box: StoreBox, clean: bool) -> None:
    store = opened(box)
    for number in range(25):
        put(box, store, key=f"k{number}")
    expected = read_all(store)
    if clean:
        store.close()
        again = opened(box)
    else:
        again = opened(box.crash())
    assert read_all(again) == expected
    assert put(box, again) == 25


def test_what_the_compaction_log_lacks_is_copied_at_the_start(box: StoreBox) -> None:
    store = box.open()
    for number in range(15):
        put(box, store, key=f"k{number}")
    assert not (box.root / "compaction").exists()
    store.set_compaction_topics([TOPIC])
    expected = read_all(store)
    assert len(expected) == 15
    store.close()
    shutil.rmtree(box.root / "compaction")
    assert read_all(opened(box)) == expected


@pytest.mark.parametrize("torn", ["record", "entry", "everything", "second file"])
def test_a_torn_tail_is_cut_and_copied_again(box: StoreBox, torn: str) -> None:
    store = opened(box)
    for number in range(14):
        put(box, store, key=f"k{number}")
    expected = read_all(store)
    crashed = box.crash()
    logs, entries = folders(crashed.root)
    name = f"{LOG_BYTES:020d}"
    if torn == "record":
        data = bytearray((logs / name).read_bytes())
        data[150:] = bytes(len(data) - 150)
        (logs / name).write_bytes(data)
    elif torn == "entry":
        data = bytearray((entries / name).read_bytes())
        data[2 * ENTRY_BYTES :] = bytes(len(data) - 2 * ENTRY_BYTES)
        (entries / name).write_bytes(data)
    elif torn == "everything":
        for folder in (logs, entries):
            (folder / name).write_bytes(bytes((folder / name).stat().st_size))
    else:
        (entries / name).unlink()
        (logs / name).write_bytes(b"")
    assert read_all(opened(crashed)) == expected


def test_a_damaged_first_file_costs_the_later_ones_which_are_copied_again(box: StoreBox) -> None:
    store = opened(box)
    for number in range(14):
        put(box, store, key=f"k{number}")
    expected = read_all(store)
    crashed = box.crash()
    log = folders(crashed.root)[0] / f"{0:020d}"
    data = bytearray(log.read_bytes())
    data[300] ^= 0xFF
    log.write_bytes(data)
    assert read_all(opened(crashed)) == expected


@pytest.mark.parametrize("keep_folder", [True, False])
def test_a_store_without_commit_log_serves_them_and_goes_on_numbering(
    box: StoreBox, keep_folder: bool
) -> None:
    store = opened(box)
    for number in range(20):
        put(box, store, key=f"k{number}")
    store.close()
    compact(box.root, {2, 7, 19})
    shutil.rmtree(box.root / "commitlog")
    shutil.rmtree(box.root / "consumequeue")
    if keep_folder:
        (box.root / "commitlog").mkdir()
    store = opened(box)
    expected = [(number, f"k{number}", b"x") for number in (2, 7, 19)]
    assert read_all(store) == expected
    assert put(box, store, key="new") == 20
    assert put(box, store, key="new") == 21
    expected += [(20, "new", b"x"), (21, "new", b"x")]
    assert read_all(store) == expected
    store.close()
    store = opened(box)
    assert read_all(store) == expected
    crashed = box.crash()
    again = opened(crashed)
    assert read_all(again) == expected
    assert put(box, again) == 22


def test_the_ordinary_queue_is_filled_up_to_a_compaction_log_that_is_ahead(box: StoreBox) -> None:
    store = opened(box)
    for number in range(3):
        put(box, store, key=f"k{number}")
    early = box.crash("early")
    for number in range(3, 6):
        put(box, store, key=f"k{number}")
    store.close()
    shutil.rmtree(early.root / "compaction")
    shutil.copytree(box.root / "compaction", early.root / "compaction")
    store = opened(early)
    assert put(early, store, key="k6") == 6
    store.close()
    store = opened(early)
    assert [offset for offset, _, _ in read_all(store)] == list(range(7))
    assert put(early, store, key="k7") == 7
    # A start that has nothing to go by but the log builds the same.
    crashed = early.crash("later")
    (crashed.root / "checkpoint").unlink()
    store = opened(crashed)
    assert [offset for offset, _, _ in read_all(store)] == list(range(8))
    assert put(crashed, store, key="k8") == 8


def test_removed_messages_are_not_copied_again(box: StoreBox) -> None:
    """The newest messages were removed, too: ``position-checkpoint`` says how far the compaction came."""
    store = opened(box)
    for number in range(10):
        put(box, store, key=f"k{number}")
    store.close()
    compact(box.root, {2, 5}, position=9)
    store = opened(box)
    assert [offset for offset, _, _ in read_all(store)] == [2, 5]
    assert store.max_offset(TOPIC, 0) == 10
    assert read(store, 6) == ("NO_MATCHED_MESSAGE", [], 10)
    assert put(box, store) == 10
    assert read(store, 6) == ("FOUND", [10], 11)


@pytest.mark.parametrize("mode", list(SearchMode))
def test_a_search_by_time_finds_what_is_left(box: StoreBox, mode: SearchMode) -> None:
    store = opened(box)
    begin = box.now
    for number in range(20):
        box.now = begin + number * 10
        put(box, store)
    store.close()
    left = [3, 4, 9, 15, 16, 17, 19]
    compact(box.root, set(left))
    store = opened(box)
    for timestamp in range(begin - 5, begin + 215, 5):
        found = {boundary: store.search_offset(TOPIC, 0, timestamp, boundary, mode) for boundary in Boundary}
        times = {offset: begin + offset * 10 for offset in left}
        if mode is SearchMode.NEAREST:
            nearest = min(left, key=lambda offset: (abs(times[offset] - timestamp), offset))
            assert set(found.values()) == {nearest}
        else:
            later = [offset for offset in left if times[offset] >= timestamp]
            earlier = [offset for offset in left if times[offset] <= timestamp]
            assert found[Boundary.LOWER] == (later[0] if later else 20)
            assert found[Boundary.UPPER] == (earlier[-1] if earlier else left[0])


def test_a_topic_that_is_no_longer_compacted_is_read_from_its_queue_again(box: StoreBox) -> None:
    store = opened(box)
    for _ in range(4):
        put(box, store)
    store.close()
    compact(box.root, {3})
    store = opened(box)
    assert read(store, 0)[1] == [3]
    store.set_compaction_topics([])
    assert read(store, 0)[1] == [0, 1, 2, 3]


def test_folders_of_a_pass_under_way_are_passed_over(box: StoreBox) -> None:
    store = opened(box)
    put(box, store)
    store.close()
    for folder in folders(box.root):
        (folder / "compacting").mkdir()
        (folder.parent / "notes").mkdir()
    assert len(read_all(opened(box))) == 1


def test_files_that_do_not_fit_are_refused(box: StoreBox) -> None:
    store = opened(box)
    put(box, store)
    store.close()
    _, entries = folders(box.root)
    with pytest.raises(StoreError, match=r"0 has 2300 bytes, but with this compactionMappedFileSize it must"):
        box.open(config=msgspec.structs.replace(COMPACTED, compaction_cq_mapped_file_size=20 * ENTRY_BYTES))
    (entries / f"{0:020d}").rename(entries / f"{LOG_BYTES:020d}")
    with pytest.raises(StoreError, match="must hold files of the same names"):
        box.open()
    (entries / f"{LOG_BYTES:020d}").rename(entries / f"{0:020d}")
    (box.root / "compaction" / "position-checkpoint").write_text("[]")
    with pytest.raises(StoreError, match=r"cannot read .*position-checkpoint"):
        box.open()


def test_a_disk_that_gives_no_room_costs_no_message(box: StoreBox) -> None:
    class FullDisk(OsDisk):
        is_full = True

        def create(self, path: Path, size: int) -> None:
            if self.is_full and "compaction" in path.parts:
                raise OSError(28, "No space left on device")
            super().create(path, size)

    disk = FullDisk()
    store = opened(box, disk=disk)
    put(box, store)
    assert read(store, 0)[1] == []
    disk.is_full = False
    assert read(store, 0)[1] == [0]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"compaction_cq_mapped_file_size": 91}, "compactionCqMappedFileSize is 91"),
        ({"compaction_mapped_file_size": 0}, "compactionMappedFileSize is 0"),
    ],
)
def test_sizes_that_no_file_can_have_are_refused(keys: dict[str, int], said: str) -> None:
    with pytest.raises(StoreError, match=said):
        msgspec.structs.replace(StoreConfig(), **keys)


STEPS = st.one_of(
    st.tuples(st.just("put"), st.sampled_from("abc"), st.integers(0, 600)),
    st.sampled_from([("restart",), ("crash",), ("compact",), ("lose the log",), ("flush",)]),
)


@given(steps=st.lists(STEPS, max_size=40))
def test_any_sequence_serves_the_messages_that_no_compaction_removed(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[Any, ...]]
) -> None:
    """The newest of each key is kept, and the newest of all, as RocketMQ's last file is never compacted."""
    folder = tmp_path_factory.mktemp("compaction")
    root = folder / "first"
    expected: list[tuple[int, str | None, bytes]] = []
    next_offset = 0

    def start() -> MessageStore:
        store = MessageStore(root, COMPACTED, lambda: 1_700_000_000_000, UnsyncedDisk())
        store.open()
        store.set_compaction_topics([TOPIC])
        return store

    store = start()
    for number, (what, *details) in enumerate(steps):
        if what == "put":
            key, size = details
            body = b"%d" % number + bytes(size)
            result = store.put_message(message(key, body))
            assert (result.status, result.queue_offset) == (PutStatus.PUT_OK, next_offset)
            expected.append((next_offset, key, body))
            next_offset += 1
        elif what == "flush":
            store.flush_all()
        else:
            if what == "crash":
                shutil.copytree(root, folder / str(number))
                root = folder / str(number)
            store.close()
            if what == "compact" and expected:
                newest = {key: offset for offset, key, _ in expected}
                kept = set(newest.values())
                compact(root, kept)
                expected = [item for item in expected if item[0] in kept]
            elif what == "lose the log":
                shutil.rmtree(root / "commitlog", ignore_errors=True)
                shutil.rmtree(root / "consumequeue", ignore_errors=True)
            store = start()
        assert read_all(store) == expected
        assert store.max_offset(TOPIC, 0) == next_offset
        assert store.get_message(TOPIC, 0, next_offset, 32, None).status in (
            GetMessageStatus.OFFSET_OVERFLOW_ONE,
            GetMessageStatus.NO_MESSAGE_IN_QUEUE,
        )
    store.close()
