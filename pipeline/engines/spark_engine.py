"""Spark as the engine: a task for each number, on the session's workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from rewindmq.pipeline.engines.engine import ArrowMap, Rows, Task
from rewindmq.pipeline.spark.arrow_map import map_in_arrow
from rewindmq.pipeline.spark.errors import in_one_line

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from rewindmq.pipeline.files import Files, ReadableFiles

_MOST_PARTS: Final = 10_000


class SparkEngine:
    """Runs tasks in a session of Spark."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def tasks(self, count: int, task: Task, schema: str) -> Rows:
        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    yield from task(number)

        numbers = self._spark.range(0, count, 1, min(count, _MOST_PARTS))
        return _SparkRows(map_in_arrow(numbers, run, schema))

    def messages(self, location: str, columns: Sequence[str], **options: str) -> Rows:
        from rewindmq.pipeline.reading import read_store

        return _SparkRows(read_store(self._spark, location, columns=columns, **options))

    def saved(self, files: ReadableFiles, path: str, uri: str) -> Rows:
        return _SparkRows(self._spark.read.parquet(uri))

    def query(self, text: str, **tables: Rows) -> Rows:
        frames: dict[str, Any] = {}
        for name, rows in tables.items():
            assert isinstance(rows, _SparkRows)
            frames[name] = rows.frame
        return _SparkRows(self._spark.sql(text, **frames))


class _SparkRows:
    def __init__(self, frame: DataFrame) -> None:
        self.frame = frame

    def together(self, keys: Sequence[str], order: Sequence[str]) -> Rows:
        return _SparkRows(self.frame.repartition(*keys).sortWithinPartitions(*order))

    def map(self, function: ArrowMap, schema: str) -> Rows:
        return _SparkRows(map_in_arrow(self.frame, function, schema))

    def sorted(self, order: Sequence[str], parts: int) -> Rows:
        return _SparkRows(self.frame.repartitionByRange(parts, *order).sortWithinPartitions(*order))

    def save(self, files: Files, folder: str, uri: str) -> None:
        with in_one_line():
            self.frame.write.mode("overwrite").parquet(uri)

    @contextmanager
    def kept(self) -> Iterator[Rows]:
        from pyspark import StorageLevel

        rows = _SparkRows(self.frame.persist(StorageLevel.MEMORY_AND_DISK))
        try:
            yield rows
        finally:
            rows.frame.unpersist()

    def collect(self) -> list[tuple[Any, ...]]:
        with in_one_line():
            return [tuple(row) for row in self.frame.collect()]

    def records(self) -> list[dict[str, Any]]:
        with in_one_line():
            return [row.asDict() for row in self.frame.collect()]
