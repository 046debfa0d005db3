"""The view index: one row per entry of the key index files; slots and unused places are not read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from rewindmq.broker.store.layout.index import FIRST_ENTRY
from rewindmq.pipeline.decode.message_columns import timestamps
from rewindmq.pipeline.index_files.reader import Entries, IndexReader
from rewindmq.pipeline.options import ReadOptions
from rewindmq.pipeline.pushdown.plan import all_indexes, open_index
from rewindmq.pipeline.views.reader import StorePiece, StoreReader, packed

if TYPE_CHECKING:
    import pyarrow as pa

_ENTRIES_AT_ONCE: Final = 100_000
_PART_ENTRIES: Final = 1_000_000


class IndexViewReader(StoreReader):
    """Reads rows of the stores' index files; the option ``index`` adds a folder's files for every store."""

    def __init__(self, options: ReadOptions, names: Sequence[str]) -> None:
        """
        Raises:
            PipelineError: a store or an index file cannot be read.
        """
        super().__init__(options, names)
        made = open_index(options)
        if made is not None:
            self.counted(made.files)
        self._indexes = [
            (number, index)
            for number, snapshot in enumerate(self.snapshots)
            for index in all_indexes(snapshot, options, made)
        ]

    def parts(self) -> Iterator[Sequence[StorePiece]]:
        pieces = (
            (StorePiece(store, number, start, min(start + _PART_ENTRIES, index.stop)), index.stop - start)
            for number, (store, index) in enumerate(self._indexes)
            for start in range(FIRST_ENTRY, index.stop, _PART_ENTRIES)
        )
        yield from packed(pieces, _PART_ENTRIES)

    def rows(self, piece: StorePiece) -> Iterator[pa.RecordBatch]:
        _, index = self._indexes[piece.source]
        for start in range(piece.start, piece.stop, _ENTRIES_AT_ONCE):
            entries = index.entries(start, min(start + _ENTRIES_AT_ONCE, piece.stop))
            yield self._batch(self.snapshots[piece.store].name, index, start, entries)

    def _batch(self, store: str, index: IndexReader, first: int, entries: Entries) -> pa.RecordBatch:
        import pyarrow as pa

        count = len(entries)
        key_hash, seconds = entries["key_hash"].astype(np.int32), entries["time_diff"].astype(np.int32)
        times = index.header.begin_timestamp + seconds.astype(np.int64) * 1_000
        columns = {
            "store": pa.repeat(pa.scalar(store, pa.string()), count),
            "file": pa.repeat(pa.scalar(index.name, pa.string()), count),
            "entry": pa.array(np.arange(first, first + count, dtype=np.int32)),
            "slot": pa.array(key_hash % np.int32(index.slots)),
            "keyHash": pa.array(key_hash),
            "physicalOffset": pa.array(entries["position"].astype(np.int64)),
            "timeDiff": pa.array(seconds),
            "storeTimestamp": timestamps(times),
            "previous": pa.array(entries["previous"].astype(np.int32)),
        }
        return pa.RecordBatch.from_arrays([columns[name] for name in self.names], self.names)
