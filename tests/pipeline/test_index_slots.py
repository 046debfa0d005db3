"""How many slots an index file has is found out from the file, whatever its keys (docs/spec/store.md 5)."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewindmq.broker.store.index_layout import HEADER_BYTES
from rewindmq.pipeline.files import LocalFiles
from rewindmq.pipeline.index_reader import IndexReader
from tests.pipeline.index_reference import index_files

NOON = 1_700_000_000_000
CAPACITY = 24_000


class CountingFiles(LocalFiles):
    """Knows how often it was read: elsewhere each time is a request over the network."""

    reads = 0

    def read(self, path: str, offset: int, length: int) -> bytes:
        self.reads += 1
        return super().read(path, offset, length)


def one_file(keys: list[str], slots: int, capacity: int = CAPACITY) -> bytes:
    """An index file of messages 100 bytes apart, the first not at the log's begin."""
    postings = [(f"T#{key}", 100 * number, NOON + number) for number, key in enumerate(keys, 1)]
    (data,) = index_files(postings, slots, capacity)
    return data


@pytest.mark.parametrize("slots", [1, 1_000, CAPACITY // 4], ids=["one", "few", "usual"])
def test_a_key_on_every_message_is_not_followed_to_its_first(tmp_path: Path, slots: int) -> None:
    data = one_file(["hot"] * 21_000, slots)
    path = tmp_path / "20231114221320000"
    path.write_bytes(data)
    files = CountingFiles()
    assert IndexReader(files, str(path), len(data)).slots == slots
    assert files.reads < 100


@pytest.mark.parametrize("slots", [1, 1_000, CAPACITY // 4], ids=["one", "few", "usual"])
def test_a_broker_that_goes_on_writing_does_not_disturb(tmp_path: Path, slots: int) -> None:
    """Slots and entries are newer than the header that was read before them."""
    keys = [f"k{number % 7}" for number in range(60)]
    then, now = one_file(keys[:40], slots), one_file(keys, slots)
    path = tmp_path / "20231114221320000"
    path.write_bytes(then[:HEADER_BYTES] + now[HEADER_BYTES:])
    assert IndexReader(LocalFiles(), str(path), len(now)).slots == slots


@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    keys=st.lists(st.sampled_from("abcdefghij"), min_size=1, max_size=99),
    slots=st.integers(1, 300),
    capacity=st.integers(100, 400),
)
def test_any_number_of_slots_is_found(
    tmp_path_factory: pytest.TempPathFactory, keys: list[str], slots: int, capacity: int
) -> None:
    data = one_file(keys, slots, capacity)
    path = tmp_path_factory.mktemp("index") / "20231114221320000"
    path.write_bytes(data)
    assert IndexReader(LocalFiles(), str(path), len(data)).slots == slots
