"""The interface between jobs and the engines that run their tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

    from rewindmq.pipeline.files import Files, ReadableFiles

ArrowMap = Callable[[Iterator["pa.RecordBatch"]], Iterator["pa.RecordBatch"]]
# Yields the rows of the task with this number.
Task = Callable[[int], Iterator["pa.RecordBatch"]]


class Rows(Protocol):
    """Rows of a job, held by an engine. Methods return new rows and run nothing before ``collect``."""

    def together(self, keys: Sequence[str], order: Sequence[str]) -> Rows:
        """Bring rows with equal ``keys`` into one part, and sort each part by ``order``, which begins with
        the keys."""

    def map(self, function: ArrowMap, schema: str) -> Rows:
        """Apply ``function`` to the batches of each part.

        Args:
            schema: schema of the batches that ``function`` returns, as DDL of Spark.
        """

    def sorted(self, order: Sequence[str], parts: int) -> Rows:
        """Sort over all parts; the rows are divided into about ``parts`` parts."""

    def save(self, files: Files, folder: str, uri: str) -> None:
        """Write the rows to a folder as Parquet, and replace what is there.

        Args:
            folder: path of the folder in ``files``; ``uri`` is the same folder.
        """

    def kept(self) -> AbstractContextManager[Rows]:
        """Return the same rows, computed only once; the engine frees them at the end of the context."""

    def collect(self) -> list[tuple[Any, ...]]:
        """Run the job and return the rows.

        Raises:
            PipelineError: a task raised it, or the engine failed.
        """

    def records(self) -> list[dict[str, Any]]:
        """``collect``, with each row's columns by name."""


class Engine(Protocol):
    """Runs tasks. Functions and what they hold can be pickled."""

    def tasks(self, count: int, task: Task, schema: str) -> Rows:
        """Return the rows that ``task`` yields for the numbers 0 to ``count`` - 1; ``count`` is at least 1.

        Args:
            schema: schema of the batches, as DDL of Spark.
        """

    def messages(self, location: str, columns: Sequence[str], **options: str) -> Rows:
        """Return columns of a store's messages, without times and maps; ``options`` are the data source's."""

    def saved(self, files: ReadableFiles, path: str, uri: str) -> Rows:
        """Return the rows of a Parquet file, or of a folder that ``Rows.save`` wrote."""

    def query(self, text: str, **tables: Rows) -> Rows:
        """Return the result of a query in SQL that Spark and DuckDB both have.

        ``{name}`` in the text stands for the table with this name. DuckDB's sums are wider than Spark's:
        cast each sum to BIGINT.
        """
