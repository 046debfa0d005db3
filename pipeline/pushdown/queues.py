"""Finds the parts of a log with messages of some queues, through their consume queues."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np

from rewindmq.pipeline.decode.damage import Damage
from rewindmq.pipeline.decode.record_block import Int64s
from rewindmq.pipeline.decode.segment_reader import SegmentReader
from rewindmq.pipeline.pushdown.ranges import Ranges, outside, union
from rewindmq.pipeline.selection import Range, Selection
from rewindmq.pipeline.snapshot.queue_view import QueueView
from rewindmq.pipeline.snapshot.snapshot import CQ_ENTRY_BYTES, PRE_BLANK_SIZE, StoreSnapshot

# Messages closer together than this are read at once.
GAP_BYTES: Final = 32 << 10
ENTRY: Final = np.dtype([("position", ">i8"), ("size", ">i4"), ("tags_code", ">i8")])
_ENTRIES_AT_ONCE: Final = 100_000


class _Coverage(NamedTuple):
    """The part of the log that the consume queues cover; a record outside may belong to any queue."""

    start: int
    stop: int


def of_queues(
    snapshot: StoreSnapshot, selection: Selection, start: int, stop: int, source: StoreSnapshot
) -> Ranges | None:
    """Return the parts of [start, stop) that may hold messages of these topics, queues and offsets.

    Args:
        selection: must name topics.
        source: store whose consume queues are used: ``snapshot``, or the same with the root of an index.

    Returns:
        None if these consume queues cannot answer.
    """
    assert selection.topics is not None
    views = {(queue.topic, queue.queue_id): QueueView(source, queue) for queue in source.queues()}
    coverage = _coverage(views.values())
    if coverage is None:
        return None
    chosen = []
    for topic in selection.topics:
        queue_ids = [queue_id for name, queue_id in views if name == topic]
        wanted = queue_ids if selection.queue_ids is None else selection.queue_ids
        # The log may have messages of a topic or queue whose consume queue was deleted.
        if not queue_ids or not set(wanted) <= set(queue_ids):
            return None
        # View the queue again: entries that a live broker has added since may be part of the coverage.
        chosen += [QueueView(source, source.queue(topic, queue_id)) for queue_id in wanted]
    if source is not snapshot and not all(_belongs(snapshot, view) for view in chosen):
        return None
    found = outside([coverage], start, stop)
    for view in chosen:
        first, last = _wanted_entries(snapshot, view, selection.queue_offsets)
        first, last = _cut(view, first, last, start, stop)
        found += _places(source, view, first, last)
    return union(found, GAP_BYTES)


def _coverage(views: Iterable[QueueView]) -> _Coverage | None:
    """Return the range from the first to the last message of any queue; entries follow the log's order."""
    kept = [view for view in views if view.min_offset < view.max_offset]
    first = [entry[0] for view in kept if (entry := view.entry(view.min_offset))]
    last = [entry[0] + entry[1] for view in kept if (entry := view.entry(view.max_offset - 1))]
    return _Coverage(min(first), max(last)) if first and last else None


def _wanted_entries(snapshot: StoreSnapshot, view: QueueView, offsets: Range) -> tuple[int, int]:
    """Return the first entry to look at, and the one past the last."""
    first, last = view.min_offset, view.max_offset
    if offsets.is_all or not _agrees(snapshot, view, first) or not _agrees(snapshot, view, last - 1):
        return first, last
    return max(first, offsets.low), min(last, offsets.high + 1)


def _belongs(snapshot: StoreSnapshot, view: QueueView) -> bool:
    """Whether a queue built outside the store belongs to this log."""
    if view.min_offset == view.max_offset:
        return True
    return _agrees(snapshot, view, view.min_offset) and _agrees(snapshot, view, view.max_offset - 1)


def _agrees(snapshot: StoreSnapshot, view: QueueView, index: int) -> bool:
    """Whether the record of an entry states the same queue offset as the entry, and its queue id and size.

    After a gap a broker renumbers entries (docs/spec/store.md 4.6).
    """
    entry = view.entry(index)
    segment = None if entry is None else snapshot.segment_of(entry[0])
    if entry is None or segment is None:
        return False
    record = SegmentReader(snapshot.files, segment, _ignore).record_at(entry[0])
    if record is None:
        return False
    head = record.head[0]
    return (head["queue_offset"], head["queue_id"], head["total_size"]) == (index, view.queue_id, entry[1])


def _ignore(_damage: Damage) -> None:
    pass


def _cut(view: QueueView, first: int, last: int, start: int, stop: int) -> tuple[int, int]:
    """Return the entries of [first, last) whose records begin in [start, stop)."""
    return _bisect(view, first, last, start), _bisect(view, first, last, stop)


def _bisect(view: QueueView, low: int, high: int, position: int) -> int:
    """Return the first entry of [low, high) whose record begins at ``position`` or later."""
    while low < high:
        middle = (low + high) // 2
        entry = view.entry(middle)
        if entry is not None and entry[0] < position:
            low = middle + 1
        else:
            high = middle
    return low


def _places(snapshot: StoreSnapshot, view: QueueView, first: int, last: int) -> Ranges:
    """Return the starts of the records of the entries [first, last)."""
    if first >= last:
        return []
    begin, end = view.entry(first), view.entry(last - 1)
    if begin is not None and end is not None and end[0] - begin[0] <= GAP_BYTES * (last - first):
        # The records are close together on average: reading the entries would save next to nothing.
        return [(begin[0], end[0] + 1)]
    found: Ranges = []
    for positions in entry_positions(snapshot, view, first, last):
        breaks = np.flatnonzero(np.diff(positions) > GAP_BYTES) + 1
        starts = positions[np.concatenate(([0], breaks))]
        stops = positions[np.concatenate((breaks, [len(positions)])) - 1] + 1
        found += zip(starts.tolist(), stops.tolist(), strict=True)
    return found


def entry_positions(snapshot: StoreSnapshot, view: QueueView, first: int, last: int) -> Iterator[Int64s]:
    """Yield the log positions of the entries [first, last), many at a time."""
    for file in view.files.files:
        base = file.base // CQ_ENTRY_BYTES
        begin, end = max(first, base), min(last, base + file.size // CQ_ENTRY_BYTES)
        for low in range(begin, end, _ENTRIES_AT_ONCE):
            count = min(_ENTRIES_AT_ONCE, end - low)
            data = snapshot.files.read(file.path, (low - base) * CQ_ENTRY_BYTES, count * CQ_ENTRY_BYTES)
            entries = np.frombuffer(data, ENTRY)
            positions = entries["position"][entries["size"] != PRE_BLANK_SIZE].astype(np.int64)
            if len(positions):
                yield positions
