"""The view messages: one row per message; its reader accepts Spark's filters (``pushFilters``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import Filter

from rewindmq.broker.store.consume_queue.tags_code import DelayLevels
from rewindmq.pipeline.decode.bodies import inflated_runs
from rewindmq.pipeline.decode.damage import Damage
from rewindmq.pipeline.decode.message_columns import MessageColumns
from rewindmq.pipeline.decode.segment_reader import SegmentReader
from rewindmq.pipeline.pushdown.chosen import chosen
from rewindmq.pipeline.pushdown.filters import narrow
from rewindmq.pipeline.pushdown.plan import needed_ranges, open_index
from rewindmq.pipeline.snapshot.snapshot import StoreSnapshot
from rewindmq.pipeline.views.reader import StorePiece, StoreReader, packed

if TYPE_CHECKING:
    import pyarrow as pa

    from rewindmq.pipeline.decode.record_block import RecordBlock

# Several tasks share even a small log, but no task reads less than this.
_TASKS: Final = 8
_LEAST_BYTES: Final = 4 << 20


class LogRowReader(StoreReader):
    """Reads rows of the commit logs."""

    def parts(self) -> Iterator[Sequence[StorePiece]]:
        index = open_index(self.options)
        if index is not None:
            self.counted(index.files)
        needed = [
            needed_ranges(snapshot, self.options.selection, self.options, index)
            for snapshot in self.snapshots
        ]
        total = sum(stop - start for ranges in needed for start, stop in ranges)
        size = min(self.options.split_bytes, max(total // _TASKS, _LEAST_BYTES))
        for number, (snapshot, ranges) in enumerate(zip(self.snapshots, needed, strict=True)):
            yield from packed(log_pieces(number, snapshot, ranges, size), size)

    def rows(self, piece: StorePiece) -> Iterator[pa.RecordBatch]:
        snapshot = self.snapshots[piece.store]
        segment = snapshot.segments[piece.source]
        levels = DelayLevels(self.options.delay_levels)

        def columns_of(block: RecordBlock, bodies: pa.Array | None = None) -> MessageColumns:
            return MessageColumns(block, snapshot.name, segment.base, levels, bodies=bodies)

        reader = SegmentReader(snapshot.files, segment, _leave_to_damage_view)
        for block in reader.blocks(piece.start, piece.stop):
            kept = chosen(block, self.options.selection, columns_of)
            for first in range(0, len(kept), self.options.batch_records):
                # Columns built for the whole block are used again.
                is_whole = len(kept) <= self.options.batch_records
                records = kept if is_whole else kept.select(slice(first, first + self.options.batch_records))
                if not self.options.decompress or "body" not in self.names:
                    yield columns_of(records).batch(self.names)
                    continue
                stored = columns_of(records).column("body")
                for start, stop, bodies in inflated_runs(stored, records.sys_flag):
                    yield columns_of(records.select(slice(start, stop)), bodies).batch(self.names)


class PushingMessageReader(LogRowReader):
    """A ``LogRowReader`` that accepts filters from Spark, which 4.1 and later pass.

    Spark rejects such a reader while filter pushdown is off, so it is made only in the process that passes
    filters.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        """Use filters to skip parts of the log; Spark evaluates all of them again."""
        selection = narrow(self.options.selection, filters)
        self.options = self.options._replace(selection=selection)
        return filters


def log_pieces(
    store: int, snapshot: StoreSnapshot, ranges: Iterable[tuple[int, int]], size: int
) -> Iterator[tuple[StorePiece, int]]:
    """Yield ranges of the log as pieces of segments of at most ``size`` bytes, each with its bytes."""
    for start, stop in ranges:
        for number, segment in enumerate(snapshot.segments):
            low, high = max(start, segment.base), min(stop, segment.end)
            for begin in range(low, high, size):
                end = min(begin + size, high)
                yield StorePiece(store, number, begin, end), end - begin


def _leave_to_damage_view(_damage: Damage) -> None:
    pass
