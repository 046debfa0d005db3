"""The data source's readers, called as Spark's workers call them, but in this process and without Java."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import Filter

from rewindmq.pipeline.options import parse_options
from rewindmq.pipeline.schema import VIEWS
from rewindmq.pipeline.views.consume_queue import ConsumeQueueReader
from rewindmq.pipeline.views.damage import DamageReader
from rewindmq.pipeline.views.in_flight import InFlightReader
from rewindmq.pipeline.views.index import IndexViewReader
from rewindmq.pipeline.views.messages import PushingMessageReader
from rewindmq.pipeline.views.offsets import OffsetsReader
from rewindmq.pipeline.views.open_timers import OpenTimersReader
from rewindmq.pipeline.views.reader import StoreReader

READERS: dict[str, type[StoreReader]] = {
    "messages": PushingMessageReader,
    "consumequeue": ConsumeQueueReader,
    "index": IndexViewReader,
    "offsets": OffsetsReader,
    "damage": DamageReader,
    "open_timers": OpenTimersReader,
    "in_flight": InFlightReader,
}


def rows(
    stores: Path | Sequence[Path],
    view: str = "messages",
    columns: Sequence[str] | None = None,
    filters: Sequence[Filter] = (),
    options: Mapping[str, str] = MappingProxyType({}),
    **more_options: str,
) -> list[dict[str, Any]]:
    """The rows of a view; filters are handed over, and not evaluated once more as Spark would."""
    paths = [str(store) for store in ([stores] if isinstance(stores, Path) else stores)]
    known = parse_options({"view": view, "paths": json.dumps(paths), **options, **more_options})
    names = columns or [name for name, column in VIEWS[view].items() if column.is_default]
    reader = READERS[view](known, names)
    if isinstance(reader, PushingMessageReader):
        assert list(reader.pushFilters(list(filters))) == list(filters)
    # As in Spark, the reader is pickled before partitions are requested.
    travelling = pickle.dumps(reader)
    parts = reader.partitions()
    found: list[dict[str, Any]] = []
    for part in parts:
        worker = pickle.loads(travelling)
        for batch in worker.read(pickle.loads(pickle.dumps(part))):
            assert isinstance(batch, pa.RecordBatch)
            assert batch.num_rows <= known.batch_records
            found += batch.to_pylist()
    return found
