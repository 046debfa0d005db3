"""The engine without Spark: runs the tasks in this process, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from rewindmq.pipeline.engines.engine import ArrowMap, Rows, Task

if TYPE_CHECKING:
    import pyarrow as pa


class LocalEngine:
    """Runs tasks on one core, without Java; sorted rows are in memory, so the stores should be small."""

    def tasks(self, count: int, task: Task, schema: str) -> Rows:
        return _LocalRows(lambda: chain.from_iterable(map(task, range(count))))


class _LocalRows:
    """Rows in one part."""

    def __init__(self, batches: Callable[[], Iterator[pa.RecordBatch]]) -> None:
        self._batches = batches

    def together(self, keys: Sequence[str], order: Sequence[str]) -> Rows:
        return _LocalRows(lambda: _ordered(self._batches(), order))

    def map(self, function: ArrowMap, schema: str) -> Rows:
        return _LocalRows(lambda: function(self._batches()))

    def collect(self) -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for batch in self._batches() for row in batch.to_pylist()]


def _ordered(batches: Iterator[pa.RecordBatch], order: Sequence[str]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    found = list(batches)
    if found:
        rows = pa.Table.from_batches(found).sort_by([(name, "ascending") for name in order])
        yield from rows.to_batches()
