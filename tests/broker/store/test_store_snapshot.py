"""A copy of an open store, with links to its full files, opens at the same state, and nothing changes it."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from rewindmq.broker.store import MessageStore
from rewindmq.broker.store.layout.known_end import KNOWN_END_FILE
from rewindmq.protocol.files.copying import copy_file
from tests.broker.store.store_box import StoreBox, drop_segment
from tests.broker.store.test_recovery import SEGMENT, body, patch, segment, stored_bodies


@pytest.fixture
def box(tmp_path: Path) -> Iterator[StoreBox]:
    made = StoreBox(tmp_path / "store")
    yield made
    made.close_all()


def snapshot(store: MessageStore, box: StoreBox, name: str = "snapshot") -> StoreBox:
    """Copy an open store as a snapshot does, and put back the copy as a restore does."""
    files = store.snapshot.files()
    target = box.root.with_name(name)
    target.mkdir()
    for relative in (*files.full, *files.growing):
        (target / relative).parent.mkdir(parents=True, exist_ok=True)
    for relative in files.full:
        os.link(box.root / relative, target / relative)
    for relative in files.growing:
        copy_file(box.root / relative, target / relative)
    (target / KNOWN_END_FILE).write_bytes(msgspec.json.encode(store.snapshot.known_end()))
    copy = StoreBox(target, box.config)
    copy.now = box.now
    copy._opened = box._opened
    return copy


def hashes(box: StoreBox) -> dict[Path, str]:
    return {
        path.relative_to(box.root): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(box.root.rglob("*"))
        if path.is_file() and path.name != "lock"
    }


def filled(box: StoreBox, count: int) -> MessageStore:
    store = box.open()
    for number in range(count):
        box.put(store, body=body(number), at=box.now + 1_000)
    return store


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 30])
def test_a_copy_of_an_open_store_opens_at_the_same_state(box: StoreBox, count: int) -> None:
    """Eight records fill a segment."""
    store = filled(box, count)
    for number in range(count * 400 // 30):
        box.put(store, topic="Small", queue_id=number % 2, body=b"x", at=box.now + 1)
    copy = snapshot(store, box).open()
    assert stored_bodies(copy) == [body(number) for number in range(count)]
    for queue in (("T", 0), ("Small", 0), ("Small", 1)):
        assert copy.max_offset(*queue) == store.max_offset(*queue)
    assert copy.max_commit_log_offset == store.max_commit_log_offset
    assert copy.rebuilt_entries == 0


def test_no_record_is_read_to_find_the_known_end(box: StoreBox) -> None:
    """After a clean stop, recovery would end the log before the damaged record."""
    store = filled(box, 12)
    copy = snapshot(store, box)
    patch(segment(copy, 1), 100, b"damage")
    assert copy.open().max_commit_log_offset == store.max_commit_log_offset


def test_messages_after_the_snapshot_follow_those_in_it(box: StoreBox) -> None:
    copied = snapshot(filled(box, 12), box)
    copy = copied.open()
    for number in range(12, 40):
        copied.put(copy, body=body(number), at=copied.now + 1)
    copy.close()
    assert stored_bodies(copied.open()) == [body(number) for number in range(40)]


def test_a_known_end_of_an_earlier_time_is_not_used(box: StoreBox) -> None:
    """Another program opened the store, and left the file."""
    copied = snapshot(filled(box, 12), box)
    saved = (copied.root / KNOWN_END_FILE).read_bytes()
    copy = copied.open()
    copied.put(copy, body=body(12), at=copied.now + 1)
    copy.close()
    (copied.root / KNOWN_END_FILE).write_bytes(saved)
    again = copied.open()
    assert again.max_offset("T", 0) == 13
    assert not (copied.root / KNOWN_END_FILE).exists()


@pytest.mark.parametrize("content", [b"", b"{", b'{"logEnd":-1,"lastStoreTimestamp":0,"queueEnds":{}}'])
def test_an_unreadable_known_end_is_ignored(box: StoreBox, content: bytes) -> None:
    copied = snapshot(filled(box, 12), box)
    (copied.root / KNOWN_END_FILE).write_bytes(content)
    assert copied.open().max_offset("T", 0) == 12


def test_nothing_that_happens_to_the_store_changes_the_snapshot(box: StoreBox) -> None:
    """Sends, the deletion of segments, a clean stop, and a crash."""
    store = filled(box, 30)
    copied = snapshot(store, box)
    before = hashes(copied)
    for number in range(30, 60):
        box.put(store, body=body(number), at=box.now + 1)
    store.flush_all()
    assert drop_segment(store, box.now + 1)
    store.flush_all()
    store.close()
    assert hashes(copied) == before
    store = box.open()
    box.put(store, body=body(60), at=box.now + 1)
    box.crash().open()
    assert hashes(copied) == before


def test_a_log_that_is_truncated_into_a_full_segment_leaves_the_snapshot(box: StoreBox) -> None:
    """The last segment is lost, and the end of the one before it damaged: writing goes on in a full file."""
    store = filled(box, 20)
    copied = snapshot(store, box)
    before = hashes(copied)
    store.close()
    segment(box, 2).unlink()
    # Damage this store's own copy of the segment, not the snapshot's.
    own = box.root / "own"
    shutil.copy(segment(box, 1), own)
    patch(own, 7 * (SEGMENT // 8), b"\0" * 8)
    os.link(own, own.with_name("shared"))
    own.replace(segment(box, 1))
    shared = own.with_name("shared").read_bytes()
    store = box.open()
    end = store.max_offset("T", 0)
    assert 8 <= end < 16
    for number in range(end, 20):
        box.put(store, body=body(number), at=box.now + 1)
    assert stored_bodies(store) == [body(number) for number in range(20)]
    assert (box.root / "shared").read_bytes() == shared
    assert hashes(copied) == before
