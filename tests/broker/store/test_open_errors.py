"""Stores that are refused at start, with their errors; the lock (docs/spec/store.md 16.12)."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Never

import pytest

from rewindmq.broker.store import MessageStore, PutStatus, StoreConfig, StoredMessage, StoreError
from rewindmq.broker.store.files.disk import Disk, OsDisk
from tests.broker.store.store_box import StoreBox, UnsyncedDisk, drop_segment
from tests.support.unused_topics import remove_unused_topics

HOLD_LOCK = """
import sys
from pathlib import Path
from rewindmq.broker.store import MessageStore, StoreConfig
config = StoreConfig(mapped_file_size_commit_log=65536, mapped_file_size_consume_queue=6000)
store = MessageStore(Path(sys.argv[1]), config, lambda: 1)
store.open()
print("open", flush=True)
sys.stdin.read()
store.close()
"""


def refused(box: StoreBox, disk: Disk | None = None, config: StoreConfig | None = None) -> str:
    with pytest.raises(StoreError) as caught:
        box.open(disk, config)
    text = str(caught.value)
    assert "\n" not in text
    return text


def snapshot(root: Path) -> dict[Path, tuple[int, bytes]]:
    return {
        path.relative_to(root): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in root.rglob("*")
    }


def test_a_second_process_is_refused_before_anything_is_modified(box: StoreBox) -> None:
    store = box.open()
    box.put(store)
    store.close()
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD_LOCK, str(box.root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"open\n"
        before = snapshot(box.root)
        assert "in use by another broker" in refused(box)
        assert snapshot(box.root) == before
        holder.stdin.close()
    assert holder.returncode == 0


def test_a_second_store_of_the_same_process_is_refused(box: StoreBox) -> None:
    store = box.open()
    assert "in use by another broker" in refused(box)
    # The refused store must not have released the lock of the first store.
    probe = (
        "import fcntl,sys; file = open(sys.argv[1], 'r+b')\n"
        "try: fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)\n"
        "except BlockingIOError: sys.exit(3)"
    )
    run = subprocess.run([sys.executable, "-c", probe, str(box.root / "lock")], check=False)
    assert run.returncode == 3
    store.close()
    box.open()


def test_the_lock_is_the_one_a_real_broker_takes(box: StoreBox) -> None:
    """A POSIX lock on byte 0 of ``lock``."""
    box.root.mkdir()
    code = (
        "import fcntl,os,sys; fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)\n"
        "fcntl.lockf(fd, fcntl.LOCK_EX, 1, 0); print('locked', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(box.root / "lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        assert "in use by another broker" in refused(box)
        assert [path.name for path in box.root.iterdir()] == ["lock"]
        holder.stdin.close()


def test_the_lock_goes_with_a_refused_open(box: StoreBox) -> None:
    (box.root / "commitlog").mkdir(parents=True)
    stray = box.root / "commitlog" / ("0" * 20)
    stray.write_bytes(b"short")
    assert str(stray) in refused(box)
    stray.unlink()
    with (box.root / "lock").open("r+b") as file:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
    box.open()


@pytest.mark.parametrize(
    ("path", "size", "words"),
    [
        ("commitlog/00000000000000000000", 4_096, "must have 65536"),
        ("commitlog/00000000000000000001", 65_536, "multiple of 65536"),
        ("consumequeue/T/0/00000000000000000000", 5_999, "must have 6000"),
    ],
)
def test_a_file_that_does_not_belong_is_named(box: StoreBox, path: str, size: int, words: str) -> None:
    file = box.root / path
    file.parent.mkdir(parents=True)
    file.write_bytes(bytes(size))
    text = refused(box)
    assert str(file) in text
    assert words in text
    assert file.stat().st_size == size


# Where a mounted file system has its own folder, and where an operator may leave a file.
FOLDERS = (
    "",
    "commitlog",
    "consumequeue",
    "consumequeue/T",
    "consumequeue/T/0",
    "index",
    "config",
    "compaction",
    "compaction/compactionLog",
    "compaction/compactionLog/T",
    "compaction/compactionLog/T/0",
    "compaction/compactionCq/T/0",
    "timeindex",
)


@pytest.mark.parametrize("folder", FOLDERS)
def test_other_entries_are_left_alone(box: StoreBox, folder: str, caplog: pytest.LogCaptureFixture) -> None:
    place = box.root / folder
    for kind in FOLDERS:
        (box.root / kind).mkdir(parents=True, exist_ok=True)
    (place / "lost+found").mkdir()
    (place / "lost+found" / "#12").write_bytes(b"x")
    (place / "old").mkdir()
    (place / "notes.txt").write_bytes(b"keep")
    os.mkfifo(place / "pipe")
    store = box.open(UnsyncedDisk())
    store.set_compaction_topics(["C"])
    for _ in range(30):
        box.put(store, body=bytes(5_000))
    store.update_index(store.max_commit_log_offset, 100)
    store.flush_all()
    drop_segment(store, None)
    copied = store.snapshot.files()
    assert not [name for name in (*copied.full, *copied.growing) if "lost+found" in name or "pipe" in name]
    store.close()
    # As after a crash.
    (box.root / "abort").touch()
    store = box.open(UnsyncedDisk())
    assert store.max_offset("T", 0) == 30
    remove_unused_topics(store.cleaner, [])
    assert (place / "notes.txt").read_bytes() == b"keep"
    assert (place / "pipe").is_fifo()
    assert (place / "lost+found" / "#12").exists()
    is_of_files = folder in {"commitlog", "consumequeue/T/0", "index"} or folder.endswith("/T/0")
    warnings = [record.getMessage() for record in caplog.records]
    for name in ("notes.txt", "pipe"):
        assert any(f"{place / name} is " in text for text in warnings) == is_of_files
    assert not any("lost+found" in text for text in warnings)


IN_FILES_PLACE = (
    f"commitlog/{0:020d}",
    f"consumequeue/T/0/{0:020d}",
    f"compaction/compactionLog/T/0/{0:020d}",
)


@pytest.mark.parametrize(
    "path",
    [
        *IN_FILES_PLACE,
        "consumequeue/T/0",
        "checkpoint",
        "lock",
        "knownEnd.json",
        "timeindex/position",
        "compaction/position-checkpoint",
        "config",
        "commitlog",
    ],
)
@pytest.mark.parametrize("kind", ["pipe", "link to a pipe", "device"])
def test_a_pipe_in_the_place_of_a_file_or_folder_is_named(box: StoreBox, path: str, kind: str) -> None:
    """Opening a pipe without a writer would wait for ever."""
    place = box.root / path
    place.parent.mkdir(parents=True)
    if kind == "device":
        place.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(place)
    else:
        os.mkfifo(box.root.parent / "pipe")
        place.symlink_to(box.root.parent / "pipe")
    assert str(place) in refused(box)


@pytest.mark.parametrize("path", IN_FILES_PLACE)
def test_a_link_to_nothing_or_a_folder_in_the_place_of_a_file_is_named(box: StoreBox, path: str) -> None:
    place = box.root / path
    place.parent.mkdir(parents=True)
    place.symlink_to("nothing")
    assert f"{place} is no regular file" in refused(box)
    place.unlink()
    place.mkdir()
    assert f"{place} is no regular file" in refused(box)


def test_a_missing_segment_is_named(box: StoreBox) -> None:
    folder = box.root / "commitlog"
    folder.mkdir(parents=True)
    for number in (0, 2):
        (folder / f"{number * 65_536:020d}").write_bytes(bytes(65_536))
    assert "lacks the file 00000000000000065536" in refused(box)


def test_another_segment_size_than_the_store_was_written_with(box: StoreBox) -> None:
    box.put(store := box.open())
    store.close()
    text = refused(box, config=StoreConfig(mapped_file_size_commit_log=131_072))
    assert "has 65536 bytes" in text


def test_folders_that_are_no_queue_are_passed_over(box: StoreBox) -> None:
    (box.root / "consumequeue" / "T" / "not-a-queue").mkdir(parents=True)
    (box.root / "consumequeue" / "T" / "007").mkdir()
    (box.root / "consumequeue" / "a-file").touch()
    assert box.open().max_offset("T", 7) == 0


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("dledger-n0/data", "DLedger"),
        ("config/topics", "RocksDB"),
        ("config/rdb", "RocksDB"),
    ],
)
def test_layouts_that_are_not_supported(box: StoreBox, path: str, words: str) -> None:
    (box.root / path).mkdir(parents=True)
    assert words in refused(box)
    assert not (box.root / "abort").exists()


@pytest.mark.parametrize("name", ["CURRENT", "MANIFEST-000004", "000012.sst"])
def test_a_rocksdb_consume_queue_is_refused(box: StoreBox, name: str) -> None:
    (box.root / "consumequeue").mkdir(parents=True)
    (box.root / "consumequeue" / name).touch()
    assert "RocksDB" in refused(box)


def test_a_file_in_place_of_the_directory(box: StoreBox) -> None:
    box.root.write_text("a file")
    assert str(box.root) in refused(box)


def test_a_directory_that_cannot_be_written() -> None:
    store = MessageStore(Path("/proc/rewindmq-store"), StoreConfig(), lambda: 1)
    with pytest.raises(StoreError, match="/proc/rewindmq-store"):
        store.open()


def test_an_error_of_the_disk_while_opening_is_one_line(box: StoreBox) -> None:
    class Unreadable(OsDisk):
        def map(self, path: Path, size: int) -> Never:
            raise PermissionError(13, "Permission denied", str(path))

    box.put(store := box.open())
    store.close()
    assert refused(box, disk=Unreadable()).endswith("Permission denied")
    assert box.open().max_offset("T", 0) == 1


def test_a_flush_that_fails_is_an_error_and_the_stop_counts_as_a_crash(box: StoreBox) -> None:
    class Failing(OsDisk):
        def sync(self, path: Path) -> Never:
            raise OSError(5, "Input/output error", str(path))

    store = box.open(disk=Failing())
    box.put(store)
    with pytest.raises(StoreError, match=r"commitlog/0{20}: Input/output error"):
        store.flush()
    assert store.flushed_offset == 0
    assert store.put_message(StoredMessage("T", 0, b"")).status is PutStatus.SERVICE_NOT_AVAILABLE
    assert store.get_message("T", 0, 0, 32, None).message_count == 1
    with pytest.raises(StoreError, match="Input/output error"):
        store.close()
    assert (box.root / "abort").exists()
    assert box.open().max_offset("T", 0) == 1


@pytest.mark.parametrize(
    "setting",
    [
        {"mapped_file_size_commit_log": 100},
        {"mapped_file_size_commit_log": 2**31},
        {"mapped_file_size_consume_queue": 19},
        {"message_delay_level": "1s 5x"},
    ],
)
def test_settings_out_of_range(box: StoreBox, setting: dict[str, Any]) -> None:
    with pytest.raises(StoreError):
        MessageStore(box.root, StoreConfig(**setting), lambda: 1)
    assert not box.root.exists()


def test_a_closed_store_takes_no_message(box: StoreBox) -> None:
    store = box.open()
    store.close()
    assert store.put_message(StoredMessage("T", 0, b"")).status is PutStatus.SERVICE_NOT_AVAILABLE
    assert box.put_batch(store, [b"x"]).status is PutStatus.SERVICE_NOT_AVAILABLE
