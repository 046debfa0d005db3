"""Packs ConsumeQueue entries for the shuffle from the log to the queues' tasks.

A piece is a run of entries of one queue with consecutive queue offsets.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

# The fields of a message that has an entry. Times are ms.
QUEUE_ENTRY_COLUMNS: Final = (
    "topic", "queueId", "queueOffset", "physicalOffset", "size", "tagsCode", "storeTimestampMs",
)  # fmt: skip
# physicalOffset and queueOffset are those of the piece's first entry.
PIECES: Final = (
    "topic string, queueId int, physicalOffset bigint, queueOffset bigint, entries binary, times binary"
)
PIECE_SCHEMA: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("queueId", pa.int32()),
        ("physicalOffset", pa.int64()),
        ("queueOffset", pa.int64()),
        ("entries", pa.binary()),
        ("times", pa.binary()),
    ]
)
QUEUE_ENTRY: Final = np.dtype([("position", ">i8"), ("size", ">i4"), ("tags_code", ">i8")])
TIME: Final = np.dtype(">i8")
_INT32_MAX: Final = 0x7FFF_FFFF


def pack(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the entries of one batch, in any order, as pieces: by queue, then by log position."""
    topics = batch.column("topic").dictionary_encode()
    codes = topics.indices.to_numpy()
    queue_ids, positions = _numbers(batch, "queueId"), _numbers(batch, "physicalOffset")
    order = np.lexsort((positions, queue_ids, codes))
    codes, queue_ids, positions = codes[order], queue_ids[order], positions[order]
    offsets = _numbers(batch, "queueOffset")[order]
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = (
        (codes[1:] != codes[:-1]) | (queue_ids[1:] != queue_ids[:-1]) | (offsets[1:] != offsets[:-1] + 1)
    )
    first = np.flatnonzero(is_first)
    entries = np.empty(len(order), QUEUE_ENTRY)
    entries["position"] = positions
    entries["size"] = _numbers(batch, "size")[order]
    entries["tags_code"] = _numbers(batch, "tagsCode")[order]
    times = _numbers(batch, "storeTimestampMs")[order].astype(TIME)
    bounds = np.append(first, len(order))
    return pa.RecordBatch.from_arrays(
        [
            topics.dictionary.take(pa.array(codes[first])),
            pa.array(queue_ids[first].astype(np.int32)),
            pa.array(positions[first]),
            pa.array(offsets[first]),
            _cut(entries.tobytes(), bounds * QUEUE_ENTRY.itemsize),
            _cut(times.tobytes(), bounds * TIME.itemsize),
        ],
        schema=PIECE_SCHEMA,
    )


def _numbers(batch: pa.RecordBatch, name: str) -> npt.NDArray[np.int64]:
    numbers: npt.NDArray[np.int64] = batch.column(name).to_numpy().astype(np.int64)
    return numbers


def _cut(data: bytes, bounds: npt.NDArray[Any]) -> pa.Array:
    """Cut ``data`` at ``bounds`` without copying."""
    assert int(bounds[-1]) == len(data) <= _INT32_MAX
    places = pa.py_buffer(bounds.astype(np.int32))
    return pa.Array.from_buffers(pa.binary(), len(bounds) - 1, [None, places, pa.py_buffer(data)])
