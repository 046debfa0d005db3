"""The engine without Spark: runs the tasks in this process, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from rewindmq.pipeline.engines.engine import ArrowMap, Rows, Task

if TYPE_CHECKING:
    import pyarrow as pa


# One core, and nothing from the network.
_DUCKDB: Final = MappingProxyType({"threads": "1", "autoinstall_known_extensions": "false"})


class LocalEngine:
    """Runs tasks on one core, without Java; sorted rows are in memory, so the stores should be small."""

    def tasks(self, count: int, task: Task, schema: str) -> Rows:
        return _LocalRows(lambda: chain.from_iterable(map(task, range(count))))

    def messages(self, location: str, columns: Sequence[str], **options: str) -> Rows:
        from rewindmq.pipeline.engines.view_rows import LocalRows

        found = LocalRows([location], view="messages", columns=columns, options=options)
        return _LocalRows(found.batches)

    def query(self, text: str, **tables: Rows) -> Rows:
        return _LocalRows(lambda: _answer(text, tables))


class _LocalRows:
    """Rows in one part."""

    def __init__(self, batches: Callable[[], Iterator[pa.RecordBatch]]) -> None:
        self._batches = batches

    def together(self, keys: Sequence[str], order: Sequence[str]) -> Rows:
        return _LocalRows(lambda: _ordered(self._batches(), order))

    def map(self, function: ArrowMap, schema: str) -> Rows:
        return _LocalRows(lambda: function(self._batches()))

    @contextmanager
    def kept(self) -> Iterator[Rows]:
        found = list(self._batches())
        yield _LocalRows(lambda: iter(found))

    def collect(self) -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for row in self.records()]

    def records(self) -> list[dict[str, Any]]:
        return [row for batch in self._batches() for row in batch.to_pylist()]

    def table(self) -> pa.Table:
        """Return the rows as one table; there is at least one batch."""
        import pyarrow as pa

        return pa.Table.from_batches(self._batches())


def _ordered(batches: Iterator[pa.RecordBatch], order: Sequence[str]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    found = list(batches)
    if found:
        rows = pa.Table.from_batches(found).sort_by([(name, "ascending") for name in order])
        yield from rows.to_batches()


def _answer(text: str, tables: Mapping[str, Rows]) -> Iterator[pa.RecordBatch]:
    import duckdb

    with duckdb.connect(config=dict(_DUCKDB)) as database:
        for name, rows in tables.items():
            assert isinstance(rows, _LocalRows)
            database.register(name, rows.table())
        query = text.format(**{name: name for name in tables})
        yield from database.sql(query).to_arrow_table().to_batches()
