"""Base class of the readers of timer messages: those of the timer queue that wait."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from rewindmq.broker.store.consume_queue.tags_code import DelayLevels
from rewindmq.pipeline.counters import CountingFiles
from rewindmq.pipeline.decode.damage import Damage
from rewindmq.pipeline.decode.record_block import Int64s
from rewindmq.pipeline.decode.segment_reader import SegmentReader
from rewindmq.pipeline.errors import PipelineError
from rewindmq.pipeline.files import open_files
from rewindmq.pipeline.options import ReadOptions
from rewindmq.pipeline.pushdown.queues import GAP_BYTES, entry_positions
from rewindmq.pipeline.snapshot.queue_view import QueueView
from rewindmq.pipeline.snapshot.snapshot import StoreSnapshot
from rewindmq.pipeline.snapshot.timer_files import read_timer_files
from rewindmq.pipeline.views.messages import log_pieces
from rewindmq.pipeline.views.reader import StorePiece, StoreReader, error_line
from rewindmq.protocol.message.properties import TIMER_OUT_MS
from rewindmq.protocol.names import TIMER_TOPIC

if TYPE_CHECKING:
    import pyarrow as pa

    from rewindmq.pipeline.decode.message_columns import MessageColumns

# More than any segment: ranges are only cut at the segments' ends.
_WHOLE: Final = 1 << 62
# As many digits as a broker accepts.
_NUMBER: Final = r"^[0-9]{1,17}$"


class OpenTimers(NamedTuple):
    """The timer messages of one store that may wait.

    Attributes:
        positions: of their records in the commit log, ascending.
        unread: those of ``positions`` that are in no slot yet.
        deletes: those of ``positions`` that may delete others.
    """

    positions: Int64s
    unread: Int64s
    deletes: Int64s


class TimerRecordReader(StoreReader):
    """Reads the timer messages that a broker that starts on the files would deliver; each store is one part.

    The log positions of a store's waiting messages are in memory, 8 bytes each.
    """

    def __init__(self, options: ReadOptions, names: Sequence[str]) -> None:
        """
        Raises:
            PipelineError: a store cannot be read.
        """
        opened = [open_files(location) for location in options.locations]
        counting = [CountingFiles(files) for files, _ in opened]
        try:
            # Before the snapshots, whose logs then have what these files count as delivered.
            self._timer_files = [
                read_timer_files(files, root) for files, (_, root) in zip(counting, opened, strict=True)
            ]
        except OSError as error:
            raise PipelineError(error_line(error)) from None
        super().__init__(options, names)
        for files in counting:
            self.counted(files)

    def parts(self) -> Iterator[Sequence[StorePiece]]:
        return ([StorePiece(number, 0, 0, 0)] for number in range(len(self.snapshots)))

    @abstractmethod
    def rows(self, piece: StorePiece) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a store."""

    def open_timers(self, store: int) -> OpenTimers:
        """Return the messages of a store that may wait; ``columns_of`` leaves out those that do not."""
        snapshot = self.snapshots[store]
        units = self._timer_files[store].units(snapshot)
        unread = np.setdiff1d(queue_positions(snapshot, TIMER_TOPIC, 0, units.next_offset), units.positions)
        return OpenTimers(np.union1d(units.positions, unread), unread, np.union1d(units.deletes, unread))

    def columns_of(
        self, store: int, timers: OpenTimers, positions: Int64s
    ) -> Iterator[tuple[MessageColumns, Int64s]]:
        """Yield the records at ``positions`` that wait, each block with their TIMER_OUT_MS."""
        for columns in self.records_at(store, positions):
            block = columns.block
            out_ms = whole_numbers(columns.properties.column(TIMER_OUT_MS))
            is_unread = np.isin(block.base + block.at, timers.unread)
            offsets = block.head["queue_offset"].astype(np.int64)
            is_delivered = is_unread & self._timer_files[store].is_delivered(offsets, out_ms)
            # Another message is there if the files belong to another log.
            is_timer = columns.column("topic").to_numpy(zero_copy_only=False) == TIMER_TOPIC
            kept = np.flatnonzero(is_timer & (out_ms >= 0) & ~is_delivered)
            if len(kept):
                yield self._columns(store, columns, kept), out_ms[kept]

    def _columns(self, store: int, columns: MessageColumns, kept: Int64s) -> MessageColumns:
        from rewindmq.pipeline.decode.message_columns import MessageColumns

        block = columns.block.select(kept)
        return MessageColumns(block, columns.store, columns.segment, columns.levels)

    def records_at(self, store: int, positions: Int64s) -> Iterator[MessageColumns]:
        """Yield the records at these log positions, in order; leave out what is no intact record."""
        from rewindmq.pipeline.decode.message_columns import MessageColumns

        snapshot = self.snapshots[store]
        levels = DelayLevels(self.options.delay_levels)
        kept = positions[(positions >= snapshot.begin) & (positions < snapshot.end)]
        for piece, _ in log_pieces(store, snapshot, _close_ranges(kept), _WHOLE):
            segment = snapshot.segments[piece.source]
            reader = SegmentReader(snapshot.files, segment, _leave_to_damage_view)
            for block in reader.blocks(piece.start, piece.stop):
                found = np.flatnonzero(np.isin(block.base + block.at, kept))
                for start in range(0, len(found), self.options.batch_records):
                    chosen = block.select(found[start : start + self.options.batch_records])
                    yield MessageColumns(chosen, snapshot.name, segment.base, levels)


def queue_positions(snapshot: StoreSnapshot, topic: str, queue_id: int, first: int) -> Int64s:
    """Return the log positions of a queue's messages from an offset on, through its consume queue."""
    view = QueueView(snapshot, snapshot.queue(topic, queue_id))
    start = max(first, view.min_offset)
    found = [np.empty(0, np.int64)]
    if start < view.max_offset:
        found += entry_positions(snapshot, view, start, view.max_offset)
    return np.unique(np.concatenate(found))


def whole_numbers(texts: pa.Array) -> Int64s:
    """Return texts of up to 17 digits as numbers; -1 for others and null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    is_number = pc.fill_null(pc.match_substring_regex(texts, _NUMBER), False)
    numbers = pc.if_else(is_number, texts, pa.scalar("-1")).cast(pa.int64())
    values: Int64s = numbers.to_numpy(zero_copy_only=False)
    return values


def _close_ranges(positions: Int64s) -> Iterator[tuple[int, int]]:
    """Yield ranges that hold these ascending positions, without the larger gaps between them."""
    if not len(positions):
        return
    breaks = np.flatnonzero(np.diff(positions) > GAP_BYTES) + 1
    starts = positions[np.concatenate(([0], breaks))]
    stops = positions[np.concatenate((breaks, [len(positions)])) - 1] + 1
    yield from zip(starts.tolist(), stops.tolist(), strict=True)


def _leave_to_damage_view(_damage: Damage) -> None:
    pass
