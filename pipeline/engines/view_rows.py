"""Rows of a view, read in this process by the readers that Spark's workers run."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rewindmq.pipeline.options import check_columns, parse_options
from rewindmq.pipeline.schema import arrow_schema
from rewindmq.pipeline.views.by_name import READERS

if TYPE_CHECKING:
    import pyarrow as pa

# Rows that are Python objects at the same time; the rest of a batch stays in Arrow.
_ROWS_AT_ONCE: Final = 1_000


class ViewRows:
    """The rows that a Spark query of the same view, options and topic returns, in the order of the stores."""

    def __init__(
        self,
        locations: Sequence[str],
        *,
        view: str,
        columns: Sequence[str] | None = None,
        topic: str | None = None,
        options: Mapping[str, str],
    ) -> None:
        """
        Args:
            columns: as in ``read_store``.
            topic: only rows of this topic, for views that have the column but no such option.
            options: those of ``docs/pipeline/reading.md``.

        Raises:
            PipelineError: a store cannot be read, or a view, option or column is unknown.
        """
        known = parse_options({"view": view, "paths": json.dumps(list(locations)), **options})
        names = columns or [name for name, column in known.columns.items() if column.is_default]
        check_columns(known, names)
        self._reader = READERS[view](known, names)
        self._topic = topic
        self._schema = ", ".join(f"{name} {known.columns[name].type}" for name in names)

    def count(self) -> int:
        """Return the number of rows.

        Raises:
            PipelineError: a store cannot be read.
        """
        return sum(batch.num_rows for batch in self.batches())

    def rows(self, limit: int = 0) -> Iterator[dict[str, Any]]:
        """Yield the rows, at most ``limit``, 0 for all; read no further than they need.

        Times are local times with their zone, maps are dicts.

        Raises:
            PipelineError: a store cannot be read.
        """
        return islice(self._rows(), limit or None)

    def _rows(self) -> Iterator[dict[str, Any]]:
        import pyarrow as pa

        for batch in self.batches():
            maps = {field.name for field in batch.schema if pa.types.is_map(field.type)}
            for start in range(0, batch.num_rows, _ROWS_AT_ONCE):
                for row in batch.slice(start, _ROWS_AT_ONCE).to_pylist():
                    # Arrow returns a map as a list of pairs.
                    values = {name: _value(value) for name, value in row.items()}
                    yield {**values, **{name: dict(row[name]) for name in maps}}

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows as Arrow batches.

        Raises:
            PipelineError: a store cannot be read.
        """
        import pyarrow.compute as pc

        for part in self._reader.partitions():
            for batch in self._reader.read(part):
                yield batch if self._topic is None else batch.filter(pc.equal(batch["topic"], self._topic))

    def table(self) -> pa.Table:
        """Return all rows as an Arrow table.

        Raises:
            PipelineError: a store cannot be read.
        """
        import pyarrow as pa

        batches = list(self.batches())
        return pa.Table.from_batches(batches) if batches else arrow_schema(self._schema).empty_table()


def read_table(
    locations: str | Path | Sequence[str | Path],
    *,
    view: str = "messages",
    columns: Sequence[str] | None = None,
    **options: str,
) -> pa.Table:
    """Return the rows of one or more stores as an Arrow table in memory, without Spark and Java.

    DuckDB, Polars and pandas read it. The arguments are those of ``read_store``.

    Raises:
        PipelineError: there is no store, or a view, option or column is unknown.
    """
    listed = [locations] if isinstance(locations, str | Path) else locations
    paths = [os.fspath(location) for location in listed]
    return ViewRows(paths, view=view, columns=columns, options=options).table()


def _value(value: Any) -> Any:
    return value.astimezone() if isinstance(value, datetime) else value
