"""Selects exactly the records of a block that match a ``Selection``."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rewindmq.pipeline.decode.message_columns import MessageColumns
from rewindmq.pipeline.decode.record_block import Bools, Int64s, RecordBlock
from rewindmq.pipeline.selection import Range, Selection


def chosen(
    block: RecordBlock, selection: Selection, columns_of: Callable[[RecordBlock], MessageColumns]
) -> RecordBlock:
    """Return the matching records; cheap conditions are checked first."""
    kept = _by_numbers(block, selection)
    if kept is not None:
        block = block.select(np.flatnonzero(kept))
    for name, values in (("topic", selection.topics), ("uniqueKey", selection.unique_keys)):
        if values is not None and len(block):
            block = block.select(np.flatnonzero(_is_in(columns_of(block).column(name), values)))
    for keys in selection.keys:
        if len(block):
            block = block.select(np.flatnonzero(_has_key(columns_of(block), keys)))
    return block


def _by_numbers(block: RecordBlock, selection: Selection) -> Bools | None:
    """Return the matches of the numeric conditions; None if there are none."""
    conditions = []
    if not selection.positions.is_all:
        conditions.append(_within(block.head["physical_offset"].astype(np.int64), selection.positions))
    if not selection.queue_offsets.is_all:
        conditions.append(_within(block.head["queue_offset"].astype(np.int64), selection.queue_offsets))
    if not selection.store_times.is_all:
        conditions.append(_within(block.store_timestamp, selection.store_times))
    if selection.queue_ids is not None:
        conditions.append(np.isin(block.head["queue_id"].astype(np.int64), list(selection.queue_ids)))
    return np.logical_and.reduce(conditions) if conditions else None


def _within(values: Int64s, bounds: Range) -> Bools:
    # Python's integers are unbounded; numpy's are not.
    everything = Range()
    if bounds.is_empty or bounds.low > everything.high or bounds.high < everything.low:
        return np.zeros(len(values), np.bool_)
    bounds = bounds.cut(everything.low, everything.high)
    within: Bools = (values >= bounds.low) & (values <= bounds.high)
    return within


def _is_in(column: pa.Array, values: frozenset[str]) -> Bools:
    found: Bools = pc.is_in(column, pa.array(sorted(values), pa.string())).to_numpy(zero_copy_only=False)
    return found


def _has_key(columns: MessageColumns, keys: frozenset[str]) -> Bools:
    """Return whether each record is indexed under one of these keys."""
    found = _is_in(columns.column("uniqueKey"), keys)
    lists = columns.column("keys")
    records = np.repeat(np.arange(len(lists)), np.diff(lists.offsets.to_numpy()))
    found[records[_is_in(lists.flatten(), keys)]] = True
    return found
