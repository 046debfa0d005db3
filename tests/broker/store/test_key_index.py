"""The key index (docs/spec/store.md 5, 16.9): files, queries, restarts."""

from __future__ import annotations

import shutil
import struct
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindmq.broker.store import MessageStore, PutStatus, StoreConfig, StoredMessage, StoreError
from rewindmq.broker.store.files.disk import OsDisk
from rewindmq.broker.store.files.mapped_file import MmapCache
from rewindmq.broker.store.index import file as index_file
from rewindmq.broker.store.index.file import IndexFile
from rewindmq.broker.store.layout.index import file_bytes, key_hash
from rewindmq.protocol.message.properties import format_properties
from rewindmq.protocol.message.record import decode_records
from rewindmq.protocol.remoting.slices.run import run_at_once
from rewindmq.protocol.text import java_hash
from tests.broker.store.store_box import StoreBox, UnsyncedDisk

SLOTS, ENTRIES = 7, 12
INDEXED = StoreConfig(
    mapped_file_size_commit_log=65_536,
    mapped_file_size_consume_queue=6_000,
    max_hash_slot_num=100,
    max_index_num=400,
)
END_OF_TIME = (1 << 63) - 1
HEADER = struct.Struct(">qqqqii")
ENTRY = struct.Struct(">iqii")


@pytest.fixture
def box(box: StoreBox) -> StoreBox:
    box.config = INDEXED
    return box


def put(
    box: StoreBox,
    store: MessageStore,
    keys: str = "",
    unique_key: str = "",
    topic: str = "T",
    sys_flag: int = 0,
) -> int:
    properties = {name: value for name, value in (("KEYS", keys), ("UNIQ_KEY", unique_key)) if value}
    message = StoredMessage(topic, 0, b"body", format_properties(properties).encode(), sys_flag=sys_flag)
    result = store.put_message(message)
    assert result.status is PutStatus.PUT_OK
    return result.physical_offset


def update(store: MessageStore) -> None:
    assert store.update_index(store.max_commit_log_offset, 1_000_000)


def find(
    store: MessageStore,
    key: str,
    topic: str = "T",
    max_count: int = 64,
    begin: int = 0,
    end: int = END_OF_TIME,
) -> list[int]:
    """Return the log positions of a query's result."""
    update(store)
    result = run_at_once(store.query_message(topic, key, max_count, begin, end))
    positions = [message.commit_log_offset for message in decode_records(result.body)]
    assert len(positions) == result.message_count
    return positions


def index_files(box: StoreBox) -> list[Path]:
    return sorted((box.root / "index").iterdir())


# Files


def test_a_message_is_found_under_its_unique_key_and_each_of_its_keys(box: StoreBox) -> None:
    store = box.open()
    position = put(box, store, keys=" a  b", unique_key="u")
    last = put(box, store, keys="c", topic="Other")
    assert [find(store, key) for key in ("a", "b", "u", "a b", "c", "")] == [[position]] * 3 + [[]] * 3
    (file,) = index_files(box)
    assert file.stat().st_size == file_bytes(100, 400) == 40 + 4 * 100 + 20 * 400
    assert len(file.name) == 17
    begin, end, begin_phy, end_phy, slots, count = HEADER.unpack_from(file.read_bytes())
    assert (begin, end, begin_phy, end_phy) == (box.now, box.now, position, last)
    assert (slots, count) == (4, 5)
    # Entry 0 is never used; the unique key comes first.
    first = ENTRY.unpack_from(file.read_bytes(), 40 + 4 * 100 + 20)
    assert first == (key_hash("T", "u"), position, 0, 0)


def test_the_index_is_not_built_before_the_first_query(box: StoreBox) -> None:
    store = box.open()
    put(box, store, keys="a")
    store.flush_all()
    store.close()
    assert not (box.root / "index").exists()
    assert find(box.open(), "a") == [0]


def test_without_keys_no_index_is_made(box: StoreBox) -> None:
    store = box.open()
    put(box, store)
    assert find(store, "a") == []
    assert not (box.root / "index").exists()


def test_message_index_enable_false_writes_none_and_serves_what_is_there(box: StoreBox) -> None:
    store = box.open()
    first = put(box, store, keys="a")
    assert find(store, "a") == [first]
    store.close()
    store = box.open(config=msgspec.structs.replace(INDEXED, message_index_enable=False))
    put(box, store, keys="a")
    assert find(store, "a") == [first]


def test_prepared_records_are_indexed_and_rollbacks_are_not(box: StoreBox) -> None:
    store = box.open()
    prepared = put(box, store, keys="a", sys_flag=0x4)
    put(box, store, keys="a", sys_flag=0xC)
    assert find(store, "a") == [prepared]


def test_catching_up_goes_in_steps(box: StoreBox) -> None:
    store = box.open()
    positions = [put(box, store, keys="a") for _ in range(5)]
    until = store.max_commit_log_offset
    assert not store.update_index(until, 2)
    assert run_at_once(store.query_message("T", "a", 64, 0, END_OF_TIME)).message_count == 2
    assert not store.update_index(until, 2)
    assert store.update_index(until, 2)
    assert store.update_index(until, 2)
    assert find(store, "a") == positions


def test_catching_up_crosses_segments(box: StoreBox) -> None:
    store = box.open()
    positions = [put(box, store, keys="a" if number % 100 == 0 else "") for number in range(1_500)]
    assert store.max_commit_log_offset > 65_536
    assert find(store, "a") == positions[::100]


# Queries


def test_the_newest_64_are_found_and_the_answer_begins_with_the_oldest(box: StoreBox) -> None:
    store = box.open()
    positions = [put(box, store, keys="a") for _ in range(70)]
    assert find(store, "a", max_count=1_000) == positions[-64:]
    assert find(store, "a", max_count=3) == positions[-3:]
    assert find(store, "a", max_count=0) == find(store, "a", max_count=-1) == []


def test_times_are_whole_seconds_since_the_first_message(box: StoreBox) -> None:
    store = box.open()
    start = box.now
    first = put(box, store, keys="a")
    box.now = start + 1_700
    second = put(box, store, keys="a")
    # The second message counts as stored at start + 1000.
    assert find(store, "a", begin=start + 1_000, end=start + 1_700) == [second]
    assert find(store, "a", begin=start + 1_500) == []
    assert find(store, "a", end=start + 1_000) == [first, second]
    assert find(store, "a", end=start + 999) == [first]
    assert find(store, "a", begin=start + 1_701) == []


def test_another_key_of_the_same_hash_comes_along(box: StoreBox) -> None:
    assert key_hash("T", "Aa") == key_hash("T", "BB")
    store = box.open()
    positions = [put(box, store, keys="Aa"), put(box, store, keys="BB")]
    assert find(store, "Aa") == positions


def test_a_record_posted_twice_is_found_once(box: StoreBox) -> None:
    store = box.open()
    position = put(box, store, keys="same same", unique_key="same")
    assert find(store, "same") == [position]


def test_hits_whose_records_are_gone_make_the_query_go_back(box: StoreBox) -> None:
    store = box.open()
    kept = put(box, store, keys="a")
    box.now += 5_000
    lost = put(box, store, keys="a")
    assert find(store, "a", max_count=1) == [lost]
    # As if the record had been damaged since.
    with (box.root / "commitlog" / ("0" * 20)).open("r+b") as log:
        log.seek(lost + 4)
        log.write(b"\0\0\0\0")
    assert find(store, "a") == [kept]
    assert find(store, "a", max_count=1) == []


@pytest.mark.parametrize(("slots", "keys"), [(1, ("x", "y", "x")), (7, ("a", "a", "b"))])
def test_a_chain_goes_from_newer_to_older(tmp_path: Path, slots: int, keys: tuple[str, ...]) -> None:
    file = make_file(tmp_path, slots)
    for number, key in enumerate(keys):
        file.put(key_hash("T", key), number * 100, 1_000_000 + number * 1_000)
    expected = [number * 100 for number, key in enumerate(keys) if key == keys[0]][::-1]
    assert run_at_once(file.select(key_hash("T", keys[0]), 64, 0, END_OF_TIME)) == expected


def test_the_hash_that_java_cannot_make_positive_is_0(box: StoreBox) -> None:
    assert java_hash("T#jllgvmc") == -(1 << 31)
    assert key_hash("T", "jllgvmc") == 0
    store = box.open()
    assert find(store, "jllgvmc") == []
    position = put(box, store, keys="jllgvmc")
    assert find(store, "jllgvmc") == [position]


def make_file(tmp_path: Path, slots: int, entries: int = ENTRIES) -> IndexFile:
    path = tmp_path / "20231114221320000"
    disk = OsDisk()
    disk.create(path, file_bytes(slots, entries))
    return IndexFile(path, slots, entries, disk, MmapCache(disk))


# Several files, against a plain reference


@dataclass
class PlainFile:
    """An index file as docs/spec/store.md 5.3 and 5.5 describe it, in lists."""

    begin: int = 0
    end: int = 0
    entries: list[tuple[int, int, int]] = field(default_factory=list)


@dataclass
class PlainIndex:
    files: list[PlainFile] = field(default_factory=list)

    def put(self, hash_value: int, position: int, at: int) -> None:
        if not self.files or len(self.files[-1].entries) == ENTRIES - 1:
            before = self.files[-1].end if self.files else 0
            self.files.append(PlainFile(before, before))
        file = self.files[-1]
        seconds = max(0, (at - file.begin) // 1_000) if file.begin > 0 else 0
        if not file.entries:
            file.begin = at
        file.entries.append((hash_value, position, seconds))
        file.end = at

    def query(self, hash_value: int, count: int, begin: int, end: int) -> list[int]:
        found: list[int] = []
        for file in reversed(self.files):
            if begin <= file.end and end >= file.begin:
                for other, position, seconds in reversed(file.entries):
                    if other % SLOTS != hash_value % SLOTS:
                        continue
                    at = file.begin + seconds * 1_000
                    if len(found) < count and other == hash_value and begin <= at <= end:
                        found.append(position)
                    if at < begin:
                        break
            if file.begin < begin or len(found) >= count:
                break
        return found


KEYS = st.sampled_from(("a", "b", "Aa", "BB"))
MESSAGES = st.lists(st.tuples(st.lists(KEYS, max_size=3), st.integers(0, 2_500)), max_size=30)
QUERIES = st.tuples(KEYS, st.integers(0, 5), st.integers(-1, 60_000), st.integers(-1, 60_000))


@given(messages=MESSAGES, queries=st.lists(QUERIES, min_size=1, max_size=8), stops=st.lists(st.booleans()))
def test_put_and_query_equal_a_plain_reference(
    tmp_path_factory: pytest.TempPathFactory,
    messages: list[tuple[list[str], int]],
    queries: list[tuple[str, int, int, int]],
    stops: list[bool],
) -> None:
    """Also over clean stops (True) and crashes: each comes after some messages, with the index behind."""
    folder = tmp_path_factory.mktemp("index")
    start = 1_700_000_000_000
    clock = [start]
    config = msgspec.structs.replace(INDEXED, max_hash_slot_num=SLOTS, max_index_num=ENTRIES)
    root = folder / "first"
    store = MessageStore(root, config, lambda: clock[0], UnsyncedDisk())
    store.open()
    plain = PlainIndex()
    for number, (keys, milliseconds) in enumerate(messages):
        clock[0] += milliseconds
        text = format_properties({"KEYS": " ".join(keys)} if keys else {}).encode()
        put_result = store.put_message(StoredMessage("T", 0, b"", text))
        for key in keys:
            plain.put(key_hash("T", key), put_result.physical_offset, clock[0])
        if number % 5 == 2:
            store.update_index(store.max_commit_log_offset, 3)
            store.flush_all()
        if number % 5 == 4 and stops:
            if not stops.pop():
                # The process is killed: its files stay unchanged, and another process opens them.
                shutil.copytree(root, folder / str(number))
                root = folder / str(number)
            store.close()
            store = MessageStore(root, config, lambda: clock[0], UnsyncedDisk())
            store.open()
    update(store)
    for key, count, begin, end in queries:
        result = run_at_once(store.query_message("T", key, count, start + begin, start + end))
        positions = [message.commit_log_offset for message in decode_records(result.body)]
        assert positions == sorted(set(plain.query(key_hash("T", key), count, start + begin, start + end)))
    store.close()


# Restarts


def test_after_a_clean_stop_the_index_goes_on_where_it_was(box: StoreBox) -> None:
    store = box.open()
    first = put(box, store, keys="a", unique_key="u")
    assert find(store, "a") == [first]
    store.close()
    store = box.open()
    second = put(box, store, keys="a")
    assert find(store, "a") == [first, second]
    (file,) = index_files(box)
    # No entry was written twice: two keys and one.
    assert HEADER.unpack_from(file.read_bytes())[5] == 4


def test_a_stop_brings_an_index_that_is_there_up_to_date(box: StoreBox) -> None:
    store = box.open()
    put(box, store, keys="a")
    find(store, "a")
    last = put(box, store, keys="b")
    store.close()
    assert HEADER.unpack_from(index_files(box)[0].read_bytes())[3] == last


def test_a_crash_drops_files_newer_than_the_checkpoint_and_they_are_rebuilt(box: StoreBox) -> None:
    store = box.open()
    positions = [put(box, store, keys="a")]
    find(store, "a")
    box.now += 1
    store.flush_all()
    crashed = box.crash("kept")
    kept = crashed.open()
    assert [path.name for path in index_files(crashed)] == [path.name for path in index_files(box)]
    kept.close()
    positions.append(put(box, store, keys="a"))
    assert find(store, "a") == positions
    crashed = box.crash("dropped")
    dropped = crashed.open()
    assert index_files(crashed) == []
    assert find(dropped, "a") == positions


def test_a_crash_costs_no_index_that_messages_have_followed(box: StoreBox) -> None:
    store = box.open()
    first = put(box, store, keys="a")
    box.now += 1
    find(store, "a")
    later = put(box, store, keys="a")
    store.flush_all()
    crashed = box.crash()
    again = crashed.open()
    assert len(index_files(crashed)) == 1
    assert find(again, "a") == [first, later]


def test_a_crash_costs_the_index_where_one_more_message_of_its_last_millisecond_followed(
    box: StoreBox,
) -> None:
    store = box.open()
    first = put(box, store, keys="a")
    find(store, "a")
    later = put(box, store, keys="a")
    box.now += 1
    store.flush_all()
    crashed = box.crash()
    again = crashed.open()
    assert index_files(crashed) == []
    assert find(again, "a") == [first, later]


def test_keys_of_one_message_in_two_files_outlive_the_loss_of_the_second(box: StoreBox) -> None:
    box.config = msgspec.structs.replace(INDEXED, max_index_num=4)
    store = box.open()
    put(box, store, keys="a b")
    divided = put(box, store, keys="c d")
    box.now += 10
    last = put(box, store, keys="e")
    assert find(store, "d") == [divided]
    assert len(index_files(box)) == 2
    store.flush_all()
    crashed = box.crash()
    again = crashed.open()
    assert len(index_files(crashed)) == 1
    assert [find(again, key) for key in "cde"] == [[divided], [divided], [last]]
    made = [path.read_bytes() for path in index_files(crashed)]
    assert made == [path.read_bytes() for path in index_files(box)]


def test_files_of_messages_that_the_log_lost_are_dropped(box: StoreBox) -> None:
    store = box.open()
    kept = put(box, store, keys="a")
    lost = put(box, store, keys="a")
    find(store, "a")
    store.close()
    with (box.root / "commitlog" / ("0" * 20)).open("r+b") as log:
        log.seek(lost)
        log.write(bytes(100))
    store = box.open()
    assert index_files(box) == []
    assert put(box, store, keys="b") == lost
    assert find(store, "a") == [kept]


def test_expired_files_are_deleted_except_the_newest(box: StoreBox) -> None:
    box.config = msgspec.structs.replace(INDEXED, max_index_num=4, mapped_file_size_commit_log=4_096)
    store = box.open()
    for _ in range(60):
        last = put(box, store, keys="a")
    find(store, "a")
    store.close()
    assert len(index_files(box)) == 20
    segments = sorted((box.root / "commitlog").iterdir())
    for segment in segments[:-1]:
        segment.unlink()
    store = box.open()
    assert 0 < len(index_files(box)) < 20
    assert find(store, "a")[-1] == last


def test_an_index_of_another_size_is_refused(box: StoreBox) -> None:
    store = box.open()
    put(box, store, keys="a")
    find(store, "a")
    store.close()
    wanted = r"index/\d{17} has 8440 bytes, but with maxHashSlotNum 50 and maxIndexNum 400 .* has 8240: use"
    with pytest.raises(StoreError, match=wanted):
        box.open(config=msgspec.structs.replace(INDEXED, max_hash_slot_num=50))
    assert find(box.open(), "a") == [0]


def test_foreign_files_are_ignored_and_an_empty_index_file_is_removed(box: StoreBox) -> None:
    store = box.open()
    put(box, store, keys="a")
    find(store, "a")
    store.close()
    (box.root / "index" / "notes.txt").write_text("x")
    (box.root / "index" / "20991231000000000").touch()
    assert find(box.open(), "a") == [0]
    assert [path.name for path in index_files(box)][1:] == ["notes.txt"]


def test_a_file_without_entries_is_removed(box: StoreBox) -> None:
    store = box.open()
    first = put(box, store, keys="a")
    find(store, "a")
    store.close()
    (box.root / "index" / "20991231000000000").write_bytes(bytes(file_bytes(100, 400)))
    store = box.open()
    assert len(index_files(box)) == 1
    second = put(box, store, keys="a")
    assert find(store, "a") == [first, second]
    assert HEADER.unpack_from(index_files(box)[0].read_bytes())[5] == 3


def test_a_damaged_header_drops_the_index(box: StoreBox) -> None:
    store = box.open()
    put(box, store, keys="a")
    find(store, "a")
    store.close()
    with index_files(box)[0].open("r+b") as file:
        file.seek(36)
        file.write(b"\x7f\xff\xff\xff")
    store = box.open()
    assert index_files(box) == []
    assert find(store, "a") == [0]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"max_hash_slot_num": 0}, "maxHashSlotNum must be at least 1"),
        ({"max_index_num": 1}, "maxIndexNum at least 2"),
        ({"max_index_num": 200_000_000}, "index files of 4020000040 bytes"),
    ],
)
def test_settings_that_no_index_file_can_have_are_refused(keys: dict[str, int], said: str) -> None:
    with pytest.raises(StoreError, match=said):
        msgspec.structs.replace(StoreConfig(), **keys)


def test_a_disk_that_is_full_costs_the_query_alone(box: StoreBox) -> None:
    class FullDisk(OsDisk):
        def create(self, path: Path, size: int) -> None:
            if path.parent.name == "index":
                raise OSError(28, "No space left on device", str(path))
            super().create(path, size)

    store = box.open(FullDisk())
    put(box, store, keys="a")
    with pytest.raises(StoreError, match=r"cannot write .*index/[0-9]{17}: No space left on device"):
        update(store)
    put(box, store, keys="a")


def test_entries_written_before_the_disk_was_full_are_not_written_again(box: StoreBox) -> None:
    class FullDisk(OsDisk):
        files = 1

        def create(self, path: Path, size: int) -> None:
            if path.parent.name == "index":
                if not self.files:
                    raise OSError(28, "No space left on device")
                self.files -= 1
            super().create(path, size)

    box.config = msgspec.structs.replace(INDEXED, max_index_num=4)
    disk = FullDisk()
    store = box.open(disk)
    position = put(box, store, keys="a b c d e")
    with pytest.raises(StoreError):
        update(store)
    disk.files = 1
    assert [find(store, key) for key in "abcde"] == [[position]] * 5
    assert [HEADER.unpack_from(path.read_bytes())[5] for path in index_files(box)] == [4, 3]


def test_a_query_of_a_long_chain_goes_in_steps_while_messages_are_stored(box: StoreBox) -> None:
    store = box.open()
    positions = [put(box, store, keys="k") for _ in range(3)]
    update(store)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_file, "_ENTRIES_PER_SLICE", 1)
        querying = store.query_message("T", "k", 64, 0, END_OF_TIME)
        next(querying)
        put(box, store, keys="k")
        update(store)
        result = run_at_once(querying)
    assert [message.commit_log_offset for message in decode_records(result.body)] == positions
    store.close()


@pytest.mark.parametrize("lost", ["entry", "nothing"])
def test_a_slot_newer_than_the_header_costs_no_key(box: StoreBox, lost: str) -> None:
    """A power failure may keep a slot that was written after the last flush, and lose header and entry."""
    store = box.open()
    first = put(box, store, keys="a")
    box.now += 1
    find(store, "a")
    later = put(box, store, keys="b")
    store.flush_all()
    (file,) = index_files(box)
    header = file.read_bytes()[: HEADER.size]
    box.now += 1
    newest = put(box, store, keys="a")
    assert find(store, "a") == [first, newest]
    crashed = box.crash()
    (damaged,) = index_files(crashed)
    data = bytearray(damaged.read_bytes())
    data[: HEADER.size] = header
    if lost == "entry":
        (count,) = struct.unpack_from(">i", header, HEADER.size - 4)
        data[HEADER.size + 400 + count * ENTRY.size :] = bytes(
            len(data) - HEADER.size - 400 - count * ENTRY.size
        )
    damaged.write_bytes(data)
    again = crashed.open()
    assert find(again, "a") == [first, newest]
    assert find(again, "b") == [later]
