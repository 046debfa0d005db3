"""The view consumequeue: one row per ConsumeQueue entry within the snapshot of the log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from rewindmq.pipeline.options import ReadOptions
from rewindmq.pipeline.pushdown.queues import ENTRY
from rewindmq.pipeline.snapshot.snapshot import CQ_ENTRY_BYTES, PRE_BLANK_SIZE
from rewindmq.pipeline.views.reader import StorePiece, StoreReader, packed

if TYPE_CHECKING:
    import pyarrow as pa

_BYTES_AT_ONCE: Final = 100_000 * CQ_ENTRY_BYTES
_PART_BYTES: Final = 16 << 20


class ConsumeQueueReader(StoreReader):
    """Reads rows of the consume queues.

    Filler before a queue's first entry, and bytes after its last, are not entries (docs/spec/store.md 4.5).
    """

    def __init__(self, options: ReadOptions, names: Sequence[str]) -> None:
        """
        Raises:
            PipelineError: a store cannot be read.
        """
        super().__init__(options, names)
        self._queue_files = [
            (number, queue.topic, queue.queue_id, file)
            for number, snapshot in enumerate(self.snapshots)
            for queue in snapshot.queues()
            for file in queue.files
        ]

    def parts(self) -> Iterator[Sequence[StorePiece]]:
        pieces = (
            (StorePiece(store, number, 0, file.size), file.size)
            for number, (store, _, _, file) in enumerate(self._queue_files)
        )
        yield from packed(pieces, _PART_BYTES)

    def rows(self, piece: StorePiece) -> Iterator[pa.RecordBatch]:
        snapshot = self.snapshots[piece.store]
        _, topic, queue_id, file = self._queue_files[piece.source]
        for start in range(piece.start, piece.stop, _BYTES_AT_ONCE):
            length = min(_BYTES_AT_ONCE, piece.stop - start)
            data = snapshot.files.read(file.path, start, length)
            entries = np.frombuffer(data[: len(data) // CQ_ENTRY_BYTES * CQ_ENTRY_BYTES], ENTRY)
            valid = (entries["position"] >= 0) & (entries["size"] > 0)
            is_filler = entries["size"] == PRE_BLANK_SIZE
            # A live broker writes entries beyond the end of the snapshot.
            valid &= is_filler | (entries["position"].astype(np.int64) + entries["size"] <= snapshot.end)
            count = len(valid) if valid.all() else int(np.argmin(valid))
            kept = np.flatnonzero(~is_filler[:count])
            first = (file.base + start) // CQ_ENTRY_BYTES
            if len(kept):
                yield self._batch(snapshot.name, topic, queue_id, first + kept, entries[kept])
            if count < len(valid):
                return

    def _batch(
        self, store: str, topic: str, queue_id: int, offsets: np.ndarray, entries: np.ndarray
    ) -> pa.RecordBatch:
        import pyarrow as pa

        count = len(entries)
        columns = {
            "store": pa.repeat(pa.scalar(store, pa.string()), count),
            "topic": pa.repeat(pa.scalar(topic, pa.string()), count),
            "queueId": pa.repeat(pa.scalar(queue_id, pa.int32()), count),
            "queueOffset": pa.array(offsets.astype(np.int64)),
            "physicalOffset": pa.array(entries["position"].astype(np.int64)),
            "size": pa.array(entries["size"].astype(np.int32)),
            "tagsCode": pa.array(entries["tags_code"].astype(np.int64)),
        }
        return pa.RecordBatch.from_arrays([columns[name] for name in self.names], self.names)
