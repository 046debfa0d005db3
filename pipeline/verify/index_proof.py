"""Compares an index output (queues, key index, time index, Parquet copy) with the log it was made from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rewindmq.broker.store.layout.time_index import FOLDER as TIME_FOLDER
from rewindmq.pipeline.files import LocalFiles, open_files
from rewindmq.pipeline.output.output import Manifest
from rewindmq.pipeline.snapshot.queue_view import QueueView
from rewindmq.pipeline.snapshot.snapshot import StoreSnapshot
from rewindmq.pipeline.verify.evidence import SCHEMA, Kind
from rewindmq.pipeline.verify.report import Tally
from rewindmq.pipeline.verify.tasks import Subject, compare, list_work

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_COPY_FOLDER: Final = "messages"
_SLOTS: Final = "maxHashSlotNum"


def prove_index(spark: SparkSession, log: StoreSnapshot, out: str, manifest: Manifest, tally: Tally) -> None:
    """Compare the output with the log.

    Args:
        log: the store, cut where the output's source ended.
    """
    files, root = open_files(out)
    folder = f"{root}/{manifest.folder}"
    made = log._replace(files=files, root=folder)
    views = {(queue.topic, queue.queue_id): QueueView(made, queue) for queue in made.queues()}
    has_copy = any(entry.is_file for entry in files.list(f"{folder}/{_COPY_FOLDER}"))
    times = f"{folder}/{TIME_FOLDER}" if files.list(f"{folder}/{TIME_FOLDER}") else ""
    subject = Subject(0, log, made, views, times, has_copy, manifest.options.get(_SLOTS, 0))
    work = list_work(subject, tally)
    local = f"file://{folder}/{_COPY_FOLDER}"
    uri = local if isinstance(files, LocalFiles) else f"{out.rstrip('/')}/{manifest.folder}/{_COPY_FOLDER}"
    tally.add_rows(compare(spark, [work], [_copy(spark, uri)] if has_copy else []))


def _copy(spark: SparkSession, uri: str) -> DataFrame:
    """Return the rows of the Parquet copy as evidence."""
    from pyspark.sql import functions as F  # noqa: N812

    rows = spark.read.parquet(uri).select(
        F.lit(0).alias("store"),
        F.col("physicalOffset").alias("position"),
        F.lit(int(Kind.COPY)).alias("kind"),
        F.col("storeSize").alias("size"),
        F.concat_ws("/", "topic", "queueId").alias("queue"),
        F.col("queueOffset").alias("number"),
        F.col("tagsCode").alias("code"),
        F.expr("unix_millis(storeTimestamp)").alias("time"),
        F.lit(0).alias("expects"),
        F.lit(None).cast("array<bigint>").alias("hashes"),
        F.lit(None).cast("array<bigint>").alias("others"),
        F.lit(None).cast("string").alias("note"),
    )
    assert rows.columns == [field.split()[0] for field in SCHEMA.split(", ")]
    return rows
