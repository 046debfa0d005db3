"""Reads stores from Python: the data source with named parameters."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rewindmq.pipeline.options import check_columns, parse_options
from rewindmq.pipeline.snapshot.snapshot import check_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_store(
    spark: SparkSession,
    locations: str | Path | Sequence[str | Path],
    *,
    view: str = "messages",
    columns: Sequence[str] | None = None,
    **options: str,
) -> DataFrame:
    """Return the rows of one or more stores, as ``spark.read.format("rocketmq")`` does.

    Args:
        locations: store directories or URIs; pass all brokers' stores to read a cluster.
        view: messages, consumequeue, index, offsets, damage, open_timers or in_flight.
        columns: the columns to read and build; None for the view's default columns. Spark 4.3 does not pass
            ``select`` to a Python data source, so leave unneeded columns out here to save copying them.
        options: those of ``docs/pipeline/reading.md``; pass ``from`` as ``**{"from": ...}``.

    Raises:
        PipelineError: there is no store, or a view, option or column is unknown.
    """
    paths = [os.fspath(location) for location in _listed(locations)]
    options = {"view": view, **options}
    known = parse_options({**options, "paths": json.dumps(paths)})
    for path in paths:
        check_store(path)
    reader = spark.read.format("rocketmq").options(**options)
    if columns is not None:
        check_columns(known, columns)
        reader = reader.schema(", ".join(f"`{name}` {known.columns[name].type}" for name in columns))
    return reader.load(paths[0] if len(paths) == 1 else paths)


def _listed(locations: str | Path | Sequence[str | Path]) -> Sequence[str | Path]:
    return [locations] if isinstance(locations, str | Path) else locations
