"""What a power failure may leave of a store: any of the sectors and names that were not synced.

``./scripts/crash_points`` tries all writes of whole workloads; these are the cases that it has found.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rewindmq.broker.store import BatchEntry, MessageStore, PutStatus, StoredMessage
from rewindmq.broker.store.files.disk import OsDisk
from rewindmq.protocol.remoting.slices.run import run_at_once
from rewindmq.protocol.text import java_hash
from tests.broker.store.store_box import StoreBox

SECTOR = 512
ENTRY_BYTES = 20
TAGS_CODE_AT = 12


class FolderWatch(OsDisk):
    """Notes which folders are synced."""

    def __init__(self) -> None:
        super().__init__()
        self.synced: list[str] = []

    def sync_folder(self, path: Path) -> None:
        super().sync_folder(path)
        self.synced.append(path.name)


def patch(path: Path, position: int, data: bytes) -> None:
    with path.open("r+b") as file:
        os.pwrite(file.fileno(), data, position)


def queue_file(box: StoreBox) -> Path:
    return box.root / "consumequeue/T/0" / f"{0:020d}"


def log_file(box: StoreBox) -> Path:
    return box.root / "commitlog" / f"{0:020d}"


def test_a_flush_makes_the_name_of_a_new_segment_durable(box: StoreBox) -> None:
    disk = FolderWatch()
    store = box.open(disk)
    disk.synced.clear()
    box.put(store)
    assert disk.synced == []
    store.flush()
    assert disk.synced == ["commitlog", "store"]
    box.put(store)
    store.flush()
    assert disk.synced == ["commitlog", "store"]


def test_a_checkpoint_is_written_after_the_names_of_new_queues_are_durable(box: StoreBox) -> None:
    disk = FolderWatch()
    store = box.open(disk)
    box.put(store)
    store.flush()
    disk.synced.clear()
    store.flush_all()
    assert disk.synced[:4] == ["0", "T", "consumequeue", "store"]


def test_the_mark_of_a_running_store_is_durable_before_it_serves(box: StoreBox) -> None:
    disk = FolderWatch()
    box.open(disk)
    assert disk.synced[-1] == "store"


def test_a_restart_after_a_kill_makes_the_names_it_finds_durable(box: StoreBox) -> None:
    """The killed process may have created files, and no later flush knows that they are new."""
    box.put(box.open())
    disk = FolderWatch()
    box.crash().open(disk)
    assert {"commitlog", "consumequeue", "T", "0"} <= set(disk.synced)


def test_a_failed_sync_of_a_folder_is_tried_again(tmp_path: Path) -> None:
    class Failing(FolderWatch):
        fails = True

        def sync_folder(self, path: Path) -> None:
            if self.fails:
                raise OSError(5, "Input/output error")
            super().sync_folder(path)

    disk = Failing()
    disk.create(tmp_path / "folder/file", 1)
    with pytest.raises(OSError, match="Input/output"):
        disk.sync(tmp_path / "folder/file")
    disk.fails = False
    disk.sync(tmp_path / "folder/file")
    assert disk.synced == ["folder", tmp_path.name]


@pytest.mark.parametrize("lost", [TAGS_CODE_AT, TAGS_CODE_AT + 4, 0], ids=["code", "half a code", "position"])
def test_a_queue_entry_of_which_a_part_is_lost_is_rebuilt(box: StoreBox, lost: int) -> None:
    """Entry 25 is in two sectors of the disk, and looks valid without its first or its last part."""
    store = box.open()
    for number in range(27):
        box.put(store, body=b"%d" % number, tag="blue")
    store.flush()
    crashed = box.crash()
    at = 25 * ENTRY_BYTES + lost
    patch(queue_file(crashed), at, bytes(ENTRY_BYTES - lost if lost else 8))
    entries = [store.entry("T", 0, offset) for offset in range(27)]
    found = crashed.open()
    assert [found.entry("T", 0, offset) for offset in range(27)] == entries
    assert entries[25] is not None
    assert entries[25][2] == java_hash("blue")


@pytest.mark.parametrize("sector", [2, 3])
def test_a_message_whose_properties_are_torn_ends_the_log(box: StoreBox, sector: int) -> None:
    """No CRC covers the properties; in a lost sector they are zeros."""
    store = box.open()
    box.put(store, body=b"first")
    box.put(store, body=b"torn", tag="t" * 2_000)
    crashed = box.crash()
    patch(log_file(crashed), sector * SECTOR, bytes(SECTOR))
    found = crashed.open()
    assert found.max_offset("T", 0) == 1
    assert box.put(found, body=b"next").queue_offset == 1


def test_the_end_of_a_torn_message_is_durable_before_the_store_serves(box: StoreBox) -> None:
    """Else a clean stop and a power failure could bring the message back, and nothing would look for it.

    The message is the first one of its segment, so that no later flush has a record to sync there.
    """

    class FileWatch(OsDisk):
        def __init__(self) -> None:
            self.synced: list[str] = []

        def sync(self, path: Path) -> None:
            super().sync(path)
            self.synced.append(path.name)

    store = box.open()
    box.put(store, body=bytes(64_000))
    box.put(store, body=b"torn", tag="t" * 2_000)
    store.flush()
    crashed = box.crash()
    second = crashed.root / "commitlog" / f"{65_536:020d}"
    patch(second, 2 * SECTOR, bytes(SECTOR))
    disk = FileWatch()
    found = crashed.open(disk)
    assert found.max_offset("T", 0) == 1
    assert second.name in disk.synced


@pytest.mark.parametrize("sector", [2, 3])
def test_zeros_in_properties_stay_after_a_clean_stop(box: StoreBox, sector: int) -> None:
    """Only a power failure tears a message: the log that another broker closed stays as it is."""
    store = box.open()
    box.put(store, body=b"whole", tag="t" * 2_000)
    store.close()
    patch(log_file(box), sector * SECTOR, bytes(SECTOR))
    assert box.open().max_offset("T", 0) == 1


def test_properties_cannot_look_torn(box: StoreBox) -> None:
    store = box.open()
    message = StoredMessage("T", 0, b"\0body", b"name\x01a\0b")
    assert store.put_message(message).status is PutStatus.MESSAGE_ILLEGAL
    batch = [BatchEntry(b"\0body", b""), BatchEntry(b"body", b"name\x01\0")]
    assert store.put_batch(StoredMessage("T", 0, b""), batch).status is (PutStatus.MESSAGE_ILLEGAL)
    assert store.max_offset("T", 0) == 0


def test_only_entries_behind_the_checkpoint_are_rebuilt(box: StoreBox) -> None:
    store: MessageStore = box.open()
    for number in range(40):
        # Eight messages fill a segment; the checkpoint allows for 3 s.
        box.put(store, body=bytes(8_000), at=box.now + 4_000 if number % 8 == 0 else None)
    store.flush_all()
    box.put(store, body=b"last")
    found = box.crash().open()
    assert found.rebuilt_entries <= 17
    assert found.max_offset("T", 0) == 41


def test_a_queue_does_not_start_over_while_its_last_segment_is_being_deleted(box: StoreBox) -> None:
    """A power failure may keep the segment; the restart must not find two lives of the queue in the log."""
    store = box.open()
    box.put(store, body=b"old")
    for _ in range(10):
        box.put(store, "Other", body=bytes(8_000))
    store.flush()
    segment = store.cleaner.take_segment(None)
    assert segment is not None
    assert run_at_once(store.cleaner.remove_expired_queues()) == 0
    assert box.put(store, body=b"new").queue_offset == 1
    found = box.crash().open()
    assert [b"old" in found.get_message("T", 0, 0, 1, None).body, found.max_offset("T", 0)] == [True, 2]


@pytest.mark.parametrize("fails", [False, True], ids=["deleted", "put back"])
def test_a_queue_starts_over_once_its_last_segment_is_deleted(box: StoreBox, fails: bool) -> None:
    store = box.open()
    box.put(store, body=b"old")
    for _ in range(20):
        box.put(store, "Other", body=bytes(8_000))
    store.flush()
    segment = store.cleaner.take_segment(None)
    assert segment is not None
    if fails:
        store.cleaner.put_back(segment)
        assert run_at_once(store.cleaner.remove_expired_queues()) == 0
        segment = store.cleaner.take_segment(None)
        assert segment is not None
    store.cleaner.delete(segment)
    assert store.cleaner.take_segment(None) is not None
    assert run_at_once(store.cleaner.remove_expired_queues()) == 1
    assert box.put(store, body=b"new").queue_offset == 0
