"""Reading stores from Python: the data source with its options spelled out."""

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
    """The rows of one store or several, as ``spark.read.format("rocketmq")`` gives them.

    Args:
        locations: store directories or URIs; the stores of a cluster's brokers at once.
        view: messages, consumequeue, index, offsets or damage.
        columns: only these are read and made; None takes the view's default ones. Spark 4.3 tells a Python
            data source of no ``select``, so columns left out here are what is not copied.
        options: those of ``docs/pipeline/reading.md``; ``from`` has to be handed over as ``**{"from": ...}``.

    Raises:
        PipelineError: no store, or an unknown view, option or column.
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
