"""The pipeline reads a RocketMQ broker's store, and a RocketMQ broker serves the pipeline's output."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from rewindmq.pipeline.compact.job import compact
from rewindmq.pipeline.compact.options import CompactOptions, Format
from rewindmq.pipeline.index.install import install_index
from rewindmq.pipeline.index.job import build_index
from rewindmq.pipeline.index.options import IndexOptions
from rewindmq.pipeline.verify.job import verify
from rewindmq.protocol.codec import fastjson
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message.record import decode_records
from tools.interop.rewindmq_servers import RewindMQNamesrv
from tools.interop.servers import RocketMQBroker
from tools.interop.store_chain import PROFILES, ChainPlan, ChainResults
from tools.interop.store_fill import CONFIG, HASH_SLOTS, INDEX_ENTRIES, QUEUES
from tools.interop.store_view import StoreView, view_store, wait_dispatched
from tools.interop.versions import SERVER_4

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# Each label sends the keys of this topic again.
COMPACTED = "plain"
# File sizes of a compaction store, and the settings with which 5.x uses them.
CQ_BYTES, LOG_BYTES = 46_000, 276_000
LAYOUT: Final = {"compactionCqMappedFileSize": CQ_BYTES, "compactionMappedFileSize": 5 * CQ_BYTES}


_OTHER_RELEASE = pytest.mark.interop(full_only="only 5.x reads a compaction store")


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    from rewindmq.pipeline.spark.session import make_session, stop_session

    session = make_session(
        "local[2]", app_name="rewindmq-interop", memory="1g", config={"spark.sql.shuffle.partitions": "4"}
    )
    yield session
    stop_session(session)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(link, id=str(link), marks=() if link.is_chosen else _OTHER_RELEASE)
        for link in map(ChainPlan, PROFILES)
    ],
)
def chain(
    request: pytest.FixtureRequest, store_chains: dict[ChainPlan, ChainResults | BaseException]
) -> ChainResults:
    played = store_chains[request.param]
    if isinstance(played, BaseException):
        raise played
    return played


@dataclass
class Outputs:
    """The content that a RocketMQ broker serves of stores that the pipeline wrote."""

    indexed: StoreView
    compacted: StoreView
    # The source store with a compaction store beside its log.
    laid: StoreView


@pytest.fixture(scope="module")
def outputs(chain: ChainResults, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Outputs:
    directory = tmp_path_factory.mktemp(f"pipeline-{chain.release}")
    indexed = shutil.copytree(chain.real_store, directory / "indexed")
    options = IndexOptions(
        max_hash_slot_num=HASH_SLOTS,
        max_index_num=INDEX_ENTRIES,
        consume_queue_file_bytes=6_000,
        message_delay_level=str(CONFIG["messageDelayLevel"]),
    )
    build_index(spark, indexed, directory / "index", options)
    install_index(directory / "index", indexed)
    compact(
        spark,
        chain.real_store,
        directory / "compact",
        CompactOptions(format=Format.STORE, topics=(COMPACTED,)),
    )
    stores = [
        indexed,
        shutil.copytree((directory / "compact" / "current").resolve(), directory / "compacted"),
        _laid(chain, spark, directory),
    ]
    namesrv = RewindMQNamesrv(chain.profile, directory / "namesrv")
    try:
        with ThreadPoolExecutor() as threads:
            views = threads.map(
                lambda store: _served_by_rocketmq(chain.release, namesrv.address, store), stores
            )
            return Outputs(*views)
    finally:
        namesrv.stop()


def _laid(chain: ChainResults, spark: SparkSession, directory: Path) -> Path:
    options = CompactOptions(topics=(COMPACTED,), log_file_bytes=LOG_BYTES, cq_file_bytes=CQ_BYTES)
    compact(spark, chain.real_store, directory / "layout", options)
    laid = shutil.copytree(chain.real_store, directory / "laid")
    current = (directory / "layout" / "current").resolve()
    shutil.copytree(current / "compaction", laid / "compaction", dirs_exist_ok=True)
    topics = json.loads((current / "config" / "topics.json").read_text())["topicConfigTable"]
    path = laid / "config" / "topics.json"
    whole = fastjson.loads(path.read_bytes())
    whole["topicConfigTable"][COMPACTED] = topics[COMPACTED]
    path.write_text(json.dumps(whole))
    return laid


def _served_by_rocketmq(release: str, namesrv: str, store: Path) -> StoreView:
    directory = store.with_name(f"{store.name}-broker")
    directory.mkdir()
    # A name for each broker, because all are at the same name server.
    keys = CONFIG | LAYOUT | {"brokerName": f"broker-{store.name}"}
    broker = RocketMQBroker(release, namesrv, directory, store, keys)
    try:
        wait_dispatched(broker.address)
        return view_store(broker.address, store)
    finally:
        broker.stop()


def test_verify_finds_nothing_in_a_rocketmq_store(chain: ChainResults, spark: SparkSession) -> None:
    report = verify(spark, chain.real_store)
    assert report.findings() == []


def test_the_rows_equal_what_a_rocketmq_broker_serves(chain: ChainResults, spark: SparkSession) -> None:
    read = spark.read.format("rocketmq").option("decompress", "true").load(str(chain.real_store))
    rows = read.select("topic", "queueId", "queueOffset", "physicalOffset", "body", "properties").collect()
    served = [
        (m.topic, m.queue_id, m.queue_offset, m.commit_log_offset, bytes(m.body), dict(m.properties))
        for records in chain.real_view.records.values()
        if isinstance(records, bytes)
        for m in decode_records(records)
    ]
    refused = {topic for (topic, _), records in chain.real_view.records.items() if isinstance(records, int)}
    mine = [(*row[:4], bytes(row[4]), dict(row[5])) for row in rows if row[0] not in refused]
    assert sorted(mine, key=_place) == sorted(served, key=_place)
    counts = {queue: end for queue, (_, end) in chain.real_view.bounds.items()}
    assert {queue: sum((row[0], row[1]) == queue for row in rows) for queue in counts} == counts


def test_the_offsets_equal_those_of_a_rocketmq_broker(chain: ChainResults, spark: SparkSession) -> None:
    rows = spark.read.format("rocketmq").option("view", "offsets").load(str(chain.real_store)).collect()
    mine: dict[str, dict[int, int]] = {}
    for row in rows:
        mine.setdefault(f"{row['topic']}@{row['group']}", {})[row["queueId"]] = row["offset"]
    assert mine == chain.real_view.offsets


def test_a_rocketmq_broker_serves_index_and_queues_of_the_job(chain: ChainResults, outputs: Outputs) -> None:
    view, before = outputs.indexed, chain.real_view
    assert view.bounds == before.bounds
    assert view.records == before.records
    assert view.keys == before.keys


def test_a_rocketmq_broker_serves_a_compacted_store(chain: ChainResults, outputs: Outputs) -> None:
    before = chain.real_view.messages(COMPACTED)
    assert _bodies(outputs.compacted.messages(COMPACTED)) == _bodies(_newest(before))
    assert len(_newest(before)) < len(before)
    others = {queue: r for queue, r in chain.real_view.records.items() if queue[0] == "batch"}
    for queue, records in others.items():
        assert isinstance(records, bytes)
        served = outputs.compacted.records[queue]
        assert isinstance(served, bytes)
        assert _bodies(decode_records(served)) == _bodies(decode_records(records))


def test_a_rocketmq_broker_serves_a_compaction_store(chain: ChainResults, outputs: Outputs) -> None:
    """4.x does not know compaction stores, and serves the log alone."""
    before = chain.real_view.messages(COMPACTED)
    kept = before if chain.release == SERVER_4 else _newest(before)
    served = outputs.laid.messages(COMPACTED)
    assert _bodies(served) == _bodies(kept)
    assert [m.queue_offset for m in served] == [m.queue_offset for m in kept]


def _newest(messages: list[MessageExt]) -> list[MessageExt]:
    newest = {(m.queue_id, m.keys): m for m in messages}
    return [m for m in messages if newest[m.queue_id, m.keys] is m]


def _bodies(messages: list[MessageExt]) -> dict[int, list[bytes]]:
    return {queue: [bytes(m.body) for m in messages if m.queue_id == queue] for queue in range(QUEUES)}


def _place(row: tuple[Any, ...]) -> int:
    return int(row[3])
