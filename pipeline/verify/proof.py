"""Proves a compaction: derives from the log alone what the output must keep and drop.

It does not use the job's own code for this, and takes only the options from the job's manifest.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from rewindmq.broker.store.layout.compaction import CQ_FOLDER, FOLDER, LOG_FOLDER
from rewindmq.pipeline.decode.segment_reader import Segment
from rewindmq.pipeline.snapshot.snapshot import PositionedFile, StoreSnapshot, positioned_files
from rewindmq.pipeline.verify.claim import Options, Proof
from rewindmq.pipeline.verify.offset_proof import DELAY_OFFSETS, check_offsets, offsets_asked
from rewindmq.pipeline.verify.report import Tally
from rewindmq.protocol.names import (
    DLQ_GROUP_TOPIC_PREFIX,
    RETRY_GROUP_TOPIC_PREFIX,
    SCHEDULE_TOPIC,
    TRANS_HALF_TOPIC,
    TRANS_OP_HALF_TOPIC,
    is_system_topic,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

    from rewindmq.pipeline.verify.proof_scan import ProofTask

_PART_BYTES: Final = 64 << 20
_PREPARED, _ROLLBACK = 0x4, 0xC
_QUEUE: Final = ("topic", "queueId")
_IDENTITY: Final = (*_QUEUE, "queueOffset")
_OFFSET_MAP: Final = "pipeline/offsetMap"
_MAX_TASKS: Final = 10_000


def is_user_topic(topic: str) -> bool:
    """Whether the topic holds an application's own messages."""
    return not (
        is_system_topic(topic)
        or topic == SCHEDULE_TOPIC
        or topic.startswith((RETRY_GROUP_TOPIC_PREFIX, DLQ_GROUP_TOPIC_PREFIX))
    )


def prove(spark: SparkSession, proof: Proof, tally: Tally) -> None:
    """Compare the output with what the log requires."""
    from pyspark import StorageLevel

    from rewindmq.pipeline.spark.arrow_map import map_in_arrow
    from rewindmq.pipeline.verify.judge import RESULT
    from rewindmq.pipeline.verify.proof_tally import RANKS, ProofTally

    log = _scan(spark, _log_tasks(proof.source)).where("crcOk").persist(StorageLevel.MEMORY_AND_DISK)
    offsets = offsets_asked(proof)
    asked = {queue: sorted(set(wanted)) for queue, wanted in offsets.items()}
    counter = ProofTally(proof.number, asked, proof.source.begin)
    ranks: dict[tuple[str, int, int], int] = {}
    try:
        rows = _compared(_expected(log, proof), _output(spark, proof))
        found = map_in_arrow(rows, counter.count, RESULT).collect()
    finally:
        log.unpersist()
    for row in found:
        if row["name"] == RANKS:
            for topic, queue_id, offset, count in json.loads(row["examples"][0]):
                key = (topic, queue_id, offset)
                ranks[key] = ranks.get(key, 0) + count
        else:
            tally.add_rows([tuple(row)])
    check_offsets(proof, ranks, tally)


# Expected rows, from the log.


def _expected(log: DataFrame, proof: Proof) -> DataFrame:
    """Return the log's records that are in queues, with the columns ``must`` and ``may`` (be kept)."""
    from pyspark.sql import functions as F  # noqa: N812

    options = proof.options
    is_compacted = _is_compacted(log, options)
    rows = log.where(~F.col("transaction").isin(_PREPARED, _ROLLBACK)).withColumn(
        "key", F.when(is_compacted & (F.trim("key") != ""), F.col("key"))
    )
    rows = _with_done(_with_newest(rows, options), log)
    newest = log.agg(F.max("time")).first()
    until = (0 if newest is None or newest[0] is None else newest[0]) - options.grace_ms
    keyed = F.col("key").isNotNull()
    is_tombstone = F.col("bodySize") == 0
    in_grace = F.lit(options.grace_ms > 0) & (F.col("time") >= until)
    must = (
        F.when(keyed, F.col("isNewest") & (~is_tombstone | in_grace))
        .when(is_compacted, F.lit(options.keeps_keyless))
        .otherwise(_is_kept_elsewhere(proof))
    )
    is_end = F.lit(not options.is_store) & F.col("isEnd")
    # On a live store, it is unknown whether a delayed message was delivered before the compaction or after.
    may_be_delivered = F.lit(not proof.is_settled) & (F.col("topic") == SCHEDULE_TOPIC)
    role = (
        F.when(keyed & F.col("isNewest"), F.when(is_tombstone, "tombstone").otherwise("newest"))
        .when(keyed, "superseded")
        .otherwise("other")
    )
    return rows.select(
        *_IDENTITY,
        F.col("position").alias("sourcePosition"),
        F.col("digest").alias("sourceDigest"),
        must.alias("must"),
        (must | is_end | may_be_delivered).alias("may"),
        role.alias("role"),
    )


def _is_compacted(log: DataFrame, options: Options) -> Column:
    from pyspark.sql import functions as F  # noqa: N812

    if options.chosen is not None:
        return F.col("topic").isin(sorted(options.chosen))
    topics = [row[0] for row in log.select("topic").distinct().collect()]
    return F.col("topic").isin([topic for topic in topics if is_user_topic(topic)])


def _with_newest(rows: DataFrame, options: Options) -> DataFrame:
    """Add ``isNewest`` of its key, and ``isEnd``: the last message of its queue that has a key.

    Uses sums instead of a window, so that a frequent key does not end up in one task.
    """
    from pyspark.sql import functions as F  # noqa: N812

    keyed = rows.where("key IS NOT NULL")
    place = F.struct("time", "position") if options.by_topic else F.struct("queueOffset")
    scope = ("topic", "key") if options.by_topic else (*_QUEUE, "key")
    newest = (
        keyed.groupBy(*scope)
        .agg(F.max_by(F.struct(*_QUEUE, "queueOffset"), place).alias("newest"))
        .select("newest.*", F.lit(True).alias("isNewest"))
    )
    ends = keyed.groupBy(*_QUEUE).agg(F.max("queueOffset").alias("queueOffset"))
    return (
        rows.join(newest, [*_IDENTITY], "left")
        .join(ends.withColumn("isEnd", F.lit(True)), [*_IDENTITY], "left")
        .withColumns({name: F.coalesce(F.col(name), F.lit(False)) for name in ("isNewest", "isEnd")})
    )


def _with_done(rows: DataFrame, log: DataFrame) -> DataFrame:
    """Add ``isDone``: whether an op record names the half message; an op record of 5.x may name several."""
    from pyspark.sql import functions as F  # noqa: N812

    done = (
        log.where(F.col("topic") == TRANS_OP_HALF_TOPIC)
        .select("queueId", F.explode(F.split(F.col("body").cast("string"), ",")).alias("piece"))
        .select(
            F.lit(TRANS_HALF_TOPIC).alias("topic"),
            "queueId",
            F.expr("try_cast(piece AS bigint)").alias("queueOffset"),
            F.lit(True).alias("isDone"),
        )
        .distinct()
    )
    return rows.join(done, [*_IDENTITY], "left").withColumn(
        "isDone", F.coalesce(F.col("isDone"), F.lit(False))
    )


def _is_kept_elsewhere(proof: Proof) -> Column:
    """Whether a message of an uncompacted topic is kept.

    Only format store keeps any: all except delivered delayed messages, half messages that an op record names,
    and op records.
    """
    from pyspark.sql import functions as F  # noqa: N812

    if not proof.options.is_store:
        return F.lit(False)
    table = proof.source.config(DELAY_OFFSETS).get("offsetTable") or {}
    first = F.lit(0).cast("bigint")
    for level, offset in table.items():
        first = F.when(F.col("queueId") == int(level) - 1, int(offset)).otherwise(first)
    return (
        F.when(F.col("topic") == SCHEDULE_TOPIC, F.col("queueOffset") >= first)
        .when(F.col("topic") == TRANS_HALF_TOPIC, ~F.col("isDone"))
        .otherwise(F.col("topic") != TRANS_OP_HALF_TOPIC)
    )


# Actual rows, from the output.


def _output(spark: SparkSession, proof: Proof) -> DataFrame:
    """Return the output's records by their old queue offsets, each with its predecessor in its queue."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    rows = _scan(spark, _output_tasks(proof)).select(
        *_QUEUE,
        F.col("queueOffset").alias("newOffset"),
        F.col("position").alias("outPosition"),
        F.col("digest").alias("outDigest"),
        "fault",
    )
    queue = Window.partitionBy(*_QUEUE).orderBy("outPosition")
    rows = rows.withColumn("newBefore", F.lag("newOffset").over(queue))
    table = spark.read.parquet(f"{proof.uri}/{_OFFSET_MAP}").select(
        *_QUEUE,
        F.col("newQueueOffset").alias("newOffset"),
        F.col("newPhysicalOffset").alias("mapPosition"),
        F.col("queueOffset").alias("mapOffset"),
        F.col("physicalOffset").alias("mapSource"),
    )
    rows = rows.join(table, [*_QUEUE, "newOffset"], "full_outer")
    # A compaction store keeps queue offsets, so the comparison does not need its offset map.
    old = F.col("mapOffset") if proof.options.is_store else F.coalesce("newOffset", "mapOffset")
    rows = rows.withColumn("queueOffset", old)
    before = F.lag("queueOffset").over(queue)
    copies = F.count(F.lit(1)).over(Window.partitionBy(*_IDENTITY))
    return rows.withColumns({"oldBefore": before, "copies": copies})


def _compared(expected: DataFrame, output: DataFrame) -> DataFrame:
    return expected.join(output, [*_IDENTITY], "full_outer")


def _scan(spark: SparkSession, tasks: Sequence[ProofTask]) -> DataFrame:
    from rewindmq.pipeline.spark.arrow_map import map_in_arrow
    from rewindmq.pipeline.verify.proof_scan import SCHEMA

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from tasks[number].run()

    numbers = spark.range(0, len(tasks), 1, max(1, min(len(tasks), _MAX_TASKS)))
    return map_in_arrow(numbers.toDF("number"), run, SCHEMA)


def _log_tasks(snapshot: StoreSnapshot) -> list[ProofTask]:
    from rewindmq.pipeline.verify.proof_scan import ProofTask

    return [
        ProofTask(snapshot.files, segment, start, min(start + _PART_BYTES, segment.end), is_output=False)
        for segment in snapshot.segments
        for start in range(segment.base, segment.end, _PART_BYTES)
    ]


def _output_tasks(proof: Proof) -> list[ProofTask]:
    from rewindmq.pipeline.verify.proof_scan import ProofTask

    files, folder = proof.output, f"{proof.folder}/{FOLDER}/{LOG_FOLDER}"
    if proof.options.is_store:
        found = positioned_files(files, f"{proof.folder}/commitlog")
        return [ProofTask(files, _whole(file), file.base, file.base + file.size, True) for file in found]
    tasks = []
    for topic in files.list(folder):
        for queue in files.list(f"{folder}/{topic.name}"):
            queue_folder = f"{proof.folder}/{FOLDER}/{CQ_FOLDER}/{topic.name}/{queue.name}"
            tasks += [
                ProofTask(
                    files,
                    _whole(file),
                    file.base,
                    file.base + file.size,
                    True,
                    f"{queue_folder}/{file.base:020d}",
                )
                for file in positioned_files(files, f"{folder}/{topic.name}/{queue.name}")
            ]
    return tasks


def _whole(file: PositionedFile) -> Segment:
    return Segment(file.path, file.base, file.size, file.base + file.size)
