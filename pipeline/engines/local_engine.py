"""The engine without Spark: runs the tasks in this process, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from rewindmq.pipeline.engines.engine import ArrowMap, Rows, Task
from rewindmq.pipeline.errors import PipelineError
from rewindmq.pipeline.schema import MESSAGES, arrow_schema
from rewindmq.protocol.files.temporary_folder import TemporaryFolder

if TYPE_CHECKING:
    import pyarrow as pa

    from rewindmq.pipeline.files import Files, ReadableFiles


# One core, and nothing from the network.
_DUCKDB: Final = MappingProxyType({"threads": "1", "autoinstall_known_extensions": "false"})


class LocalEngine:
    """Runs tasks on one core, without Java; sorted rows are in memory, so the stores should be small."""

    def tasks(self, count: int, task: Task, schema: str) -> Rows:
        return _LocalRows(lambda: chain.from_iterable(map(task, range(count))), schema)

    def messages(self, location: str, columns: Sequence[str], **options: str) -> Rows:
        from rewindmq.pipeline.engines.view_rows import ViewRows

        found = ViewRows([location], view="messages", columns=columns, options=options)
        return _LocalRows(found.batches, ", ".join(f"{name} {MESSAGES[name].type}" for name in columns))

    def saved(self, files: ReadableFiles, path: str, uri: str) -> Rows:
        return _LocalRows(lambda: _read_parquet(files, path))

    def query(self, text: str, **tables: Rows) -> Rows:
        return _LocalRows(lambda: _answer(text, tables))


class _LocalRows:
    """Rows in one part."""

    def __init__(self, batches: Callable[[], Iterator[pa.RecordBatch]], schema: str | None = None) -> None:
        """``schema``: as DDL; None if ``batches`` yields at least one batch, which may be empty."""
        self._batches = batches
        self._schema = schema

    def together(self, keys: Sequence[str], order: Sequence[str]) -> Rows:
        return self.sorted(order, 1)

    def sorted(self, order: Sequence[str], parts: int) -> Rows:
        keys = [(name, "ascending") for name in order]
        return _LocalRows(lambda: _in_batches(self.table().sort_by(keys)))

    def map(self, function: ArrowMap, schema: str) -> Rows:
        return _LocalRows(lambda: function(self._batches()), schema)

    @contextmanager
    def kept(self) -> Iterator[Rows]:
        found = self.table()
        yield _LocalRows(lambda: _in_batches(found))

    def save(self, files: Files, folder: str, uri: str) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        content = pa.BufferOutputStream()
        pq.write_table(self.table(), content)
        files.remove_tree(folder)
        # A killed run leaves no half-written file under this name.
        files.publish(f"{folder}/part-00000.parquet", content.getvalue().to_pybytes())

    def collect(self) -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for row in self.records()]

    def records(self) -> list[dict[str, Any]]:
        return [row for batch in self._batches() for row in batch.to_pylist()]

    def table(self) -> pa.Table:
        """Return the rows as one table."""
        import pyarrow as pa

        found = list(self._batches())
        if found:
            return pa.Table.from_batches(found)
        assert self._schema is not None
        return arrow_schema(self._schema).empty_table()


def _in_batches(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a table; an empty batch if there are none."""
    import pyarrow as pa

    yield from table.to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)]


def _read_parquet(files: ReadableFiles, path: str) -> Iterator[pa.RecordBatch]:
    names = [f"{path}/{entry.name}" for entry in files.list(path) if entry.name.endswith(".parquet")]
    for name in names or [path]:
        yield from _in_batches(_read_file(files, name))


def _read_file(files: ReadableFiles, path: str) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        data = files.read_all(path)
        if data is None:
            raise PipelineError(f"{path} is missing")
        return pq.read_table(pa.BufferReader(data))
    except (pa.ArrowException, OSError, ValueError) as error:
        # The type of the error depends on the damaged byte.
        reason = getattr(error, "strerror", None) or error
        raise PipelineError(f"cannot read {path}: {_first_line(reason)}") from None


def _answer(text: str, tables: Mapping[str, Rows]) -> Iterator[pa.RecordBatch]:
    found: dict[str, pa.Table] = {}
    for name, rows in tables.items():
        assert isinstance(rows, _LocalRows)
        found[name] = rows.table()
    yield from _in_batches(_run(text.format(**{name: name for name in tables}), found))


def _run(query: str, tables: Mapping[str, pa.Table]) -> pa.Table:
    import duckdb

    # What does not fit into memory goes there, and by default into the current folder.
    with TemporaryFolder("local-") as folder:
        try:
            with duckdb.connect(config={**_DUCKDB, "temp_directory": str(folder.path)}) as database:
                for name, table in tables.items():
                    database.register(name, table)
                return database.sql(query).to_arrow_table()
        except duckdb.Error as error:
            raise PipelineError(
                f"the local engine cannot answer a query: {_first_line(error)}; try --engine spark"
            ) from None


def _first_line(error: object) -> str:
    return str(error).strip().partition("\n")[0]
