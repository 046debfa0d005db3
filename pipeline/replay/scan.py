"""The only pass over the log that a plan needs: keys, sizes and store times, no bodies.

The driver receives only sums, whose size does not grow with the log. Rows are summed by queue and bin, and by
queue and key; the latter sums are then summed by queue.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rewindmq.pipeline.reading import read_store
from rewindmq.pipeline.replay.plan import Bins, Load, Mode

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_COLUMNS: Final = (
    "topic",
    "queueId",
    "queueOffset",
    "physicalOffset",
    "storeSize",
    "keysText",
    "storeTimestampMs",
    "transactionState",
)
_QUEUE: Final = ("store", "queueId")
# ``grouping_id`` of (store, queueId, keysText, bin) for rows grouped without the bin.
_BY_KEY: Final = 1


class Span(NamedTuple):
    """The messages of one queue that a mode affects: ``start`` <= ``stop``; equal for none."""

    start: int
    stop: int


class QueueSpans(NamedTuple):
    """The messages to read from one queue.

    Attributes:
        store: index of the store.
        low_position: log position of the first message to read.
        max_offset: messages from this offset on are ignored: a live store got them after the plan began.
    """

    store: int
    queue_id: int
    low_position: int
    max_offset: int
    spans: Mapping[Mode, Span]

    @property
    def low(self) -> int:
        """First queue offset to read."""
        return min(span.start for span in self.spans.values())


class Found(NamedTuple):
    """The results of the pass.

    Attributes:
        loads: by (store, queue id) and mode.
        histograms: by (store, queue id) and mode: a number per bin.
        distinct_keys: by mode and whether queues move ahead: distinct keys over all queues.
    """

    loads: Mapping[tuple[int, int, Mode], Load]
    histograms: Mapping[tuple[int, int, Mode], tuple[int, ...]]
    distinct_keys: Mapping[tuple[Mode, bool], int]


NOTHING_FOUND: Final = Found(MappingProxyType({}), MappingProxyType({}), MappingProxyType({}))


def scan(
    spark: SparkSession,
    locations: Sequence[str],
    topic: str,
    queues: Sequence[QueueSpans],
    ahead: Mapping[tuple[int, int, Mode], bool],
    bins: Bins,
) -> Found:
    """Read the messages of ``queues``; at least one queue must have a non-empty span.

    Args:
        ahead: by (store, queue id, mode): whether the queue moves ahead.
    """
    from pyspark import StorageLevel
    from pyspark.sql import functions as F  # noqa: N812

    messages = _messages(spark, locations, topic, queues)
    spans = F.broadcast(_spans(spark, queues, ahead))
    messages = messages.join(spans, [*_QUEUE]).where("queueOffset >= low AND queueOffset < high")
    for mode in Mode:
        within = f"queueOffset >= {mode}_start AND queueOffset < {mode}_stop"
        messages = messages.withColumn(f"{mode}_in", F.expr(within).cast("long"))
    sums = (
        messages.withColumn("bin", _bin(bins))
        .groupingSets(
            [[*_QUEUE, "keysText"], [*_QUEUE, "bin"]],
            *(F.col(name) for name in (*_QUEUE, "keysText", "bin")),
        )
        .agg(F.grouping_id().alias("set"), F.max("queueOffset").alias("newest"), *_sums())
        .persist(StorageLevel.MEMORY_AND_DISK)
    )
    try:
        by_bin = sums.where(f"set != {_BY_KEY}").collect()
        by_key = sums.where(f"set = {_BY_KEY}")
        keys = by_key.groupBy(*_QUEUE).agg(*_key_sums()).collect()
        # A key that is in several queues counts once.
        keyed = by_key.where("keysText IS NOT NULL").groupBy("keysText")
        distinct = keyed.agg(*_distinct()).agg(*(F.sum(name).alias(name) for name in _distinct_names()))
        total = distinct.first()
    finally:
        sums.unpersist()
    assert total is not None
    return Found(
        _loads(by_bin, keys),
        _histograms(by_bin, bins),
        {(mode, way): int(total[f"{mode}_{way}"] or 0) for mode in Mode for way in (False, True)},
    )


def _messages(
    spark: SparkSession, locations: Sequence[str], topic: str, queues: Sequence[QueueSpans]
) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812

    frames = []
    for number in sorted({queue.store for queue in queues}):
        mine = [queue for queue in queues if queue.store == number]
        rows = read_store(spark, locations[number], columns=_COLUMNS).where(F.col("topic") == topic)
        rows = rows.where(F.col("physicalOffset") >= min(queue.low_position for queue in mine))
        rows = rows.where(F.col("queueOffset") >= min(queue.low for queue in mine))
        rows = rows.where(F.col("transactionState").isin("none", "commit"))
        frames.append(rows.withColumn("store", F.lit(number)))
    return reduce(lambda some, more: some.unionByName(more), frames)


def _spans(
    spark: SparkSession, queues: Sequence[QueueSpans], ahead: Mapping[tuple[int, int, Mode], bool]
) -> DataFrame:
    columns = ["store int", "queueId int", "low bigint", "high bigint"]
    for mode in Mode:
        columns += [f"{mode}_start bigint", f"{mode}_stop bigint", f"{mode}_ahead boolean"]
    rows = []
    for queue in queues:
        row: list[Any] = [queue.store, queue.queue_id, queue.low, queue.max_offset]
        for mode in Mode:
            row += [*queue.spans[mode], ahead[queue.store, queue.queue_id, mode]]
        rows.append(tuple(row))
    return spark.createDataFrame(rows, ", ".join(columns))


def _bin(bins: Bins) -> Column:
    """Return a message's bin. If the clock went back, a time may lie outside all bins: the nearest counts."""
    from pyspark.sql import functions as F  # noqa: N812

    number = F.floor((F.col("storeTimestampMs") - bins.start) / bins.width)
    return F.greatest(F.lit(0), F.least(F.lit(bins.count - 1), number)).cast("int")


def _sums() -> list[Column]:
    from pyspark.sql import functions as F  # noqa: N812

    columns = []
    for mode in Mode:
        inside = F.col(f"{mode}_in")
        columns += [
            F.sum(inside).alias(f"{mode}_messages"),
            F.sum(inside * F.col("storeSize")).alias(f"{mode}_size"),
            F.max(f"{mode}_stop").alias(f"{mode}_stop"),
            F.bool_or(f"{mode}_ahead").alias(f"{mode}_ahead"),
        ]
    return columns


def _key_sums() -> list[Column]:
    """Return sums by key: all messages of a key except the newest are superseded.

    The newest message may be after the span.
    """
    from pyspark.sql import functions as F  # noqa: N812

    columns = []
    for mode in Mode:
        messages = F.col(f"{mode}_messages")
        keyed = F.col("keysText").isNotNull() & (messages > 0)
        newest_inside = (F.col("newest") < F.col(f"{mode}_stop")).cast("long")
        columns += [
            F.sum(F.when(keyed, 1).otherwise(0)).alias(f"{mode}_keys"),
            F.sum(F.when(F.col("keysText").isNull(), messages).otherwise(0)).alias(f"{mode}_without"),
            F.sum(F.when(keyed, messages - newest_inside).otherwise(0)).alias(f"{mode}_superseded"),
        ]
    return columns


def _distinct_names() -> list[str]:
    return [f"{mode}_{way}" for mode in Mode for way in (False, True)]


def _distinct() -> list[Column]:
    from pyspark.sql import functions as F  # noqa: N812

    return [
        F.max(((F.col(f"{mode}_messages") > 0) & (F.col(f"{mode}_ahead") == F.lit(way))).cast("long")).alias(
            f"{mode}_{way}"
        )
        for mode in Mode
        for way in (False, True)
    ]


def _loads(by_bin: Sequence[Any], keys: Sequence[Any]) -> dict[tuple[int, int, Mode], Load]:
    loads = {}
    for row in keys:
        store, queue_id = row["store"], row["queueId"]
        mine = [other for other in by_bin if other["store"] == store and other["queueId"] == queue_id]
        for mode in Mode:
            loads[store, queue_id, mode] = Load(
                messages=sum(other[f"{mode}_messages"] for other in mine),
                size=sum(other[f"{mode}_size"] for other in mine),
                distinct_keys=row[f"{mode}_keys"],
                without_key=row[f"{mode}_without"],
                superseded=row[f"{mode}_superseded"],
            )
    return loads


def _histograms(by_bin: Sequence[Any], bins: Bins) -> dict[tuple[int, int, Mode], tuple[int, ...]]:
    counts: dict[tuple[int, int, Mode], list[int]] = {}
    for row in by_bin:
        for mode in Mode:
            histogram = counts.setdefault((row["store"], row["queueId"], mode), [0] * bins.count)
            histogram[row["bin"]] += row[f"{mode}_messages"]
    return {key: tuple(histogram) for key, histogram in counts.items()}
