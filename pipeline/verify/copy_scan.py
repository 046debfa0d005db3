"""Reads the Parquet copy of an index output for a verification: a row per message."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rewindmq.pipeline.errors import PipelineError
from rewindmq.pipeline.files import ReadableFiles
from rewindmq.pipeline.verify.evidence import RowKind, evidence

_BATCH_ROWS: Final = 65_536
_COLUMNS: Final = (
    "physicalOffset", "storeSize", "topic", "queueId", "queueOffset", "tagsCode", "storeTimestamp",
)  # fmt: skip


class CopyTask(NamedTuple):
    """One Parquet file; pickles."""

    store: int
    files: ReadableFiles
    path: str

    def run(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of this file.

        Raises:
            PipelineError: it is not a Parquet file, or lacks columns.
        """
        try:
            data = self.files.read_all(self.path)
            assert data is not None
            source = pq.ParquetFile(pa.BufferReader(data))
            for batch in source.iter_batches(_BATCH_ROWS, columns=list(_COLUMNS)):
                yield self._rows(batch)
        except (pa.ArrowInvalid, KeyError) as error:
            raise PipelineError(f"cannot read {self.path}: {error}; index into another output") from None

    def _rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        queues = pc.binary_join_element_wise(batch["topic"], pc.cast(batch["queueId"], pa.string()), "/")
        times = pc.cast(batch["storeTimestamp"], pa.timestamp("ms", "UTC"), safe=False)
        return evidence(
            self.store,
            RowKind.COPY,
            position=batch["physicalOffset"],
            size=batch["storeSize"],
            queue=queues,
            number=batch["queueOffset"],
            code=batch["tagsCode"],
            time=pc.cast(times, pa.int64()),
        )
