"""The previous generation of an output, from which a run continues if it is unchanged."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from rewindmq.pipeline.compact.layout import OFFSET_MAP, OutputFile
from rewindmq.pipeline.compact.scan import SHARED
from rewindmq.pipeline.compact.topics import Kind, TopicRules
from rewindmq.pipeline.compact.writer import log_path
from rewindmq.pipeline.files import Files, LocalFiles
from rewindmq.protocol.names import SCHEDULE_TOPIC

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Files in a store's folder that brokers ignore.
_FOLDER: Final = "pipeline"
_FILES: Final = "files.json"


def offset_map_path(root: str) -> str:
    """Return the path of a generation's offset map: for each message its old and its new place."""
    return f"{root}/{_FOLDER}/offsetMap/{OFFSET_MAP}"


def save_files(files: Files, root: str, written: Iterable[OutputFile]) -> None:
    """Record the log files of a generation."""
    files.publish(f"{root}/{_FOLDER}/{_FILES}", json.dumps([list(file) for file in written]).encode())


def load_files(files: Files, root: str) -> list[OutputFile]:
    """Return the recorded log files of a generation."""
    data = files.read_all(f"{root}/{_FOLDER}/{_FILES}")
    return [] if data is None else [OutputFile(*fields) for fields in json.loads(data)]


def is_as_published(files: Files, root: str, file_bytes: int) -> bool:
    """Whether the log files of a generation are unchanged.

    A broker that ran on them has appended to the files or removed some. On local disks the mtimes show it:
    each must still be the one that the job set (``OutputFile.store_timestamp``).
    """
    if files.entry(offset_map_path(root)) is None:
        return False
    for file in load_files(files, root):
        entry = files.entry(log_path(root, file.stream, file.base))
        if entry is None or entry.size != file_bytes:
            return False
        if isinstance(files, LocalFiles) and entry.mtime_ms != file.store_timestamp:
            return False
    return True


def carried_rows(spark: SparkSession, uri: str, rules: TopicRules) -> DataFrame:
    """Return a generation's messages as rows of ``scan.SCHEMA``; ``uri`` is that of its offset map."""
    from pyspark.sql import functions as F  # noqa: N812

    rows = spark.read.parquet(uri)
    is_delivered = F.lit(False)
    for level, offset in rules.delay_offsets.items():
        of_level = (F.col("topic") == SCHEDULE_TOPIC) & (F.col("queueId") == level - 1)
        is_delivered = is_delivered | (of_level & (F.col("queueOffset") < offset))
    kind = F.when(is_delivered & (F.col("kind") == int(Kind.WHOLE)), int(Kind.DONE)).otherwise(F.col("kind"))
    is_shared = F.col("kind").isin(int(Kind.KEYED), int(Kind.DONE))
    return rows.withColumn("kind", kind).select(
        "topic",
        "queueId",
        "kind",
        F.when(F.col("kind") == int(Kind.KEYED), F.col("key")).alias("key"),
        F.when(is_shared, SHARED).otherwise(F.col("physicalOffset")).cast("bigint").alias("alone"),
        "queueOffset",
        "physicalOffset",
        (2 * F.col("storeSize").cast("bigint") + (~F.col("hasBody")).cast("bigint")).alias("packed"),
        "storeTimestamp",
        F.col("newPhysicalOffset").alias("origin"),
    )
