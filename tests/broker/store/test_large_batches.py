"""Large batches: prepared in steps between other messages, and stored in one step."""

from __future__ import annotations

import errno

import pytest

from rewindmq.broker.store import BatchEntry, MessageStore, PutStatus, StoreConfig, StoredMessage
from rewindmq.broker.store.messages.batch import BatchDraft
from rewindmq.protocol.message.record import decode_record
from tests.broker.store.store_box import StoreBox
from tests.support.failing_disk import FailingDisk

LARGE = StoreConfig(mapped_file_size_commit_log=8 << 20, mapped_file_size_consume_queue=6_000_000)
COUNT = 8_000


def _entries(count: int, length: int = 0) -> list[BatchEntry]:
    # Records of many sizes, and tagsCodes of both signs.
    return [
        BatchEntry(b"%d" % n, b"K\x01" + b"v" * (n % 7 + 1 + length), -n if n % 2 else n)
        for n in range(count)
    ]


def _draft(store: MessageStore, entries: list[BatchEntry]) -> BatchDraft:
    draft = store.draft(StoredMessage("T", 0, b"", born_timestamp=5))
    for first in range(0, len(entries), 256):
        draft.add(entries[first : first + 256])
    return draft


def _check(store: MessageStore, entries: list[BatchEntry], first: int) -> None:
    """Each message is in the log where its entry says, with its offset and position."""
    for number, (body, properties, tags_code, _) in enumerate(entries):
        found = store.entry("T", 0, first + number)
        assert found is not None
        at, size, code = found
        assert code == tags_code
        record = decode_record(store.look_message(at) or b"")
        assert (record.stored_body, record.queue_offset, record.commit_log_offset) == (
            body,
            first + number,
            at,
        )
        assert size == record.store_size
        assert record.properties["K"] == properties[2:].decode()


@pytest.mark.parametrize("count", [1, 127, 128, 129, 256, 400])
def test_a_batch_of_any_size_is_stored_where_its_entries_say(box: StoreBox, count: int) -> None:
    store = box.open()
    box.put(store)
    entries = _entries(count)
    result = store.put_draft(_draft(store, entries))
    assert (result.status, result.queue_offset, result.message_count) == (PutStatus.PUT_OK, 1, count)
    _check(store, entries, 1)
    store.close()
    _check(box.open(), entries, 1)


def test_messages_stored_between_the_steps_of_a_preparation_stay_and_precede_the_batch(box: StoreBox) -> None:
    store = box.open(config=LARGE)
    entries = _entries(COUNT)
    draft = _draft(store, entries)
    steps = 0
    for _ in store.prepare_draft(draft):
        box.put(store, body=b"between" * 1_000)
        steps += 1
    assert steps >= draft.size // (256 << 10)
    assert store.put_draft(draft).queue_offset == steps
    for number in range(steps):
        found = store.entry("T", 0, number)
        assert found is not None
        assert decode_record(store.look_message(found[0]) or b"").stored_body == b"between" * 1_000
    _check(store, entries, steps)


def test_a_preparation_changes_nothing_that_a_restart_reads(box: StoreBox) -> None:
    """The broker was killed between preparation and batch."""
    store = box.open(config=LARGE)
    box.put(store)
    end = store.max_commit_log_offset
    for _ in store.prepare_draft(_draft(store, _entries(COUNT))):
        pass
    assert store.max_commit_log_offset == end
    again = box.crash().open(config=LARGE)
    assert (again.max_commit_log_offset, again.max_offset("T", 0)) == (end, 1)


def test_a_preparation_that_finds_no_room_leaves_the_refusal_to_the_batch(box: StoreBox) -> None:
    disk = FailingDisk(lambda: box.now)
    store = box.open(disk.disk, LARGE)
    box.put(store)
    draft = _draft(store, _entries(COUNT, 600))
    disk.fail(errno.ENOSPC, "allocate")
    for _ in store.prepare_draft(draft):
        pass
    assert store.put_draft(draft).status is PutStatus.CREATE_MAPPED_FILE_FAILED
    assert store.max_offset("T", 0) == 1
