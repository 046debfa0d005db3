"""A broker's store serves the files of the jobs with the same results, and rebuilds nothing."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from rewindmq.broker.store import Boundary, MessageStore, SearchMode, StoreConfig, StoredMessage
from rewindmq.broker.store.layout.index import index_keys
from rewindmq.broker.store.log.commit_log import CommitLog
from rewindmq.pipeline.compact.job import compact
from rewindmq.pipeline.compact.options import CompactOptions
from rewindmq.pipeline.index.install import install_index
from rewindmq.pipeline.index.job import build_index
from rewindmq.pipeline.index.options import IndexOptions
from rewindmq.protocol.message.properties import UNIQ_KEY
from rewindmq.protocol.message.record import decode_records
from rewindmq.protocol.remoting.slices.run import run_at_once
from tests.pipeline.compact.compact_reference import content, expected_queues
from tests.pipeline.logs import LogWriter, random_store
from tests.pipeline.reference import read_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPICS = ("Orders", "Prices")
KEYED = b"KEYS\x01new"
END_OF_TIME = (1 << 63) - 1
# A compaction log file of 5.3.3 is a multiple of its queue file; an exact multiple is raised by one.
COMPACTED = CompactOptions(log_file_bytes=5_060, cq_file_bytes=506)
CONFIG = StoreConfig(
    max_hash_slot_num=13,
    max_index_num=60,
    compaction_mapped_file_size=4_554,
    compaction_cq_mapped_file_size=506,
)


def opened(root: Path) -> MessageStore:
    first = next(path for path in (root / "consumequeue").rglob("0*") if path.is_file())
    config = replace(
        CONFIG,
        mapped_file_size_commit_log=next((root / "commitlog").iterdir()).stat().st_size,
        mapped_file_size_consume_queue=first.stat().st_size,
    )
    store = MessageStore(root, config, lambda: 1_800_000_000_000)
    store.open()
    return store


def by_key(store: MessageStore, log: Path) -> dict[tuple[str, str], bytes]:
    """Return the results of QUERY_MESSAGE (12) for every key of every topic."""
    while not store.update_index(store.max_commit_log_offset, 1_000):
        pass
    asked = {
        (message.topic, key)
        for message in read_log(log)
        for key in index_keys(message.properties.get(UNIQ_KEY), message.keys)
    }
    return {
        (topic, key): run_at_once(store.query_message(topic, key, 64, 0, END_OF_TIME)).body
        for topic, key in asked
    }


def by_time(store: MessageStore, log: Path) -> list[int]:
    """Return the results of SEARCH_OFFSET_BY_TIMESTAMP (29) around the times of all messages, every way."""
    queues = {(message.topic, message.queue_id) for message in read_log(log)}
    times = {message.store_timestamp + shift for message in read_log(log) for shift in (-1, 0)}
    return [
        store.search_offset(topic, queue_id, time, boundary, mode)
        for topic, queue_id in sorted(queues)
        for time in sorted(times)
        for boundary in Boundary
        for mode in SearchMode
    ]


def test_with_an_index_a_broker_answers_the_same_and_rebuilds_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, plain = tmp_path / "store", tmp_path / "plain"
    random_store(root, 1)
    # As after a clean stop: after a crash, a broker rebuilds the entries behind the checkpoint anyway.
    (root / "abort").unlink(missing_ok=True)
    shutil.copytree(root, plain)
    store = opened(plain)
    keys, times = by_key(store, plain), by_time(store, plain)
    store.close()
    build_index(spark, root, tmp_path / "out", IndexOptions(max_hash_slot_num=13, max_index_num=60))
    for folder in ("consumequeue", "index"):
        shutil.rmtree(root / folder, ignore_errors=True)
    install_index(tmp_path / "out", root)
    before = {path: path.read_bytes() for path in (root / "index").iterdir()}
    store = opened(root)
    assert store.rebuilt_entries == 0
    assert by_key(store, root) == keys
    assert {path: path.read_bytes() for path in (root / "index").iterdir()} == before
    reads: list[int] = []
    read = CommitLog.store_time

    def counted(log: CommitLog, at: int) -> int:
        reads.append(at)
        return read(log, at)

    monkeypatch.setattr(CommitLog, "store_time", counted)
    assert by_time(store, root) == times
    assert reads == []
    store.close()


def test_a_broker_serves_a_compaction_store_and_goes_on_from_there(
    spark: SparkSession, tmp_path: Path
) -> None:
    root, served = tmp_path / "store", tmp_path / "served"
    random_store(root, 1)
    compact(spark, root, tmp_path / "out", COMPACTED)
    wanted = expected_queues(root, TOPICS, COMPACTED)
    shutil.copytree((tmp_path / "out" / "current").resolve(), served)
    ends = {
        queue: max(m.queue_offset for m in read_log(root) if (m.topic, m.queue_id) == queue) + 1
        for queue in wanted
    }
    config = replace(CONFIG, mapped_file_size_commit_log=65_536, mapped_file_size_consume_queue=6_000)
    store = MessageStore(served, config, lambda: 1_800_000_000_000)
    store.open()
    store.set_compaction_topics(TOPICS)
    for (topic, queue_id), messages in wanted.items():
        offset, found = 0, []
        while offset < store.max_offset(topic, queue_id):
            result = store.get_message(topic, queue_id, offset, 32, None)
            assert result.next_begin_offset > offset
            found += decode_records(result.body)
            offset = result.next_begin_offset
        assert [(m.queue_offset, content(m)) for m in found] == [
            (m.queue_offset, content(m)) for m in messages
        ]
        put = store.put_message(StoredMessage(topic, queue_id, b"x", KEYED))
        assert put.queue_offset == ends[topic, queue_id]
    store.close()


@pytest.mark.slow(full_only="another test serves a compaction store and goes on from there")
def test_beside_the_log_it_was_made_from_a_compaction_store_gets_what_is_newer(
    spark: SparkSession, tmp_path: Path
) -> None:
    root = tmp_path / "store"
    writer = LogWriter(root)
    for number in range(60):
        writer.put("Prices", body=b"%d" % number, keys=f"k{number % 4}")
    writer.finish(attributes={"Prices": {"cleanup.policy": "COMPACTION"}})
    compact(spark, root, tmp_path / "out", COMPACTED)
    store = opened(root)
    for number in range(60, 63):
        store.put_message(StoredMessage("Prices", 0, b"%d" % number, KEYED))
    store.close()
    shutil.copytree((tmp_path / "out" / "current" / "compaction").resolve(), root / "compaction")
    store = opened(root)
    store.set_compaction_topics(["Prices"])
    assert store.rebuilt_entries == 0
    result = store.get_message("Prices", 0, 0, 32, None)
    assert [m.queue_offset for m in decode_records(result.body)] == list(range(56, 63))
    store.close()
