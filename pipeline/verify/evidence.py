"""Evidence: rows that are compared, one for each record, ConsumeQueue entry and index entry."""

from __future__ import annotations

import json
from collections.abc import Iterable
from enum import IntEnum
from typing import Any, Final

import numpy as np
import pyarrow as pa

from rewindmq.pipeline.verify.report import Tally


class RowKind(IntEnum):
    """Kinds of rows; at one log position, records sort first."""

    RECORD = 0
    QUEUE_ENTRY = 1
    INDEX_ENTRY = 2
    # A row of a Parquet copy.
    COPY = 3
    # ``note`` holds the rows of a tally.
    TALLY = 4


# "queue" is "topic/queueId", or an index file's name. "number" is the queue offset, or an entry's number.
# "code" is the tagsCode, or an entry's hash. "time" is the store time, -1 if unknown. "expects" holds bits of
# EXPECTS_*. "hashes" are those of a record's keys; "others" are further hashes that an entry may have.
SCHEMA: Final = (
    "store int, position bigint, kind int, size int, queue string, number bigint, code bigint, time bigint,"
    " expects int, hashes array<bigint>, others array<bigint>, note string"
)
ARROW_SCHEMA: Final = pa.schema(
    [
        ("store", pa.int32()),
        ("position", pa.int64()),
        ("kind", pa.int32()),
        ("size", pa.int32()),
        ("queue", pa.string()),
        ("number", pa.int64()),
        ("code", pa.int64()),
        ("time", pa.int64()),
        ("expects", pa.int32()),
        ("hashes", pa.list_(pa.int64())),
        ("others", pa.list_(pa.int64())),
        ("note", pa.string()),
    ]
)
EXPECTS_QUEUE_ENTRY: Final = 1
EXPECTS_INDEX_ENTRIES: Final = 2
EXPECTS_COPY: Final = 4
NO_TIME: Final = -1


def evidence(store: int, kind: RowKind, **columns: Any) -> pa.RecordBatch:
    """Return rows of one kind; columns not given are 0 or null."""
    count = len(columns["position"])
    zeros = {"size": np.int32, "number": np.int64, "code": np.int64, "time": np.int64, "expects": np.int32}
    filled = {name: np.zeros(count, kind_of) for name, kind_of in zeros.items()}
    rows = {
        "store": np.full(count, store, np.int32),
        "kind": np.full(count, int(kind), np.int32),
        "queue": pa.nulls(count, pa.string()),
        "hashes": pa.nulls(count, pa.list_(pa.int64())),
        "others": pa.nulls(count, pa.list_(pa.int64())),
        "note": pa.nulls(count, pa.string()),
        **filled,
        **columns,
    }
    arrays = []
    for field in ARROW_SCHEMA:
        value = rows[field.name]
        arrays.append(value if isinstance(value, pa.Array) else pa.array(value, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=ARROW_SCHEMA)


def tally_evidence(tally: Tally) -> pa.RecordBatch:
    """Return the counts of a task's own checks as rows of kind TALLY."""
    notes = [json.dumps(row) for row in tally.rows()]
    return evidence(0, RowKind.TALLY, position=np.full(len(notes), -1), note=pa.array(notes, pa.string()))


def add_notes(tally: Tally, notes: Iterable[str]) -> None:
    """Add the counts that other tasks sent as rows of kind TALLY."""
    tally.add_rows(json.loads(note) for note in notes)
