"""The index job on whole stores: its output equals a reference's and a broker's, also after later runs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow.parquet as pq
import pytest

from rewindmq.broker.store import MessageStore, StoreConfig
from rewindmq.pipeline.errors import PipelineError
from rewindmq.pipeline.index import scan
from rewindmq.pipeline.index.job import build_index
from rewindmq.pipeline.index.options import IndexOptions, IndexSummary
from rewindmq.pipeline.output.output import JobOutput
from tests.pipeline.index.index_reference import files_below, index_files, postings, queue_files, write_log
from tests.pipeline.logs import LogWriter, random_store
from tests.pipeline.reference import read_log
from tests.support.unused_topics import remove_unused_topics

if TYPE_CHECKING:
    from rewindmq.pipeline.engines.runner import Runner

SMALL = IndexOptions(max_hash_slot_num=13, max_index_num=60)
QUEUES = ("consumequeue", "timeindex")
SMALL_PART_BYTES = 30_000
TORN_SEED = 3


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several tasks for logs of a few KiB."""
    monkeypatch.setattr(scan, "_PART_BYTES", SMALL_PART_BYTES)


def _queue_bytes(store: Path) -> int:
    return next(path.stat().st_size for path in (store / "consumequeue").rglob("0*") if path.is_file())


def _check(out: Path, store: Path, *, queue_bytes: int, options: IndexOptions = SMALL) -> None:
    """Check that the output equals the plain reference, byte for byte."""
    log = read_log(store)
    queues = files_below(out / "current", *QUEUES)
    position = queues.pop("timeindex/position")
    assert queues == queue_files(log, queue_bytes)
    last = log[-1]
    assert position == (
        b'{"begin":%d,"end":%d,"last":%d,"lastStoreTimestamp":%d}'
        % (
            log[0].commit_log_offset,
            last.commit_log_offset + last.store_size,
            last.commit_log_offset,
            last.store_timestamp,
        )
    )
    found = files_below(out / "current", "index")
    wanted = index_files(postings(log), options.max_hash_slot_num, options.max_index_num)
    assert [found[name] for name in sorted(found)] == wanted


class Built(NamedTuple):
    """A random store, its index, and the summary of the job."""

    store: Path
    out: Path
    summary: IndexSummary


def _build(runner: Runner, folder: Path, seed: int) -> Built:
    store, out = folder / "store", folder / "out"
    random_store(store, seed)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(scan, "_PART_BYTES", SMALL_PART_BYTES)
        return Built(store, out, build_index(runner, store, out, SMALL))


@pytest.fixture(scope="module")
def built(runner: Runner, tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Of a store that was killed and ends with a torn record; tests only look at it."""
    return _build(runner, tmp_path_factory.mktemp("built"), TORN_SEED)


def test_what_is_written_is_what_a_broker_makes_of_the_same_log(built: Built, tmp_path: Path) -> None:
    _check_random(built, tmp_path, TORN_SEED)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_what_is_written_of_other_stores_is_what_a_broker_makes(
    runner: Runner, tmp_path: Path, seed: int
) -> None:
    _check_random(_build(runner, tmp_path, seed), tmp_path, seed)


def _check_random(built: Built, tmp_path: Path, seed: int) -> None:
    store, out, summary = built
    queue_bytes = _queue_bytes(store)
    _check(out, store, queue_bytes=queue_bytes)
    assert (summary.is_new, summary.generation, summary.gap_count, summary.repeated) == (True, 1, 0, 0)
    assert summary.messages == len(read_log(store))
    assert [place.kind for place in summary.damage] == ["torn tail"] * (seed % 3 == 0)
    _compare_with_broker(tmp_path, store, out, queue_bytes)


def _compare_with_broker(tmp_path: Path, store: Path, out: Path, queue_bytes: int) -> None:
    """Open the log without queues and index; a broker rebuilds them."""
    rebuilt = tmp_path / "rebuilt"
    shutil.copytree(store / "commitlog", rebuilt / "commitlog")
    segment = next((store / "commitlog").iterdir()).stat().st_size
    config = StoreConfig(
        mapped_file_size_commit_log=segment,
        mapped_file_size_consume_queue=queue_bytes,
        max_hash_slot_num=SMALL.max_hash_slot_num,
        max_index_num=SMALL.max_index_num,
    )
    broker = MessageStore(rebuilt, config, lambda: 1_800_000_000_000)
    broker.open()
    while not broker.update_index(broker.max_commit_log_offset, 1_000):
        pass
    broker.close()
    assert files_below(out / "current", "consumequeue") == files_below(rebuilt, "consumequeue")
    for path in (out / "current/consumequeue").rglob("0*/0*"):
        theirs_ms = (rebuilt / path.relative_to(out / "current")).stat().st_mtime_ns // 1_000_000
        assert path.stat().st_mtime_ns // 1_000_000 == theirs_ms, path
    theirs, ours = files_below(rebuilt, "index"), files_below(out / "current", "index")
    assert [ours[name] for name in sorted(ours)] == [theirs[name] for name in sorted(theirs)]


def test_a_later_run_reads_what_is_new_and_ends_where_one_run_over_all_does(
    runner: Runner, tmp_path: Path
) -> None:
    store, out = tmp_path / "store", tmp_path / "out"
    writer = LogWriter(store, segment_bytes=8_192, consume_queue_bytes=400)
    for number in range(90):
        writer.now += 300
        writer.put("Orders", number % 2, keys=f"a{number % 7} b", tag="T")
    writer.put("Quiet", 5, keys="only once")
    writer.store.flush_all()
    first = build_index(runner, store, out, SMALL)
    inodes = {path: (out / "current" / path).stat().st_ino for path in files_below(out / "current", ".")}
    assert build_index(runner, store, out, SMALL).is_new is False
    for number in range(30):
        writer.now += 300
        writer.put("Orders", number % 3, keys=f"a{number % 7}")
    writer.finish()
    second = build_index(runner, store, out, SMALL)
    _check(out, store, queue_bytes=400)
    assert (first.messages, second.messages, second.generation) == (91, 30, 2)
    assert second.log_bytes_read < first.log_bytes_read / 2
    same = {name for name, inode in inodes.items() if (out / "generation-2" / name).exists()
            and (out / "generation-2" / name).stat().st_ino == inode}  # fmt: skip
    # Full queue files, the queue without new messages, full index files, all Parquet files.
    assert f"consumequeue/Orders/0/{0:020d}" in same
    assert f"consumequeue/Quiet/5/{0:020d}" in same
    assert f"timeindex/Quiet/5/{0:020d}" in same
    assert len([name for name in same if name.startswith("index/")]) == 273 // 59
    assert {name for name in inodes if name.startswith("messages/")} <= same
    assert not (out / "generation-1").exists()
    whole = tmp_path / "whole"
    build_index(runner, store, whole, SMALL)
    for folder in (*QUEUES, "index"):
        assert files_below(out / "current", folder) == files_below(whole / "current", folder), folder


def test_the_parquet_copy_holds_all_but_bodies_for_any_reader(runner: Runner, built: Built) -> None:
    # Loaded here, because DuckDB prints warnings at the end of each process that has loaded it.
    import duckdb

    store, out, _ = built
    log = read_log(store)
    relation = duckdb.sql(
        "SELECT physicalOffset, topic, queueId, queueOffset, uniqueKey, keys, tag, bodySize,"
        " epoch_ms(storeTimestamp), transactionState, properties"
        f" FROM '{out}/current/messages/*.parquet' ORDER BY physicalOffset"
    )
    assert relation is not None
    found = relation.fetchall()
    states = {0: "none", 4: "prepared", 8: "commit", 12: "rollback"}
    assert [row[:10] for row in found] == [
        (
            message.commit_log_offset,
            message.topic,
            message.queue_id,
            message.queue_offset,
            message.properties.get("UNIQ_KEY"),
            [key for key in message.properties.get("KEYS", "").split(" ") if key],
            message.properties.get("TAGS"),
            len(message.stored_body),
            message.store_timestamp,
            states[message.sys_flag & 12],
        )
        for message in log
    ]
    assert [dict(row[10]) for row in found] == [message.properties for message in log]
    for part in (out / "current/messages").iterdir():
        assert pq.read_schema(part).names == [*scan.COPIED]
        group = pq.ParquetFile(part).metadata.row_group(0)
        statistics = {
            group.column(number).path_in_schema: group.column(number).statistics
            for number in range(group.num_columns)
        }
        low, high = (statistics["physicalOffset"].min, statistics["physicalOffset"].max)
        inside = [message for message in log if low <= message.commit_log_offset <= high]
        assert len(inside) == group.num_rows
        assert statistics["storeTimestamp"].max.timestamp() * 1000 == inside[-1].store_timestamp
        assert statistics["topic"].min == min(message.topic for message in inside)


def test_gaps_repeats_and_invalid_topics_are_reported_and_the_rest_equals_a_brokers(
    runner: Runner, tmp_path: Path
) -> None:
    store, out = tmp_path / "store", tmp_path / "out"
    records = [
        ("Late", 0, 25, 0, "UNIQ_KEY\x01u1\x02KEYS\x01 a  b "),
        ("Late", 0, 26, 0, "UNIQ_KEY\x01u2"),
        ("Gap", 1, 0, 0, ""),
        ("Gap", 1, 2, 0, "KEYS\x01x"),
        ("Gap", 1, 3, 0, "KEYS\x01x"),
        ("Again", 0, 0, 0, ""),
        ("Again", 0, 1, 0, ""),
        ("Again", 0, 0, 0, ""),
        ("Again", 0, 1, 0, ""),
        ("../../Out", 0, 0, 0, "KEYS\x01y"),
        ("Negative", -1, 0, 0, ""),
        ("Half", 0, 0, 0x4, "KEYS\x01prepared"),
        ("Half", 0, 0, 0xC, "KEYS\x01rolled-back"),
        ("Half", 0, 0, 0x8, "KEYS\x01committed"),
    ]
    write_log(store, records)
    summary = build_index(runner, store, out, SMALL)
    log = [message for message in read_log(store) if message.topic not in ("../../Out", "Negative")]
    queues = files_below(out / "current", *QUEUES)
    del queues["timeindex/position"]
    assert queues == queue_files(log, 6_000_000)
    (index,) = files_below(out / "current", "index").values()
    assert [index] == index_files(postings(read_log(store)), 13, 60)
    assert (summary.passed_over, summary.repeated, summary.gap_count) == (2, 0, 1)
    assert [(gap.topic, gap.queue_id, gap.expected, gap.found) for gap in summary.gaps] == [
        ("Gap", 1, 1, 2),
    ]
    assert {path.name for path in tmp_path.iterdir()} == {"store", "out"}


@pytest.mark.slow
def test_files_of_expired_segments_are_removed_from_the_output(runner: Runner, tmp_path: Path) -> None:
    store, out = tmp_path / "store", tmp_path / "out"
    writer = LogWriter(store, segment_bytes=4_096, consume_queue_bytes=100)
    for _ in range(90):
        writer.now += 100
        writer.put("Orders", 0, keys="k")
    writer.store.flush_all()
    build_index(runner, store, out, IndexOptions(max_hash_slot_num=5, max_index_num=21))
    for _ in range(3):
        writer.put("Orders", 0, keys="k")
    writer.finish()
    gone = sorted((store / "commitlog").iterdir())[:2]
    for segment in gone:
        segment.unlink()
    summary = build_index(runner, store, out, IndexOptions(max_hash_slot_num=5, max_index_num=21))
    begin = 2 * 4_096
    assert (summary.log_begin, summary.messages) == (begin, 3)
    log = read_log(store)
    kept = log[0].queue_offset
    names = sorted(path.name for path in (out / "current/consumequeue/Orders/0").iterdir())
    assert names == [f"{first * 20:020d}" for first in range(kept // 5 * 5, 93, 5)]
    assert len(list((out / "current/timeindex/Orders/0").iterdir())) == len(names)
    entries = sorted((out / "current/index").iterdir())
    assert len(entries) == 10 - 2 * kept // 20
    min((store / "commitlog").iterdir()).unlink()
    again = build_index(runner, store, out, IndexOptions(max_hash_slot_num=5, max_index_num=21))
    assert (again.is_new, again.messages, again.log_begin) == (True, 0, 3 * 4_096)
    assert len(list((out / "current/consumequeue/Orders/0").iterdir())) < len(names)
    newest = max((store / "commitlog").iterdir())
    base = int(newest.name) + 4_096
    data = _moved(newest.read_bytes(), base)
    shutil.rmtree(store / "commitlog")
    (store / "commitlog").mkdir()
    (store / "commitlog" / f"{base:020d}").write_bytes(data)
    with pytest.raises(PipelineError, match=r"up to \d+, but that log now begins at \d+"):
        build_index(runner, store, out, IndexOptions(max_hash_slot_num=5, max_index_num=21))


def _moved(data: bytes, base: int) -> bytes:
    """A segment's first record as that of another segment."""
    size = int.from_bytes(data[:4], "big")
    return (data[:28] + base.to_bytes(8, "big") + data[36:size]).ljust(len(data), b"\0")


@pytest.mark.slow
def test_an_interrupted_run_is_forgotten_when_its_log_is_there_no_more(
    runner: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, out = tmp_path / "store", tmp_path / "out"
    random_store(store, 4, 60)
    finish = JobOutput.finish

    def interrupted(output: JobOutput, name: str, findings: Mapping[str, Any]) -> Mapping[str, Any]:
        if name == "queues":
            raise KeyboardInterrupt
        return finish(output, name, findings)

    monkeypatch.setattr(JobOutput, "finish", interrupted)
    with pytest.raises(KeyboardInterrupt):
        build_index(runner, store, out, IndexOptions(consume_queue_file_bytes=100))
    monkeypatch.setattr(JobOutput, "finish", finish)
    shutil.rmtree(store)
    random_store(store, 6, 50)
    build_index(runner, store, out, IndexOptions(consume_queue_file_bytes=100))
    queues = files_below(out / "current", "consumequeue")
    expected = queue_files(read_log(store), 100)
    assert queues == {name: data for name, data in expected.items() if name.startswith("consumequeue")}
    assert sum(file.num_rows for file in map(pq.read_metadata, (out / "current/messages").iterdir())) == len(
        read_log(store)
    )


@pytest.mark.slow
def test_an_interrupted_run_ends_at_no_place_within_a_record(runner: Runner, tmp_path: Path) -> None:
    """The broker lost its newest messages in a crash, and others, of another size, stand there now."""
    store, durable, out = tmp_path / "store", tmp_path / "durable", tmp_path / "out"

    def put(body: bytes, count: int) -> None:
        writer = LogWriter(store)
        for _ in range(count):
            writer.put("Orders", 0, body)
        writer.finish()

    def stop(_text: str) -> None:
        raise KeyboardInterrupt

    put(b"first", 5)
    shutil.copytree(store, durable)
    put(b"other", 5)
    with pytest.raises(KeyboardInterrupt):
        build_index(runner, store, out, IndexOptions(), stop)
    shutil.rmtree(store)
    durable.rename(store)
    put(b"afterwards", 10)
    build_index(runner, store, out)
    put(b"last", 1)
    summary = build_index(runner, store, out)
    assert (summary.gap_count, summary.damage_count) == (0, 0)
    copied = sum(file.num_rows for file in map(pq.read_metadata, (out / "current/messages").iterdir()))
    assert copied == len(read_log(store)) == 16


def test_wrong_inputs_and_outputs_are_refused_in_one_line(
    runner: Runner, built: Built, tmp_path: Path
) -> None:
    store, out, _ = built
    other = tmp_path / "other"
    random_store(other, 5)
    before = files_below(out, ".")
    with pytest.raises(PipelineError, match=r"made from another log .* choose a new output"):
        build_index(runner, other, out, SMALL)
    with pytest.raises(PipelineError, match="was made with maxHashSlotNum 13, not 5000000"):
        build_index(runner, store, out)
    empty = tmp_path / "empty"
    (empty / "commitlog").mkdir(parents=True)
    with pytest.raises(PipelineError, match="has no messages"):
        build_index(runner, empty, tmp_path / "out2")
    assert files_below(out, ".") == before
    assert not os.path.lexists(tmp_path / "out2")


def test_messages_of_a_deleted_topic_are_in_no_queue(runner: Runner, tmp_path: Path) -> None:
    """Deleted for good, created again with fewer queues, deleted between two runs: as at the broker."""
    store, out = tmp_path / "store", tmp_path / "out"
    writer = LogWriter(store, consume_queue_bytes=200)

    def send(topic: str, count: int, queues: int) -> None:
        for number in range(count):
            writer.put(topic, number % queues, b"x" * 900)

    def check() -> None:
        writer.store.flush_all()
        build_index(runner, store, out, SMALL)
        assert files_below(out / "current", "consumequeue") == files_below(store, "consumequeue")

    for topic in ("Kept", "Again", "Gone"):
        send(topic, 30, 2)
    remove_unused_topics(writer.store.cleaner, {"Kept"})
    send("Again", 14, 1)
    check()
    send("Kept", 3, 2)
    remove_unused_topics(writer.store.cleaner, {"Kept"})
    check()
    send("Again", 5, 2)
    check()
    writer.finish()
