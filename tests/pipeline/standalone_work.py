"""The work of both sides of the standalone test: a read, a compaction and an index."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rewindmq.pipeline.compact.job import compact
from rewindmq.pipeline.compact.options import CompactOptions, Format
from rewindmq.pipeline.index.job import build_index
from rewindmq.pipeline.reading import read_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def work(spark: SparkSession, stores: list[str], out: Path) -> dict[str, object]:
    """JSON values that do not depend on where Spark runs."""
    columns = ["store", "topic", "queueId", "queueOffset", "physicalOffset", "keysText", "crcOk"]
    rows = read_store(spark, stores, columns=columns).collect()
    compacted = compact(spark, stores[:1], out / "compacted", CompactOptions(format=Format.STORE))
    indexed = build_index(spark, stores[0], out / "indexed")
    return {
        "rows": sorted(list(row) for row in rows if row["keysText"] is not None),
        "count": len(rows),
        "kept": [compacted.messages_read, compacted.messages_kept, compacted.bytes_kept],
        "indexed": [indexed.messages, indexed.queue_entries, indexed.index_entries],
    }
