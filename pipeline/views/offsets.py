"""The view offsets: one row per group and queue, with the group's offset and the queue's bounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rewindmq.pipeline.schema import OFFSETS
from rewindmq.pipeline.snapshot.queue_view import QueueView
from rewindmq.pipeline.snapshot.snapshot import StoreSnapshot
from rewindmq.pipeline.views.reader import StorePiece, StoreReader

if TYPE_CHECKING:
    import pyarrow as pa

_SEPARATOR = "@"


class OffsetsReader(StoreReader):
    """Reads rows of ``config/consumerOffset.json``; each store is one part."""

    def parts(self) -> Iterator[Sequence[StorePiece]]:
        return ([StorePiece(number, 0, 0, 0)] for number in range(len(self.snapshots)))

    def rows(self, piece: StorePiece) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        from pyspark.sql.pandas.types import to_arrow_type
        from pyspark.sql.types import IntegerType, LongType, StringType

        kinds = {"string": StringType(), "int": IntegerType(), "bigint": LongType()}
        found = list(_rows(self.snapshots[piece.store]))
        columns = [
            pa.array([row[name] for row in found], to_arrow_type(kinds[OFFSETS[name].type]))
            for name in self.names
        ]
        yield pa.RecordBatch.from_arrays(columns, self.names)


def _rows(snapshot: StoreSnapshot) -> Iterator[Mapping[str, Any]]:
    """Yield the rows; ``group`` is null if a key is not ``topic@group`` (docs/spec/store.md 8.4)."""
    bounds: dict[tuple[str, int], tuple[int, int] | None] = {}
    for key, queues in snapshot.config("consumerOffset.json").get("offsetTable", {}).items():
        pieces = key.split(_SEPARATOR)
        topic, group = pieces if len(pieces) == 2 else (key, None)
        for queue_id, offset in sorted((int(number), int(value)) for number, value in queues.items()):
            if (topic, queue_id) not in bounds:
                bounds[topic, queue_id] = _bounds(snapshot, topic, queue_id)
            known = bounds[topic, queue_id]
            least, most = known or (None, None)
            yield {
                "store": snapshot.name,
                "group": group,
                "topic": topic,
                "queueId": queue_id,
                "offset": offset,
                "minOffset": least,
                "maxOffset": most,
                "lag": None if most is None else most - offset,
            }


def _bounds(snapshot: StoreSnapshot, topic: str, queue_id: int) -> tuple[int, int] | None:
    queue = snapshot.queue(topic, queue_id)
    if not queue.files:
        return None
    view = QueueView(snapshot, queue)
    return view.min_offset, view.max_offset
