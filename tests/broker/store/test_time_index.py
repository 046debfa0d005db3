"""The time index: it changes no search by time and no store time, and a stale index does no harm."""

from __future__ import annotations

import errno
import struct
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from rewindmq.broker.store import Boundary, MessageStore, PutResult, SearchMode
from rewindmq.broker.store.files.disk import DiskEntry, OsDisk
from rewindmq.broker.store.layout.time_index import TIME, TimeIndexPosition, file_bytes
from rewindmq.broker.store.log.commit_log import CommitLog
from rewindmq.protocol.message.record import FIXED_V4
from tests.broker.store.store_box import StoreBox

ENTRIES = 300
COUNT = 700
TOPIC = "T"
LENGTH = FIXED_V4.size


class SpacedBox(StoreBox):
    """Its first run stored message n of 700 at ``begin`` + 10 n; ``results`` are those of the puts."""

    begin: int
    results: list[PutResult]


@pytest.fixture
def spaced(tmp_path: Path) -> Iterator[SpacedBox]:
    """A closed store with messages 0 to 699 in one queue, message n stored 10 n ms after the first."""
    box = SpacedBox(tmp_path / "store")
    store = box.open()
    begin = box.now
    results = [box.put(store, at=begin + 10 * number) for number in range(COUNT)]
    store.close()
    box.begin = begin
    box.results = results
    yield box
    box.close_all()


def write_index(box: SpacedBox, *, shift: int = 0, count: int = COUNT, **changes: int) -> None:
    """Write the pipeline's files; ``shift`` falsifies the times, to show whether the store uses them."""
    folder = box.root / "timeindex" / TOPIC / "0"
    folder.mkdir(parents=True)
    for first in range(0, count, ENTRIES):
        times = [box.begin + 10 * number + shift for number in range(first, min(first + ENTRIES, count))]
        data = b"".join(TIME.pack(time) for time in times).ljust(file_bytes(ENTRIES), b"\0")
        (folder / f"{8 * first:020d}").write_bytes(data)
    last = box.results[count - 1]
    position = TimeIndexPosition(
        begin=0,
        end=last.physical_offset + last.size,
        last=last.physical_offset,
        last_store_timestamp=last.store_timestamp,
    )
    position = msgspec.structs.replace(position, **changes)
    (box.root / "timeindex" / "position").write_bytes(position.to_json())


def answers(store: MessageStore, box: SpacedBox) -> list[int]:
    found = [store.store_time(TOPIC, 0, offset) for offset in (-1, 0, 1, 299, 300, 699, 700)]
    for timestamp in (-1, box.begin - 1, box.begin + 5, box.begin + 4_321, box.begin + 10_000_000):
        found.append(store.search_offset(TOPIC, 0, timestamp, Boundary.LOWER, SearchMode.NEAREST))
        found += [store.search_offset(TOPIC, 0, timestamp, end, SearchMode.BOUNDARY) for end in Boundary]
    return found


def test_the_answers_are_the_same_without_reading_the_log(
    spaced: SpacedBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = spaced.open()
    expected = answers(store, spaced)
    store.close()
    write_index(spaced)
    store = spaced.open()
    monkeypatch.setattr(CommitLog, "store_time", lambda log, offset: pytest.fail("the log was read"))
    assert answers(store, spaced) == expected


def test_messages_behind_the_index_are_looked_up_in_the_log(spaced: SpacedBox) -> None:
    store = spaced.open()
    expected = answers(store, spaced)
    store.close()
    write_index(spaced, count=450)
    store = spaced.open()
    assert answers(store, spaced) == expected


def test_searches_return_the_times_of_the_index(spaced: SpacedBox) -> None:
    write_index(spaced, shift=7)
    store = spaced.open()
    assert store.store_time(TOPIC, 0, 5) == spaced.begin + 57
    assert store.store_time("Other", 0, 5) == -1


def test_an_entry_before_the_begin_of_the_index_is_looked_up_in_the_log(spaced: SpacedBox) -> None:
    write_index(spaced, shift=7, begin=spaced.results[3].physical_offset)
    store = spaced.open()
    assert [store.store_time(TOPIC, 0, offset) - spaced.begin for offset in (2, 3)] == [20, 37]


@pytest.mark.parametrize(
    "changes", [{"last_store_timestamp": 1}, {"last": 1}, {"end": 5_000}, {"last": 1 << 40, "end": 1 << 41}]
)
def test_an_index_of_another_log_is_dropped(spaced: SpacedBox, changes: dict[str, int]) -> None:
    write_index(spaced, shift=7, **changes)
    store = spaced.open()
    assert store.store_time(TOPIC, 0, 5) == spaced.begin + 50
    assert not (spaced.root / "timeindex" / "position").exists()


def test_an_index_outlives_no_cut_of_the_log(spaced: SpacedBox) -> None:
    """Other messages of the same sizes get the positions and queue offsets of the lost messages."""
    write_index(spaced, shift=7)
    cut = spaced.results[600].physical_offset
    with (spaced.root / "commitlog" / f"{cut - cut % 65_536:020d}").open("r+b") as segment:
        segment.seek(cut % 65_536)
        segment.write(bytes(LENGTH))
    store = spaced.open()
    assert store.max_offset(TOPIC, 0) == 600
    for _ in range(200):
        spaced.now += 1_000
        spaced.put(store)
    assert store.store_time(TOPIC, 0, 600) == spaced.begin + 6_990 + 1_000
    assert store.store_time(TOPIC, 0, 5) == spaced.begin + 50
    store.close()
    store = spaced.open()
    assert store.store_time(TOPIC, 0, 600) == spaced.begin + 6_990 + 1_000


def test_an_index_brought_to_a_log_that_was_cut_meanwhile_is_dropped(spaced: SpacedBox) -> None:
    store = spaced.open()
    spaced.results.append(spaced.put(store, at=spaced.now + 10))
    store.close()
    last = spaced.results.pop()
    with (spaced.root / "commitlog" / f"{last.physical_offset - last.physical_offset % 65_536:020d}").open(
        "r+b"
    ) as segment:
        segment.seek(last.physical_offset % 65_536)
        segment.write(bytes(LENGTH))
    store = spaced.open()
    spaced.now += 10_000
    assert spaced.put(store).physical_offset == last.physical_offset
    store.close()
    spaced.results.append(last)
    write_index(spaced, shift=7, count=COUNT + 1)
    store = spaced.open()
    assert store.store_time(TOPIC, 0, COUNT) == spaced.now
    assert not (spaced.root / "timeindex" / "position").exists()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"begin":0}', b'{"begin":"x","end":1,"last":0}'])
def test_a_position_that_cannot_be_read_is_no_index(spaced: SpacedBox, content: bytes) -> None:
    write_index(spaced, shift=7)
    (spaced.root / "timeindex" / "position").write_bytes(content)
    store = spaced.open()
    assert store.store_time(TOPIC, 0, 5) == spaced.begin + 50


def test_an_index_of_an_empty_log_is_none(box: StoreBox) -> None:
    (box.root / "timeindex").mkdir(parents=True)
    empty = TimeIndexPosition(begin=0, end=0, last=-1, last_store_timestamp=-1)
    (box.root / "timeindex" / "position").write_bytes(empty.to_json())
    store = box.open()
    box.put(store)
    assert store.store_time(TOPIC, 0, 0) == box.now


def test_missing_files_zeros_and_files_of_another_size_cost_no_answer(spaced: SpacedBox) -> None:
    store = spaced.open()
    expected = answers(store, spaced)
    store.close()
    write_index(spaced)
    folder = spaced.root / "timeindex" / TOPIC / "0"
    (folder / f"{0:020d}").unlink()
    (folder / f"{8 * ENTRIES:020d}").write_bytes(b"\0" * 16)
    (folder / f"{16 * ENTRIES:020d}").write_bytes(struct.pack(">q", -5) * ENTRIES)
    store = spaced.open()
    assert answers(store, spaced) == expected


class UnlistedDisk(OsDisk):
    """Cannot list the folders of the time index while told so."""

    refuses = False

    def list_folder(self, path: Path) -> list[DiskEntry]:
        if self.refuses and "timeindex" in path.parts:
            raise OSError(errno.EMFILE, "Too many open files", str(path))
        return super().list_folder(path)


def test_an_index_that_cannot_be_read_for_a_while_is_used_afterwards(
    spaced: SpacedBox, caplog: pytest.LogCaptureFixture
) -> None:
    store = spaced.open()
    expected = answers(store, spaced)
    store.close()
    write_index(spaced, shift=1)
    store = spaced.open(disk := UnlistedDisk())
    disk.refuses = True
    assert answers(store, spaced) == expected
    folder = spaced.root / "timeindex" / TOPIC / "0"
    assert caplog.messages == [f"time index not used for now: {folder}: Too many open files"]
    disk.refuses = False
    assert store.store_time(TOPIC, 0, 1) == spaced.begin + 11
