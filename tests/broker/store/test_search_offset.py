"""Search by store time (docs/spec/store.md 16.8, docs/spec/broker.md B.10, scenario B19)."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindmq.broker.store import Boundary, MessageStore, SearchMode, StoreConfig, StoredMessage
from tests.broker.store.store_box import StoreBox, UnsyncedDisk

LOWER, UPPER = Boundary.LOWER, Boundary.UPPER
NEAREST, BOUNDARY = SearchMode.NEAREST, SearchMode.BOUNDARY
WORKED_EXAMPLE = (100, 200, 200, 200, 300, 400)
NEVER = 10**15


@pytest.fixture
def worked(box: StoreBox) -> MessageStore:
    store = box.open()
    for time in WORKED_EXAMPLE:
        box.put(store, at=time)
    return store


@pytest.mark.parametrize(
    ("timestamp", "v49", "lower", "upper"),
    [
        (50, 0, 0, 0),
        (100, 0, 0, 0),
        (200, 2, 1, 3),
        (240, 3, 4, 3),
        (250, 3, 4, 3),
        (260, 4, 4, 3),
        (400, 5, 5, 5),
        (500, 5, 6, 5),
        (-1, 0, 0, 0),
        (NEVER, 5, 6, 5),
    ],
)
def test_B19_search_offset_by_time(
    worked: MessageStore, timestamp: int, v49: int, lower: int, upper: int
) -> None:
    assert worked.search_offset("T", 0, timestamp, LOWER, NEAREST) == v49
    assert worked.search_offset("T", 0, timestamp, UPPER, NEAREST) == v49
    assert worked.search_offset("T", 0, timestamp, LOWER, BOUNDARY) == lower
    assert worked.search_offset("T", 0, timestamp, UPPER, BOUNDARY) == upper


def test_B19_with_min_raised_to_2(box: StoreBox) -> None:
    store = box.open()
    times = (100, 200, 200, 200, 300, 400)
    # The first two records fill a segment that then goes.
    for number, time in enumerate(times):
        box.put(store, at=time, body=b"x" * (32_300 if number < 2 else 1_000))
    store.close()
    (box.root / "commitlog" / ("0" * 20)).unlink()
    store = box.open()
    assert store.min_offset("T", 0) == 2
    assert store.search_offset("T", 0, 50, LOWER, NEAREST) == 2
    assert store.search_offset("T", 0, 50, LOWER, BOUNDARY) == 2
    assert store.search_offset("T", 0, 50, UPPER, BOUNDARY) == 2
    assert store.search_offset("T", 0, 250, LOWER, NEAREST) == 3


def test_B21_an_empty_queue(box: StoreBox) -> None:
    store = box.open()
    for mode in SearchMode:
        for boundary in Boundary:
            assert store.search_offset("T", 0, 100, boundary, mode) == 0


def test_many_equal_times(box: StoreBox) -> None:
    store = box.open()
    for number in range(20):
        box.put(store, at=1_000 if 3 <= number < 16 else 900 + number * 10)
    assert store.search_offset("T", 0, 1_000, LOWER, BOUNDARY) == 3
    assert store.search_offset("T", 0, 1_000, UPPER, BOUNDARY) == 15


@pytest.fixture
def three_files(box: StoreBox) -> MessageStore:
    """900 messages at 10 000, 10 010, ...: three queue files of 300."""
    store = box.open()
    for number in range(900):
        box.put(store, at=10_000 + number * 10, body=b"")
    return store


@pytest.mark.parametrize(
    ("timestamp", "nearest", "lower", "upper"),
    [
        (9_000, 0, 0, 0),
        (12_990, 299, 299, 299),
        # Between the last message of one file and the first of the next: the search chooses the file first.
        (12_992, 300, 300, 299),
        (12_998, 300, 300, 299),
        (13_000, 300, 300, 300),
        (13_004, 300, 301, 300),
        (18_990, 899, 899, 899),
        (20_000, 899, 900, 899),
    ],
)
def test_search_over_several_files(
    box: StoreBox, three_files: MessageStore, timestamp: int, nearest: int, lower: int, upper: int
) -> None:
    def check(store: MessageStore) -> None:
        assert store.search_offset("T", 0, timestamp, LOWER, NEAREST) == nearest
        assert store.search_offset("T", 0, timestamp, LOWER, BOUNDARY) == lower
        assert store.search_offset("T", 0, timestamp, UPPER, BOUNDARY) == upper

    check(three_files)
    three_files.close()
    # The times of the files survive.
    check(box.open())


def test_v49_searches_the_first_file_when_a_copy_lost_the_times(
    box: StoreBox, three_files: MessageStore
) -> None:
    three_files.close()
    for path in (box.root / "consumequeue" / "T" / "0").iterdir():
        os.utime(path, (10**9, 10**9))
    store = box.open()
    assert store.search_offset("T", 0, 15_000, LOWER, NEAREST) == 299
    assert store.search_offset("T", 0, 15_000, LOWER, BOUNDARY) == 500


def test_v49_when_every_entry_of_the_chosen_file_has_expired(box: StoreBox) -> None:
    store = box.open()
    for number in range(600):
        box.put(store, at=10_000 + number * 10, body=b"x" * 500)
    store.close()
    for base in range(0, 4 * 65_536, 65_536):
        (box.root / "commitlog" / f"{base:020d}").unlink()
    store = box.open()
    assert store.min_offset("T", 0) > 300
    # The first file was last written to at 12 990; nothing in it is left, its base is 0.
    assert store.search_offset("T", 0, 10_500, LOWER, NEAREST) == 0
    assert store.search_offset("T", 0, 10_500, LOWER, BOUNDARY) == store.min_offset("T", 0)


@given(
    steps=st.lists(st.integers(0, 3), min_size=1, max_size=60),
    probes=st.lists(st.integers(-2, 190), min_size=1, max_size=10),
)
def test_boundaries_equal_a_linear_scan(
    tmp_path_factory: pytest.TempPathFactory, steps: list[int], probes: list[int]
) -> None:
    times: list[int] = []
    now = 0
    store = MessageStore(
        tmp_path_factory.mktemp("store"),
        StoreConfig(mapped_file_size_commit_log=8_192, mapped_file_size_consume_queue=200),
        lambda: now,
        UnsyncedDisk(),
    )
    store.open()
    for step in steps:
        now += step
        times.append(now)
        store.put_message(StoredMessage("T", 0, b""))
    for probe in probes:
        lower = next((index for index, time in enumerate(times) if time >= probe), len(times))
        upper = max((index for index, time in enumerate(times) if time <= probe), default=0)
        assert store.search_offset("T", 0, probe, LOWER, BOUNDARY) == lower
        assert store.search_offset("T", 0, probe, UPPER, BOUNDARY) == upper
        nearest = store.search_offset("T", 0, probe, LOWER, NEAREST)
        assert 0 <= nearest < len(times)
        if probe in times:
            assert times[nearest] == probe
    store.close()
