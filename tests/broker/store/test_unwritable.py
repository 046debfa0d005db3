"""A mapped file that becomes unwritable: refused with the cause, nothing half-written, and recovered."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rewindmq.broker.store import BatchEntry, MessageStore, PutStatus, StoreConfig, StoredMessage, StoreError
from rewindmq.protocol.message.record import decode_records
from rewindmq.protocol.message.sysflag import MessageSysFlag
from rewindmq.protocol.remoting.slices.run import run_at_once
from tests.broker.store.store_box import StoreBox
from tests.support.unwritable import immutable

BODY = b"x" * 5_000


def put_one(store: MessageStore) -> PutStatus:
    return store.put_message(StoredMessage("T", 0, b"new" + BODY, b"KEYS\x01new")).status


def put_half(store: MessageStore) -> PutStatus:
    flag = int(MessageSysFlag.TRANSACTION_ROLLBACK)
    return store.put_message(StoredMessage("T", 0, b"new" + BODY, sys_flag=flag)).status


def put_batch(store: MessageStore) -> PutStatus:
    entries = [BatchEntry(b"new%d" % number + BODY, b"") for number in range(3)]
    return store.put_batch(StoredMessage("T", 0, b""), entries).status


def bodies(store: MessageStore) -> list[bytes]:
    """All bodies of queue 0 of T."""
    found: list[bytes] = []
    offset = store.min_offset("T", 0)
    while offset < store.max_offset("T", 0):
        result = store.get_message("T", 0, offset, 32, None)
        found += [message.body for message in decode_records(result.body)]
        offset = result.next_begin_offset
    return found


def only_file(folder: Path) -> Path:
    (path,) = folder.iterdir()
    return path


@pytest.mark.parametrize("put", [put_one, put_half, put_batch])
@pytest.mark.parametrize("folder", ["commitlog", "consumequeue/T/0"])
def test_a_message_is_refused_and_the_next_is_stored_when_the_file_can_be_written_again(
    box: StoreBox, put: Callable[[MessageStore], PutStatus], folder: str
) -> None:
    store = box.open()
    box.put(store, body=b"old")
    end = store.max_commit_log_offset
    path = only_file(box.root / folder)
    is_affected = not (put is put_half and "queue" in folder)
    with immutable(path):
        for _ in range(3):
            expected = PutStatus.CREATE_MAPPED_FILE_FAILED if is_affected else PutStatus.PUT_OK
            assert put(store) is expected
        if is_affected:
            assert store.write_failure == f"{path}: Operation not permitted"
            assert store.max_commit_log_offset == end
        assert bodies(store) == [b"old"]
    assert put(store) is PutStatus.PUT_OK
    assert store.write_failure == ""
    kept = bodies(store)
    assert len(kept) == 1 + (put is put_one) + 3 * (put is put_batch)
    store.flush_all()
    again = box.crash().open()
    assert bodies(again) == kept
    assert again.max_commit_log_offset == store.max_commit_log_offset


@pytest.mark.parametrize("folder", ["commitlog", "consumequeue/T/0"])
def test_nothing_of_a_refused_batch_reaches_the_files(box: StoreBox, folder: str) -> None:
    """Its later records would be whole ones: recovery must not find them behind a shorter message."""
    store = box.open()
    box.put(store, body=b"old")
    end = store.max_commit_log_offset
    with immutable(only_file(box.root / folder)):
        assert put_batch(store) is PutStatus.CREATE_MAPPED_FILE_FAILED
    log = only_file(box.root / "commitlog").read_bytes()
    assert not log[end:].strip(b"\0")
    assert not only_file(box.root / "consumequeue/T/0").read_bytes()[20:].strip(b"\0")


def test_a_batch_over_two_queue_files_is_refused_as_a_whole(box: StoreBox) -> None:
    """A queue file has 20 entries here."""
    store = box.open(
        config=StoreConfig(mapped_file_size_commit_log=65_536, mapped_file_size_consume_queue=400)
    )
    box.put_batch(store, [b"a"] * 15)
    assert store.put_batch(StoredMessage("T", 0, b""), [BatchEntry(b"b", b"")] * 3).status is PutStatus.PUT_OK
    files = box.root / "consumequeue/T/0"
    with immutable(only_file(files)):
        result = store.put_batch(StoredMessage("T", 0, b""), [BatchEntry(b"c", b"")] * 30)
        assert result.status is PutStatus.CREATE_MAPPED_FILE_FAILED
        assert store.max_offset("T", 0) == 18
    box.put_batch(store, [b"d"] * 30)
    assert bodies(store) == [b"a"] * 15 + [b"b"] * 3 + [b"d"] * 30


def test_the_blank_record_of_a_full_segment_is_refused(box: StoreBox) -> None:
    store = box.open()
    while store.max_commit_log_offset < 60_000:
        box.put(store, body=BODY)
    kept = bodies(store)
    with immutable(only_file(box.root / "commitlog")):
        for _ in range(2):
            assert put_one(store) is PutStatus.CREATE_MAPPED_FILE_FAILED
        assert [path.name for path in (box.root / "commitlog").iterdir()] == ["0" * 20]
    assert put_one(store) is PutStatus.PUT_OK
    assert bodies(store) == [*kept, b"new" + BODY]
    assert bodies(box.crash().open()) == [*kept, b"new" + BODY]


def test_the_key_index_is_refused_and_completed_later(box: StoreBox) -> None:
    config = StoreConfig(
        mapped_file_size_commit_log=65_536,
        mapped_file_size_consume_queue=6_000,
        max_hash_slot_num=50,
        max_index_num=2_000,
    )
    store = box.open(config=config)
    put_one(store)
    store.update_index(store.max_commit_log_offset, 10)
    store.flush_all()
    path = only_file(box.root / "index")
    before = path.read_bytes()
    put_one(store)
    with immutable(path):
        for _ in range(2):
            with pytest.raises(StoreError, match=f"cannot write {path}: Operation not permitted"):
                store.update_index(store.max_commit_log_offset, 10)
        # The entry may be there, but the slot and the header do not lead to it.
        assert path.read_bytes()[:240] == before[:240]
        store.flush_all()
    assert store.update_index(store.max_commit_log_offset, 10)
    assert run_at_once(store.query_message("T", "new", 32, 0, 2**62)).message_count == 2


def test_a_compaction_topic_gets_its_copies_later(box: StoreBox) -> None:
    store = box.open()
    store.set_compaction_topics(["T"])
    put_one(store)
    store.flush_all()
    paths = [path for path in (box.root / "compaction").rglob("*") if path.is_file()]
    assert len(paths) == 2
    with immutable(*paths):
        assert put_one(store) is PutStatus.PUT_OK
        assert store.max_offset("T", 0) == 1
    assert put_one(store) is PutStatus.PUT_OK
    assert len(bodies(store)) == 3


def test_a_replica_refuses_and_continues(box: StoreBox, tmp_path: Path) -> None:
    master = box.open()
    for _ in range(3):
        box.put(master, body=BODY)
    slave_box = StoreBox(tmp_path / "slave")
    slave = slave_box.open()
    slave.become_replica()
    first = master.max_commit_log_offset // 3
    slave.append_replica(0, master.log_chunk(0, first))
    for folder in ("commitlog", "consumequeue/T/0"):
        path = only_file(slave_box.root / folder)
        with immutable(path):
            for _ in range(2):
                slave.restart_replica()
                with pytest.raises(StoreError, match=f"cannot write {path}: Operation not permitted"):
                    slave.append_replica(first, master.log_chunk(first, first))
                assert slave.max_commit_log_offset == first
    slave.restart_replica()
    slave.append_replica(first, master.log_chunk(first, 2 * first))
    slave.close()
    slave_box.close_all()
    assert bodies(slave_box.open()) == bodies(master)


def test_messages_of_a_file_that_is_not_mapped_are_read_while_it_is_unwritable(box: StoreBox) -> None:
    store = box.open()
    while store.max_commit_log_offset < 65_536:
        box.put(store, body=BODY)
    kept = bodies(store)
    store.close()
    again = box.open()
    with immutable(*(box.root / "commitlog").iterdir(), only_file(box.root / "consumequeue/T/0")):
        assert bodies(again) == kept
        assert put_one(again) is PutStatus.CREATE_MAPPED_FILE_FAILED
    assert put_one(again) is PutStatus.PUT_OK
    assert bodies(again) == [*kept, b"new" + BODY]


def test_a_store_whose_newest_file_is_immutable_is_opened_with_one_line(box: StoreBox) -> None:
    """The bytes behind the log's end are cleared at the start, so the file must be writable."""
    store = box.open()
    box.put(store)
    end = store.max_commit_log_offset
    crashed = box.crash()
    path = only_file(crashed.root / "commitlog")
    with path.open("r+b") as file:
        file.seek(end)
        file.write(b"torn")
    expected = f"cannot open the store: {path}: Operation not permitted"
    with immutable(path), pytest.raises(StoreError, match=expected):
        crashed.open()
    assert bodies(crashed.open()) == [b"hello"]


CUT = """
import os, sys
from pathlib import Path
from rewindmq.broker.store.files.disk import OsDisk
path = Path(sys.argv[1])
OsDisk().create(path, 65_536)
mapping = OsDisk().map(path, 65_536)
mapping[0] = 1
if sys.argv[2] == "cut":
    os.truncate(path, 4_096)
    mapping[8_192:8_200]
else:
    os.kill(os.getpid(), 7)
"""


@pytest.mark.parametrize(
    ("how", "last_line"),
    [
        (
            "cut",
            "the process ends: cannot read byte 8192 of {}: it was cut to 4096 bytes while it was mapped",
        ),
        ("kill", ""),
    ],
)
def test_other_bus_errors_end_the_process(tmp_path: Path, how: str, last_line: str) -> None:
    """A cut file has no bytes to read, and zeros in their place would be served as messages."""
    path = tmp_path / "file"
    result = subprocess.run(
        [sys.executable, "-c", CUT, path, how], check=False, capture_output=True, text=True
    )
    assert result.returncode == -signal.SIGBUS
    assert result.stderr.strip() == last_line.format(path)
