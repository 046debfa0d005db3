"""Snapshots of live, stopped and killed stores: a prefix that does not change; and refused stores."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from rewindmq.pipeline.errors import PipelineError
from rewindmq.pipeline.schema import VIEWS
from rewindmq.pipeline.snapshot.snapshot import labelled, take_snapshot
from tests.pipeline.direct import rows
from tests.pipeline.logs import LogWriter, random_store
from tests.pipeline.records import plain, write_log
from tests.pipeline.reference import read_log
from tests.support.file_rights import file_modes_count
from tests.support.repository import importing_environment

SEGMENT_BYTES = 1 << 20
WRITER = """
import sys
from pathlib import Path
from tests.pipeline.logs import LogWriter

writer = LogWriter(Path(sys.argv[1]), segment_bytes=1 << 20)
number = 0
while number < 12_000:
    writer.now += 1
    writer.put("T", number % 3, b"%06d" % number * 20, keys=f"key-{number}")
    number += 1
    if number == 500:
        print("ready", flush=True)
sys.stdin.read()
"""


def state(root: Path) -> dict[str, tuple[int, int, int]]:
    """Name, size, time of the last change of data and of anything, of all there is."""
    return {
        str(path.relative_to(root)): (status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        for path in sorted(root.rglob("*"))
        for status in [path.stat()]
    }


def test_nothing_in_the_store_is_changed(tmp_path: Path) -> None:
    random_store(tmp_path / "store", 3)
    before = state(tmp_path / "store")
    for view in VIEWS:
        rows(tmp_path / "store", view, counters=str(tmp_path / "counters"))
    options = {"topic": "Orders", "key": "key-1", "from": "1700000001000"}
    rows(tmp_path / "store", options=options)
    assert state(tmp_path / "store") == before


def test_while_a_process_writes_a_prefix_is_read_and_after_its_kill_all_that_it_wrote(tmp_path: Path) -> None:
    root = tmp_path / "store"
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(root)],
        env=importing_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        counts = []
        for _ in range(4):
            end = take_snapshot(root).end
            found = rows(root, columns=["physicalOffset", "storeSize", "queueOffset", "queueId", "crcOk"])
            assert all(row["crcOk"] for row in found)
            # Every record without a gap, at least up to the end of the log when reading began.
            for number, row in enumerate(found):
                assert (row["queueId"], row["queueOffset"]) == (number % 3, number // 3)
            # The rest of a full segment has no record.
            read_to = found[-1]["physicalOffset"] + found[-1]["storeSize"]
            assert read_to >= end or (end % SEGMENT_BYTES == 0 and end - read_to < found[-1]["storeSize"] + 8)
            entries = rows(root, "consumequeue", columns=["queueOffset"])
            assert len(entries) >= len(found) - 3
            counts.append(len(found))
        assert counts == sorted(counts)
        assert counts[0] >= 500
    finally:
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
    log = read_log(root)
    assert len(log) >= counts[-1]
    assert [row["physicalOffset"] for row in rows(root, columns=["physicalOffset"])] == [
        message.commit_log_offset for message in log
    ]
    assert (root / "abort").exists()


def test_parts_planned_before_more_was_written_read_what_was_planned(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "store")
    for _ in range(50):
        writer.put("T")
    snapshot = take_snapshot(tmp_path / "store")
    ended = threading.Event()

    def go_on() -> None:
        for _ in range(500):
            writer.put("T", body=bytes(400))
        ended.set()

    thread = threading.Thread(target=go_on)
    thread.start()
    thread.join()
    assert ended.is_set()
    writer.finish()
    assert len(snapshot.segments) == 1
    assert snapshot.end < take_snapshot(tmp_path / "store").end


@pytest.mark.parametrize("records", [0, 50])
def test_a_file_that_its_broker_has_not_sized_yet_is_left_out(tmp_path: Path, records: int) -> None:
    """A broker creates the next segment, and sizes it after that; a kill in between leaves it empty."""
    root = tmp_path / "store"
    writer = LogWriter(root)
    for _ in range(records):
        writer.put("T")
    writer.finish()
    before = take_snapshot(root)
    entries = rows(root, "consumequeue", columns=["queueOffset"])
    log = root / "commitlog"
    log.mkdir(exist_ok=True)
    (log / f"{before.segment_bytes * len(list(log.iterdir())):020d}").touch()
    for queue in list((root / "consumequeue").glob("*/*")):
        file = max(queue.iterdir())
        (queue / f"{int(file.name) + file.stat().st_size:020d}").touch()
    after = take_snapshot(root)
    assert (after.segments, after.end) == (before.segments, before.end)
    assert rows(root, "consumequeue", columns=["queueOffset"]) == entries
    assert len(entries) == records


def test_an_empty_store_has_no_rows(tmp_path: Path) -> None:
    LogWriter(tmp_path / "store").finish()
    (tmp_path / "bare" / "commitlog").mkdir(parents=True)
    for store in (tmp_path / "store", tmp_path / "bare"):
        for view in VIEWS:
            assert rows(store, view) == []


def test_a_log_of_one_segment_of_zeros_is_empty(tmp_path: Path) -> None:
    (tmp_path / "store" / "commitlog").mkdir(parents=True)
    (tmp_path / "store" / "commitlog" / f"{0:020d}").write_bytes(bytes(4_096))
    assert rows(tmp_path / "store") == []
    assert rows(tmp_path / "store", "damage") == []


@pytest.mark.parametrize("size", [200, 70_000, 3 << 20])
def test_the_end_of_a_log_is_found_among_bodies_of_zeros(tmp_path: Path, size: int) -> None:
    placed = write_log(tmp_path / "store", [plain(bytes(size)) for _ in range(5)], 20 << 20)
    position, record = placed[-1]
    assert take_snapshot(tmp_path / "store").end == position + len(record)


def no_store(root: Path) -> None:
    (root / "other").mkdir(parents=True)


def a_file(root: Path) -> None:
    root.write_bytes(b"")


def the_log_itself(root: Path) -> None:
    root.mkdir()
    (root / f"{0:020d}").write_bytes(bytes(64))


def rocksdb_queues(root: Path) -> None:
    (root / "commitlog").mkdir(parents=True)
    (root / "consumequeue").mkdir()
    (root / "consumequeue" / "CURRENT").write_bytes(b"")


def rocksdb_settings(root: Path) -> None:
    (root / "commitlog").mkdir(parents=True)
    (root / "config" / "topics").mkdir(parents=True)


def dledger(root: Path) -> None:
    (root / "dledger-n0" / "data").mkdir(parents=True)


def segments(root: Path, *files: tuple[int, int]) -> None:
    (root / "commitlog").mkdir(parents=True)
    for base, size in files:
        (root / "commitlog" / f"{base:020d}").write_bytes(bytes(size))


def odd_segment(root: Path) -> None:
    segments(root, (0, 4_096), (4_096, 4_000))


def empty_segment(root: Path) -> None:
    segments(root, (0, 0), (4_096, 0))


def a_gap(root: Path) -> None:
    segments(root, (0, 4_096), (12_288, 4_096))


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (no_store, "{root} is not a store: it contains no commitlog/"),
        (a_file, "{root} is a file; a store is a directory (storePathRootDir) that contains commitlog/"),
        (
            the_log_itself,
            (
                "{root} is not a store: it contains no commitlog/; this looks like the commit log itself: "
                "give the directory above it"
            ),
        ),
        (rocksdb_queues, "{root}/consumequeue is a RocksDB consume queue, which is not supported"),
        (rocksdb_settings, "{root}/config/topics is RocksDB configuration, which is not supported"),
        (dledger, "{root}/dledger-n0 is a DLedger (Raft) commit log, which is not supported"),
        (
            odd_segment,
            (
                "{root}/commitlog/00000000000000004096 has 4000 bytes and "
                "{root}/commitlog/00000000000000000000 has 4096:"
                " all segments of a commit log must have one size"
            ),
        ),
        (empty_segment, "{root}/commitlog/00000000000000000000 is empty"),
        (
            a_gap,
            (
                "{root}/commitlog lacks a segment between 00000000000000000000 and 00000000000000012288 "
                "(segments of 4096 bytes)"
            ),
        ),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_an_unreadable_store_gives_one_clear_line(
    tmp_path: Path, make: Callable[[Path], None], line: str
) -> None:
    root = tmp_path / "store"
    make(root)
    with pytest.raises(PipelineError) as caught:
        take_snapshot(root)
    assert str(caught.value) == line.format(root=root)


@pytest.mark.parametrize(
    "path",
    ["consumequeue/pipe", "consumequeue/Orders/77", f"consumequeue/Orders/0/{77:020d}", f"index/{77:017d}"],
)
def test_a_pipe_in_the_place_of_a_file_or_folder_is_damage(tmp_path: Path, path: str) -> None:
    """It was skipped in silence, and with it the rows of the file."""
    random_store(tmp_path / "store", 3)
    place = tmp_path / "store" / path
    place.parent.mkdir(exist_ok=True)
    os.mkfifo(place)
    snapshot = take_snapshot(tmp_path / "store")
    with pytest.raises(PipelineError, match=f"the store is damaged: {place} is no regular file, but a pipe"):
        [*snapshot.queues(), *snapshot.index_files()]


@pytest.mark.parametrize("view", VIEWS)
def test_the_folder_of_a_mounted_file_system_has_no_rows(tmp_path: Path, view: str) -> None:
    random_store(tmp_path / "store", 3)
    before = rows(tmp_path / "store", view)
    for folder in ("", "commitlog", "consumequeue", "consumequeue/Orders/0", "index", "config"):
        (tmp_path / "store" / folder / "lost+found").mkdir(parents=True)
    assert rows(tmp_path / "store", view) == before


def test_a_table_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    random_store(tmp_path / "store", 3)
    place = tmp_path / "store/config/topics.json"
    place.unlink(missing_ok=True)
    place.parent.mkdir(exist_ok=True)
    os.mkfifo(place)
    with pytest.raises(OSError, match=f"is no regular file: '{place}'"):
        take_snapshot(tmp_path / "store").config("topics.json")


def test_a_store_that_is_not_there_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(PipelineError) as caught:
        take_snapshot(tmp_path / "store")
    assert str(caught.value) == f"there is no store at {tmp_path / 'store'}: the directory does not exist"


def test_a_store_that_may_not_be_read_is_one_clear_line(tmp_path: Path) -> None:
    random_store(tmp_path, 1)
    segment = max((tmp_path / "commitlog").iterdir())
    segment.chmod(0)
    with file_modes_count(), pytest.raises(PipelineError) as caught:
        take_snapshot(tmp_path)
    assert str(caught.value) == f"cannot read {segment}: Permission denied"


@pytest.mark.parametrize(
    ("paths", "labels"),
    [
        (["a/broker-a/store", "a/broker-b/store"], ["broker-a", "broker-b"]),
        (["one", "two"], ["one", "two"]),
        (["east/a/store", "west/a/store", "west/b/store"], ["east/a", "west/a", "west/b"]),
        (["a", "b/a"], ["x", "b"]),
        (["a/store"], ["store"]),
    ],
)
def test_stores_are_named_by_the_parts_of_their_paths_that_differ(
    tmp_path: Path, paths: list[str], labels: list[str]
) -> None:
    root = tmp_path / "x"
    for path in paths:
        (root / path / "commitlog").mkdir(parents=True)
    named = labelled([take_snapshot(root / path) for path in paths])
    assert [snapshot.name for snapshot in named] == labels


def test_a_store_given_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    with pytest.raises(PipelineError, match="a store is given twice"):
        labelled([take_snapshot(tmp_path), take_snapshot(f"{tmp_path}/")])
