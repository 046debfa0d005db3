"""After a failed flush: nothing counts as durable, the bytes are written again, and lost records are seen."""

from __future__ import annotations

import errno
import mmap
from pathlib import Path

import pytest

from rewindmq.broker.store import MessageStore, PutStatus, StoredMessage, StoreError
from rewindmq.broker.store.files.disk import OsDisk
from rewindmq.protocol.remoting.slices.run import run_at_once
from tests.broker.store.store_box import StoreBox
from tests.support.unused_topics import remove_unused_topics


class BrokenDisk(OsDisk):
    """Fails to make files durable while told so, and records what is written again."""

    def __init__(self) -> None:
        self.broken: str | None = None
        self.rewritten: list[tuple[str, int, int]] = []

    def sync(self, path: Path) -> None:
        if self.broken is not None and self.broken in str(path):
            raise OSError(errno.EIO, "Input/output error", str(path))
        super().sync(path)

    def rewrite(self, path: Path, start: int, end: int) -> None:
        self.rewritten.append((path.parent.name, start, end))
        super().rewrite(path, start, end)


def is_accepted(store: MessageStore) -> bool:
    return store.put_message(StoredMessage("T", 0, b"more")).status is PutStatus.PUT_OK


@pytest.mark.parametrize("broken", ["commitlog", "consumequeue", "index"])
def test_messages_are_accepted_again_when_a_flush_of_everything_succeeds(box: StoreBox, broken: str) -> None:
    store = box.open(disk := BrokenDisk())
    store.put_message(StoredMessage("T", 0, b"hello", b"KEYS\x01k"))
    assert store.update_index(store.max_commit_log_offset, 10)
    disk.broken = broken
    with pytest.raises(StoreError, match=f"cannot flush .*/{broken}/.*: Input/output error"):
        store.flush_all()
    assert broken in store.flush_failure
    assert not is_accepted(store)
    disk.broken = None
    store.prepare_retry()
    store.flush_all()
    assert store.flush_failure == ""
    assert is_accepted(store)
    assert store.flushed_offset > 0
    assert store.update_index(store.max_commit_log_offset, 10)
    assert run_at_once(store.query_message("T", "k", 32, 0, 2**62)).message_count == 1
    store.close()
    assert not (box.root / "abort").exists()


def test_only_bytes_that_were_not_durable_are_written_again(box: StoreBox) -> None:
    """A second fdatasync would skip the pages of the first, which failed."""
    store = box.open(disk := BrokenDisk())
    box.put(store)
    store.flush_all()
    durable = store.max_commit_log_offset
    box.put(store)
    disk.broken = "commitlog"
    with pytest.raises(StoreError):
        store.flush()
    disk.broken = "consumequeue"
    with pytest.raises(StoreError):
        store.flush_all()
    disk.broken = None
    store.flush_all()
    end = store.max_commit_log_offset
    assert disk.rewritten == [("commitlog", durable, end), ("0", 20, 40)]
    assert store.flushed_offset == end
    box.put(store)
    store.flush_all()
    assert len(disk.rewritten) == 2


def test_a_record_that_the_system_lost_is_seen_and_a_restart_cuts_it(box: StoreBox) -> None:
    """Some file systems drop the pages of a failed sync, and read them from the disk again."""
    store = box.open(disk := BrokenDisk())
    box.put(store, body=b"kept")
    store.flush_all()
    durable = store.max_commit_log_offset
    box.put(store, body=b"gone")
    disk.broken = "commitlog"
    with pytest.raises(StoreError):
        store.flush()
    disk.broken = None
    with (box.root / "commitlog" / f"{0:020d}").open("r+b") as file:
        file.seek(durable)
        file.write(bytes(store.max_commit_log_offset - durable))
    with pytest.raises(StoreError, match=f"log position {durable} was lost; restart the broker"):
        store.flush_all()
    assert not is_accepted(store)
    assert store.flushed_offset == durable
    with pytest.raises(StoreError, match="was lost"):
        store.close()
    again = box.open()
    assert again.max_offset("T", 0) == 1
    assert is_accepted(again)


def test_a_failure_that_lasts_until_the_stop_counts_as_a_crash_and_one_that_is_over_does_not(
    box: StoreBox,
) -> None:
    store = box.open(disk := BrokenDisk())
    box.put(store)
    disk.broken = "commitlog"
    with pytest.raises(StoreError):
        store.flush()
    disk.broken = None
    store.close()
    assert not (box.root / "abort").exists()


class StubbornDisk(OsDisk):
    """Refuses to map new files and to delete files while told so."""

    refuses = False

    def map(self, path: Path, size: int) -> mmap.mmap:
        if self.refuses:
            raise OSError(errno.ENOMEM, "Cannot allocate memory", str(path))
        return super().map(path, size)

    def remove(self, path: Path) -> None:
        if self.refuses:
            raise OSError(errno.EIO, "Input/output error", str(path))
        super().remove(path)


def test_a_new_segment_that_can_neither_be_mapped_nor_deleted_is_replaced_later(box: StoreBox) -> None:
    store = box.open(disk := StubbornDisk())
    box.put(store, body=b"x" * 40_000)
    disk.refuses = True
    large = StoredMessage("T", 0, b"y" * 40_000)
    assert store.put_message(large).status is PutStatus.CREATE_MAPPED_FILE_FAILED
    assert store.put_message(large).status is PutStatus.CREATE_MAPPED_FILE_FAILED
    assert store.write_failure.endswith(f"/{65_536:020d}: Cannot allocate memory") or "Input/output" in (
        store.write_failure
    )
    disk.refuses = False
    assert store.put_message(large).status is PutStatus.PUT_OK
    assert store.get_message("T", 0, 0, 32, None).message_count == 2


def test_a_queue_whose_files_cannot_be_deleted_stays_empty(box: StoreBox) -> None:
    """Its topic is deleted: the files wait for the next attempt, and so do new messages."""
    store = box.open(disk := StubbornDisk())
    for _ in range(3):
        box.put(store)
    disk.refuses = True
    with pytest.raises(StoreError, match=r"cannot delete .*consumequeue/T/0/0{20}: Input/output error"):
        remove_unused_topics(store.cleaner, [])
    message = StoredMessage("T", 0, b"new")
    assert store.put_message(message).status is PutStatus.CREATE_MAPPED_FILE_FAILED
    assert box.crash().open().max_offset("T", 0) == 0
    disk.refuses = False
    assert remove_unused_topics(store.cleaner, []) == 1
    assert store.put_message(message).queue_offset == 0
    assert b"new" in store.get_message("T", 0, 0, 32, None).body
