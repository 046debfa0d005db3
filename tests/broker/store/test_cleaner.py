"""Retention at the store: it deletes the oldest files while flushes and reads continue."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from rewindmq.broker.store import MessageStore, StoreConfig, StoredMessage
from rewindmq.broker.store.errors import StoreError
from rewindmq.broker.store.files.disk import OsDisk
from rewindmq.protocol.remoting.slices.run import run_at_once
from tests.broker.store.store_box import StoreBox, drop_segment

SMALL = StoreConfig(mapped_file_size_commit_log=4_096, mapped_file_size_consume_queue=200)
INDEXED = msgspec.structs.replace(SMALL, max_hash_slot_num=10, max_index_num=11)


def filled(box: StoreBox, disk: OsDisk | None = None) -> MessageStore:
    """Sixty messages in six segments and six queue files."""
    store = box.open(disk, SMALL)
    for _ in range(60):
        box.put(store, body=b"x" * 290)
    return store


def drop_all(store: MessageStore) -> int:
    count = 0
    while drop_segment(store, None):
        count += 1
    run_at_once(store.cleaner.expire_queues(ends_idle=True))
    store.cleaner.delete_index_files()
    return count


def test_what_is_not_durable_stays(box: StoreBox) -> None:
    store = filled(box)
    assert not drop_segment(store, None)
    store.flush()
    assert drop_segment(store, None)


def test_the_newest_segment_and_the_newest_queue_file_stay(box: StoreBox) -> None:
    store = filled(box)
    store.flush()
    assert drop_all(store) == 5
    assert store.max_offset("T", 0) == 60
    assert store.min_offset("T", 0) > 40
    first = store.min_offset("T", 0)
    assert store.get_message("T", 0, first, 32, None).message_count == 60 - first
    assert store.look_message(0) is None
    assert box.put(store).queue_offset == 60


def test_only_segments_that_were_last_written_to_before(box: StoreBox) -> None:
    store = filled(box)
    store.flush()
    assert not drop_segment(store, box.now - 1)
    assert drop_segment(store, box.now)


def test_an_exhausted_queue_keeps_its_minimum_where_4_x_does(box: StoreBox) -> None:
    store = box.open(config=SMALL)
    for _ in range(15):
        box.put(store, "Idle", body=b"x" * 290)
    for _ in range(40):
        box.put(store, body=b"x" * 290)
    store.flush()
    while drop_segment(store, None):
        pass
    run_at_once(store.cleaner.expire_queues(ends_idle=False))
    assert (store.min_offset("Idle", 0), store.max_offset("Idle", 0)) == (0, 15)
    assert store.min_offset("T", 0) > 0


def test_queues_the_broker_keeps_its_own_progress_of_never_start_over(box: StoreBox) -> None:
    """Or half messages and delays that come later would lie before that progress, and be passed over."""
    own = (
        "RMQ_SYS_TRANS_HALF_TOPIC",
        "RMQ_SYS_TRANS_OP_HALF_TOPIC",
        "SCHEDULE_TOPIC_XXXX",
        "rmq_sys_wheel_timer",
        "rmq_sys_REVIVE_LOG_DefaultCluster",
    )
    store = box.open(config=SMALL)
    for topic in (*own, "Idle"):
        box.put(store, topic)
    for _ in range(60):
        box.put(store, body=b"x" * 290)
    store.flush()
    drop_all(store)
    assert run_at_once(store.cleaner.remove_expired_queues()) == 1
    assert [store.max_offset(topic, 0) for topic in own] == [1, 1, 1, 1, 1]
    assert store.max_offset("Idle", 0) == 0


class SlowDisk(OsDisk):
    """Lets a test do something while a flush is at the first file of a folder."""

    def __init__(self, folder: str = "0") -> None:
        self.folder = folder
        self.reached = threading.Event()
        self.go_on = threading.Event()

    def sync(self, path: Path) -> None:
        if path.parent.name == self.folder:
            self.reached.set()
            assert self.go_on.wait(10)
        super().sync(path)


def test_a_flush_that_misses_its_file_goes_on(box: StoreBox) -> None:
    """The files of a queue are taken away while another thread makes them durable."""
    disk = SlowDisk()
    store = filled(box, disk)
    store.flush()
    assert not failures_of_a_flush_during(store, disk)
    assert box.put(store).queue_offset == 60


def failures_of_a_flush_during(store: MessageStore, disk: SlowDisk) -> list[BaseException]:
    """A flush on another thread while everything is deleted."""
    failures: list[BaseException] = []

    def flush() -> None:
        try:
            store.flush_all()
        except StoreError as error:
            failures.append(error)

    thread = threading.Thread(target=flush)
    thread.start()
    assert disk.reached.wait(10)
    drop_all(store)
    disk.go_on.set()
    thread.join()
    return failures


def test_a_flush_of_the_key_index_finds_its_files(box: StoreBox) -> None:
    """Only durable files are deleted: a flush visits the others, and a missing file would end all sends."""
    disk = SlowDisk("index")
    disk.go_on.set()
    store = box.open(disk, INDEXED)
    for number in range(60):
        store.put_message(StoredMessage("T", 0, b"x" * 290, b"KEYS\x01k%d\x02" % number))
    store.update_index(store.max_commit_log_offset, 15)
    store.flush_all()
    store.update_index(store.max_commit_log_offset, 1_000)
    disk.reached.clear()
    disk.go_on.clear()
    assert not failures_of_a_flush_during(store, disk)
    assert box.put(store).queue_offset == 60


class RefusingDisk(OsDisk):
    def remove(self, path: Path) -> None:
        if path.parent.name == "commitlog":
            raise PermissionError(13, "Permission denied", str(path))
        super().remove(path)


def test_a_disk_that_refuses_leaves_everything_as_it_is(box: StoreBox) -> None:
    store = filled(box, RefusingDisk())
    store.flush()
    with pytest.raises(StoreError, match=r"cannot delete .*: Permission denied"):
        drop_segment(store, None)
    assert store.get_message("T", 0, 0, 1, None).message_count == 1


def test_the_key_index_loses_files_whose_messages_are_gone(box: StoreBox) -> None:
    store = box.open(config=INDEXED)
    for number in range(60):
        store.put_message(StoredMessage("T", 0, b"x" * 290, b"KEYS\x01k%d\x02" % number))
    store.update_index(store.max_commit_log_offset, 1_000)
    store.flush_all()
    before = len(list((box.root / "index").iterdir()))
    drop_all(store)
    assert len(list((box.root / "index").iterdir())) < before
    assert not run_at_once(store.query_message("T", "k0", 1, 0, 1 << 60)).body
    assert run_at_once(store.query_message("T", "k59", 1, 0, 1 << 60)).body


def test_space_reserved_for_the_administrator_is_neither_used_nor_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As df and RocketMQ (``UtilAll#getDiskPartitionSpaceUsedPercent``) count."""
    usage = SimpleNamespace(total=100, used=60, free=20)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    assert OsDisk().used_ratio(tmp_path) == 0.75
