"""With any bytes in the files, the store opens, reads never raise, and writes continue."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewindmq.broker.store import (
    BatchEntry,
    Boundary,
    MessageStore,
    PutStatus,
    SearchMode,
    StoreConfig,
    StoredMessage,
)
from tests.broker.store.store_box import UnsyncedDisk
from tests.support.properties import few_and_all

CONFIG = StoreConfig(mapped_file_size_commit_log=8_192, mapped_file_size_consume_queue=400)
QUEUES = [("T", 0), ("T", 1), ("SCHEDULE_TOPIC_XXXX", 0)]
FILES = [
    *(f"commitlog/{number * 8_192:020d}" for number in range(3)),
    *(f"consumequeue/{topic}/{queue_id}/{'0' * 20}" for topic, queue_id in QUEUES),
    "checkpoint",
]

DAMAGES = st.lists(
    st.tuples(
        st.sampled_from(FILES),
        st.floats(0, 1, exclude_max=True),
        st.one_of(
            st.binary(min_size=1, max_size=40),
            st.sampled_from([b"\0" * 400, b"\xff" * 400, b"\x7f\xff\xff\xff" * 30, b"\xda\xa3\x20\xa7" * 30]),
        ),
    ),
    min_size=1,
    max_size=5,
)


def make_store(root: Path) -> MessageStore:
    store = MessageStore(root, CONFIG, lambda: 1_000, UnsyncedDisk())
    store.open()
    return store


def fill(store: MessageStore) -> None:
    for number in range(60):
        topic, queue_id = QUEUES[number % 3]
        store.put_message(StoredMessage(topic, queue_id, b"x" * 200, b"DELAY\x012\x02TAGS\x01TagA"))
    store.put_batch(StoredMessage("T", 0, b""), [BatchEntry(b"y" * 100, b"")] * 4)


def read_everything(store: MessageStore) -> None:
    for topic, queue_id in QUEUES:
        low, high = store.min_offset(topic, queue_id), store.max_offset(topic, queue_id)
        assert 0 <= low <= high
        for offset in range(low - 1, high + 2):
            result = store.get_message(topic, queue_id, offset, 3, None)
            assert offset < result.next_begin_offset or not low <= offset < high
            store.store_time(topic, queue_id, offset)
            store.is_cold(topic, queue_id, offset)
        for boundary in Boundary:
            for mode in SearchMode:
                assert 0 <= store.search_offset(topic, queue_id, 1_000, boundary, mode) <= high
    for position in range(0, store.max_commit_log_offset + 100, 7):
        record = store.look_message(position)
        assert record is None or int.from_bytes(record[28:36], "big") == position


@pytest.mark.parametrize("examples", few_and_all(30, 120))
def test_damaged_files(tmp_path_factory: pytest.TempPathFactory, examples: int) -> None:
    @settings(max_examples=examples)
    @given(damages=DAMAGES, abort=st.booleans())
    def run(damages: list[tuple[str, float, bytes]], abort: bool) -> None:
        check_damaged(tmp_path_factory.mktemp("damage") / "store", damages, abort)

    run()


def check_damaged(root: Path, damages: list[tuple[str, float, bytes]], abort: bool) -> None:
    store = make_store(root)
    fill(store)
    store.close()
    for name, where, data in damages:
        path = root / name
        content = bytearray(path.read_bytes())
        at = int(where * len(content))
        content[at : at + len(data)] = data[: len(content) - at]
        path.write_bytes(content)
    if abort:
        (root / "abort").touch()
    store = make_store(root)
    read_everything(store)
    before = store.max_offset("T", 0)
    result = store.put_message(StoredMessage("T", 0, b"after"))
    assert (result.status, result.queue_offset) == (PutStatus.PUT_OK, before)
    assert store.get_message("T", 0, before, 1, None).message_count == 1
    store.close()
    shutil.rmtree(root)
