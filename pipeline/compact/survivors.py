"""Selects the messages to keep: Spark's part of a compaction.

``group`` finds the newest message of each key. It uses only values of fixed width, so that Spark combines
them in a hash table before it sends data between tasks, even if a key occurs often. ``survivors`` then reads
one row per key, not the log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rewindmq.pipeline.compact.options import CompactOptions, Format, Scope
from rewindmq.pipeline.compact.topics import Kind

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row, SparkSession

# Number of rows that one task of a later step sorts in memory.
ROWS_PER_PART: Final = 500_000
MAY_BE_KEPT: Final = (Kind.KEYED, Kind.WHOLE, Kind.HALF, Kind.END)
_KEPT: Final = (
    "topic", "queueId", "queueOffset", "physicalOffset", "packed", "storeTimestamp", "key", "kind", "origin",
)  # fmt: skip


class QueueTotals(NamedTuple):
    """Sums over one queue's messages of one kind.

    Attributes:
        messages: messages that this run read, including superseded ones of kind KEYED.
        carried: messages that the previous run kept.
        groups: for kind KEYED: number of distinct keys.
        newest: highest queue offset.
        newest_store_timestamp: ms.
        last: log position of the last message that this run read; -1 for none.
        lowest: lowest queue offset that this run read; None for none.
        newest_at: log position of the newest message; -1 if an earlier run read it.
    """

    topic: str
    queue_id: int
    kind: Kind
    messages: int
    carried: int
    groups: int
    newest: int
    newest_store_timestamp: int
    last: int
    lowest: int | None
    newest_at: int


def group(rows: DataFrame) -> DataFrame:
    """Return one row per key and queue from rows of ``scan.SCHEMA``: its newest message, and the count."""
    from pyspark.sql import functions as F  # noqa: N812

    newest = [
        F.max_by(name, "queueOffset").alias(name)
        for name in ("physicalOffset", "packed", "storeTimestamp", "origin")
    ]
    is_read, position = F.col("origin") < 0, F.col("physicalOffset")
    return rows.groupBy("topic", "queueId", "kind", "key", "alone").agg(
        F.max("queueOffset").alias("queueOffset"),
        *newest,
        F.max("storeTimestamp").alias("newestStoreTimestamp"),
        F.max(F.when(is_read, position).otherwise(-1)).alias("last"),
        F.min(F.when(is_read, F.col("queueOffset"))).alias("lowest"),
        F.max_by(F.when(is_read, position).otherwise(-1), "queueOffset").alias("newestAt"),
        F.sum(F.when(is_read, 1).otherwise(0)).alias("messages"),
        F.sum(F.when(is_read, 0).otherwise(1)).alias("carried"),
    )


def queue_totals(groups: DataFrame) -> list[QueueTotals]:
    """Return the sums by queue and kind: as many rows as queues and kinds."""
    from pyspark.sql import functions as F  # noqa: N812

    found = (
        groups.where(~F.col("kind").isin(int(Kind.DAMAGE), int(Kind.NAMED_HALF)))
        .groupBy("topic", "queueId", "kind")
        .agg(
            F.sum("messages").alias("messages"),
            F.sum("carried").alias("carried"),
            F.count("*").alias("groups"),
            F.max("queueOffset").alias("newest"),
            F.max("newestStoreTimestamp").alias("time"),
            F.max("last").alias("last"),
            F.min("lowest").alias("lowest"),
            F.max_by("newestAt", "queueOffset").alias("newestAt"),
        )
        .collect()
    )
    return [_totals(row) for row in found]


def _totals(row: Row) -> QueueTotals:
    names = ("messages", "carried", "groups", "newest", "time", "last", "lowest", "newestAt")
    return QueueTotals(row["topic"], row["queueId"], Kind(row["kind"]), *(row[name] for name in names))


def damaged_places(groups: DataFrame, limit: int) -> tuple[int, list[list[Any]]]:
    """Return the number of damaged places, and the first of them: kind, start, end, detail."""
    from pyspark.sql import functions as F  # noqa: N812

    places = groups.where(F.col("kind") == int(Kind.DAMAGE))
    columns = places.select("topic", "physicalOffset", "queueOffset", "key")
    first = [list(row) for row in columns.orderBy("physicalOffset").limit(limit).collect()]
    return (places.count() if len(first) == limit else len(first)), first


def keys_of_topics(groups: DataFrame) -> dict[str, int]:
    """Return the number of distinct keys of each topic, over all its queues."""
    from pyspark.sql import functions as F  # noqa: N812

    keys = groups.where(F.col("kind") == int(Kind.KEYED)).select("topic", "key").distinct()
    return {row["topic"]: row["count"] for row in keys.groupBy("topic").count().collect()}


def survivors(
    spark: SparkSession,
    groups: DataFrame,
    options: CompactOptions,
    totals: Sequence[QueueTotals],
    newest_store_timestamp: int,
) -> DataFrame:
    """Return the rows to keep; a message that is kept only for its queue's end has ``kind`` END.

    Args:
        totals: those of ``groups``.
        newest_store_timestamp: of the whole log, ms; the grace of tombstones counts back from it.
    """
    from pyspark.sql import functions as F  # noqa: N812

    rows = groups.where(F.col("kind").isin([int(kind) for kind in MAY_BE_KEPT]))
    if any(total.kind is Kind.HALF for total in totals):
        named = groups.where(F.col("kind") == int(Kind.NAMED_HALF)).select("queueId", "queueOffset")
        named = named.withColumn("kind", F.lit(int(Kind.HALF)))
        rows = rows.join(named, ["kind", "queueId", "queueOffset"], "left_anti")
    rows = rows.withColumn("isKept", _is_kept(options, newest_store_timestamp))
    if options.format is Format.COMPACTION:
        rows = _with_ends(spark, rows, newest_of_queues(totals))
    return rows.where("isKept").select(*_KEPT)


def _is_kept(options: CompactOptions, newest_store_timestamp: int) -> Column:
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    is_kept = (F.col("packed") % 2) == 0
    if options.tombstone_grace_ms:
        until = newest_store_timestamp - options.tombstone_grace_ms
        is_kept = is_kept | (F.col("storeTimestamp") >= until)
    if options.scope is Scope.TOPIC:
        by_key = Window.partitionBy("topic", "key", "alone").orderBy(
            F.col("storeTimestamp").desc(), F.col("physicalOffset").desc()
        )
        is_kept = is_kept & (F.row_number().over(by_key) == 1)
    kind = F.col("kind")
    return F.when(kind == int(Kind.KEYED), is_kept).otherwise(kind != int(Kind.END))


def newest_of_queues(totals: Sequence[QueueTotals]) -> dict[tuple[str, int], int]:
    """Return the highest offset of a message with a key, for each compacted queue.

    The compaction format keeps that message. Otherwise the queue would end before the offsets of groups that
    have already consumed the message.
    """
    newest: dict[tuple[str, int], int] = {}
    for total in totals:
        if total.kind in (Kind.KEYED, Kind.END):
            queue = total.topic, total.queue_id
            newest[queue] = max(newest.get(queue, 0), total.newest)
    return newest


def _with_ends(spark: SparkSession, keyed: DataFrame, ends: Mapping[tuple[str, int], int]) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812

    rows = [(topic, queue_id, newest) for (topic, queue_id), newest in ends.items()]
    table = spark.createDataFrame(rows, "topic string, queueId int, queueEnd bigint")
    joined = keyed.join(F.broadcast(table), ["topic", "queueId"], "left")
    is_keyed = F.col("kind").isin(int(Kind.KEYED), int(Kind.END))
    is_end = is_keyed & ~F.col("isKept") & (F.col("queueOffset") == F.col("queueEnd"))
    return (
        joined.withColumn("kind", F.when(is_end, int(Kind.END)).otherwise(F.col("kind")))
        .withColumn("isKept", F.col("isKept") | F.coalesce(is_end, F.lit(False)))
        .drop("queueEnd")
    )


def in_order(rows: DataFrame, count: int, order: Sequence[str]) -> DataFrame:
    """Return the rows sorted over all parts; a part has about ``ROWS_PER_PART`` rows."""
    parts = count // ROWS_PER_PART + 1
    return rows.repartitionByRange(parts, *order).sortWithinPartitions(*order)
