"""Spark jobs over a store of messages with bodies of 250 B, and a client that consumes such messages."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import uvloop

from bench import cluster_start, consuming
from bench.pipeline_queries import query_rows, selection_rows
from bench.pipeline_store import BODY_BYTES, TOPICS, Filled, write_store
from bench.raw_blocks import BLOCK_BYTES, RawBlocks
from bench.stopwatch import timed
from bench.table import Row
from bench.tree_memory import PeakMemory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MASTER: Final = "local[2]"
_MEMORY: Final = "2g"
_SCANNED: Final = 4_000_000
_COMPACTED: Final = 1_000_000
_COMPACTED_IN_FULL: Final = 10_000_000
# The rate must be at least this share of the rate with a tenth of the messages.
_LEAST_SHARE: Final = 0.5
_CONSUMED: Final = 200_000
# Messages of each key.
_PER_KEY: Final = 10
_SPLIT_BYTES: Final = 64 << 20
# The columns that a compaction, an index job or a check needs.
_INDEX_COLUMNS: Final = (
    "topic", "queueId", "queueOffset", "physicalOffset", "storeSize", "tagsCode", "keysText",
    "storeTimestampMs",
)  # fmt: skip


def bench_pipeline(rounds: int, scale: float) -> list[Row]:
    """Measure the data pipeline at local[2] with files in the page cache."""
    with tempfile.TemporaryDirectory(prefix="rewindmq-bench-") as directory:
        folder = Path(directory)
        count = int(_SCANNED * scale)
        _say(f"pipeline, writing a store of {count:,} messages")
        store = write_store(folder / "scanned", count, count // _PER_KEY)
        with _spark(folder) as spark:
            rows = _scan_rows(spark, store, rounds)
            indexed = folder / "indexed"
            rows.append(_index_row(spark, store, indexed))
            _say("pipeline, selections and queries")
            rows += selection_rows(spark, store, indexed, folder / "counters", rounds)
            rows += query_rows(spark, store, indexed, rounds)
            rows += _compaction_rows(spark, folder, int(_COMPACTED * scale), rounds)
    rows.append(_consumption_row(rounds, int(_CONSUMED * scale)))
    return rows


def bench_pipeline_in_full(rounds: int, scale: float) -> list[Row]:
    """Measure compactions of one million and of ten million messages."""
    with tempfile.TemporaryDirectory(prefix="rewindmq-bench-") as directory, _spark(Path(directory)) as spark:
        few = _compaction_rows(spark, Path(directory), int(_COMPACTED * scale), rounds)
        many = _compaction_rows(spark, Path(directory), int(_COMPACTED_IN_FULL * scale), rounds)
        for row, limit in zip(many, few, strict=True):
            if row.unit == "msg/s":
                row.limit, row.limit_name, row.limit_share = limit, "a tenth of it", _LEAST_SHARE
    return [*few, *many]


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@contextlib.contextmanager
def _spark(folder: Path) -> Iterator[SparkSession]:
    from rewindmq.pipeline.spark.session import make_session, stop_session

    spark = make_session(_MASTER, memory=_MEMORY, log=folder / "spark.log")
    try:
        yield spark
    finally:
        stop_session(spark)


def _run(rows: DataFrame) -> None:
    """Let Spark read every row and discard it."""
    rows.write.format("noop").mode("overwrite").save()


def _scan_rows(spark: SparkSession, store: Filled, rounds: int) -> list[Row]:
    from rewindmq.pipeline.reading import read_store

    size = f"{store.messages:,} messages, records of {store.record_bytes} B with bodies of {BODY_BYTES} B"
    raw = Row(
        "the log as raw blocks through Spark",
        "msg/s",
        note=f"{size}; blocks of {BLOCK_BYTES >> 20} MiB as binary rows, nothing decoded",
    )
    decode = Row(
        "full decode, all columns with bodies",
        "msg/s",
        500_000,
        limit=raw,
        limit_name="raw blocks",
        note="all default columns: keys, properties, CRC checked",
    )
    index = Row("index-only scan", "msg/s", 1_000_000, note=f"columns {', '.join(_INDEX_COLUMNS)}")
    loads = [
        (raw, _raw_blocks(spark, store)),
        (decode, read_store(spark, store.root)),
        (index, read_store(spark, store.root, columns=_INDEX_COLUMNS)),
    ]
    assert loads[-1][1].count() == store.messages
    for _, load in loads:
        # Warm up: start workers, compile Java's code, fill the page cache.
        _run(load)
    for number in range(rounds):
        _say(f"pipeline, scans, round {number + 1} of {rounds}")
        for row, load in loads:
            row.samples.append(store.messages / timed(_run, load).seconds)
    return [row for row, _ in loads]


def _raw_blocks(spark: SparkSession, store: Filled) -> DataFrame:
    """Read the same bytes in the same number of tasks."""
    from rewindmq.pipeline.snapshot.snapshot import take_snapshot

    parts = [
        (segment.path, start - segment.base, min(_SPLIT_BYTES, segment.end - start))
        for segment in take_snapshot(store.root).segments
        for start in range(segment.base, segment.end, _SPLIT_BYTES)
    ]
    spark.dataSource.register(RawBlocks)
    return spark.read.format(RawBlocks.name()).option("parts", json.dumps(parts)).load()


def _index_row(spark: SparkSession, store: Filled, indexed: Path) -> Row:
    from rewindmq.pipeline.index.job import build_index
    from rewindmq.pipeline.index.options import IndexOptions

    _say("pipeline, indexing")
    row = Row("index: consume queues, key index and Parquet copy", "msg/s", note="one round")
    seconds = timed(build_index, spark, store.root, indexed, IndexOptions()).seconds
    row.samples.append(store.messages / seconds)
    return row


def _compaction_rows(spark: SparkSession, folder: Path, count: int, rounds: int) -> list[Row]:
    from rewindmq.pipeline.compact.job import compact
    from rewindmq.pipeline.compact.options import CompactOptions, Format

    _say(f"pipeline, writing a store of {count:,} messages")
    store = write_store(folder / "to-compact", count, count // _PER_KEY)
    rows = []
    for output in Format:
        name = f"compaction of {count:,} messages, {store.keys:,} keys, format {output}"
        rate = Row(name, "msg/s")
        memory = Row(
            f"the same, format {output}: peak memory of all its processes",
            "MB",
            4_295,
            higher_is_better=False,
            note=f"proportional set size, Spark's memory {_MEMORY}",
        )
        for number in range(rounds):
            _say(f"pipeline, {name}, round {number + 1} of {rounds}")
            out = folder / f"compacted-{output}"
            with PeakMemory() as peak:
                run = timed(compact, spark, [store.root], out, CompactOptions(format=output))
            assert run.result.messages_read == store.messages
            rate.samples.append(store.messages / run.seconds)
            memory.samples.append(peak.megabytes)
            shutil.rmtree(out)
        rows += [rate, memory]
    shutil.rmtree(store.root)
    return rows


def _consumption_row(rounds: int, total: int) -> Row:
    row = Row(
        "the same messages read through one consumer",
        "msg/s",
        note=f"bodies of {BODY_BYTES} B, one RewindMQ broker, pull batch 32, async listener",
    )
    with cluster_start.running_cluster(1) as (ready, _):
        address = ready["namesrv"]["address"]
        _say("pipeline, filling a broker")
        uvloop.run(consuming.fill(address, TOPICS[0], total, BODY_BYTES))
        for number in range(rounds):
            _say(f"pipeline, consuming, round {number + 1} of {rounds}")
            group = f"PipelineGroup{number}"
            row.samples.append(uvloop.run(consuming.consumed(address, TOPICS[0], group, total, BODY_BYTES)))
    return row
