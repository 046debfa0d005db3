"""Compares evidence that is sorted by store, log position and kind, in one pass.

One position has few rows, so memory does not grow with the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rewindmq.broker.store.consume_queue.tags_code import SCHEDULE_TOPIC
from rewindmq.pipeline.verify.evidence import (
    EXPECTS_COPY,
    EXPECTS_INDEX_ENTRIES,
    EXPECTS_QUEUE_ENTRY,
    NO_TIME,
    RowKind,
    add_notes,
)
from rewindmq.pipeline.verify.queue_scan import is_light
from rewindmq.pipeline.verify.report import MAX_EXAMPLES, Tally

RESULT: Final = (
    "store int, name string, checked bigint, wrong bigint, ranks array<bigint>, examples array<string>"
)
_RESULT_SCHEMA: Final = pa.schema(
    [
        ("store", pa.int32()),
        ("name", pa.string()),
        ("checked", pa.int64()),
        ("wrong", pa.int64()),
        ("ranks", pa.list_(pa.int64())),
        ("examples", pa.list_(pa.string())),
    ]
)
# A tagsCode at or below this is an address in the ext files (docs/spec/store.md 4.2).
_EXT_ADDRESS: Final = -(2**31) - 1

_Bools = npt.NDArray[np.bool_]
_Int64s = npt.NDArray[np.int64]


def judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Compare one task's rows; yield the tally's rows as ``RESULT``."""
    tally = Tally()
    rest: pa.Table | None = None
    for batch in batches:
        table = pa.Table.from_batches([batch])
        table = table if rest is None else pa.concat_tables([rest, table])
        cut = _last_group(table)
        rest = table.slice(cut)
        _judge(table.slice(0, cut), tally)
    if rest is not None:
        _judge(rest, tally)
    yield result_batch(tally.rows())


def result_batch(rows: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    """Return the rows of a tally as an Arrow batch."""
    arrays = [
        pa.array([row[place] for row in rows], field.type) for place, field in enumerate(_RESULT_SCHEMA)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=_RESULT_SCHEMA)


def _ints(table: pa.Table, name: str) -> _Int64s:
    values: _Int64s = table.column(name).to_numpy().astype(np.int64)
    return values


def _last_group(table: pa.Table) -> int:
    """Return the index of the first row of the last position."""
    if not table.num_rows:
        return 0
    store, position = _ints(table, "store"), _ints(table, "position")
    same = (store == store[-1]) & (position == position[-1])
    other = np.flatnonzero(~same)
    return int(other[-1]) + 1 if len(other) else 0


def _judge(table: pa.Table, tally: Tally) -> None:
    if table.num_rows:
        kind = _ints(table, "kind")
        add_notes(tally, table.column("note").filter(pa.array(kind == RowKind.TALLY)).to_pylist())
        _Judge(table.combine_chunks(), kind, tally).run()


class _Judge:
    def __init__(self, table: pa.Table, kind: _Int64s, tally: Tally) -> None:
        self._table = table
        self._kind = kind
        self._tally = tally
        self._store = _ints(table, "store")
        self._position = _ints(table, "position")
        self._number = _ints(table, "number")
        rows = np.arange(len(kind))
        record = np.maximum.accumulate(np.where(kind == RowKind.RECORD, rows, -1))
        found = (
            (record >= 0) & (self._store[record] == self._store) & (self._position[record] == self._position)
        )
        # For each row, the row of the record at its position; -1 if there is none.
        self._record: _Int64s = np.where(found, record, -1)
        queues = table.column("queue").combine_chunks().dictionary_encode()
        if isinstance(queues, pa.ChunkedArray):
            queues = queues.combine_chunks()
        # For each row, the number of its queue's name.
        self._queue: _Int64s = queues.indices.fill_null(-1).to_numpy().astype(np.int64)
        self._names: list[str] = queues.dictionary.to_pylist()
        self._is_light = self._is_of(is_light)

    def run(self) -> None:
        for store in np.unique(self._store[self._kind != RowKind.TALLY]).tolist():
            mine = self._store == store
            self._queue_entries(store, np.flatnonzero(mine & (self._kind == RowKind.QUEUE_ENTRY)))
            self._records(store, np.flatnonzero(mine & (self._kind == RowKind.RECORD)))
            self._index_entries(store, np.flatnonzero(mine & (self._kind == RowKind.INDEX_ENTRY)))
            self._copies(store, np.flatnonzero(mine & (self._kind == RowKind.COPY)))

    def _is_of(self, is_wanted: Callable[[str], bool]) -> _Bools:
        """Return the rows whose queue name is wanted."""
        numbers = [number for number, name in enumerate(self._names) if is_wanted(name)]
        chosen: _Bools = np.isin(self._queue, numbers)
        return chosen

    def _add(self, store: int, name: str, rows: _Int64s, wrong: _Bools, words: str) -> None:
        """``words`` formats an example: ``{...}`` is a field of the row, ``{record_...}`` of its record."""
        shown = rows[wrong][:MAX_EXAMPLES]
        examples = [(int(self._position[row]), words.format(**self._fields(row))) for row in shown.tolist()]
        self._tally.add(store, name, len(rows), int(wrong.sum()), examples)

    def _fields(self, row: int) -> dict[str, Any]:
        fields: dict[str, Any] = self._table.slice(row, 1).to_pylist()[0]
        record = int(self._record[row])
        if record >= 0:
            there = self._table.slice(record, 1).to_pylist()[0]
            fields |= {f"record_{name}": value for name, value in there.items()}
        return fields

    def _queue_entries(self, store: int, entries: _Int64s) -> None:
        if not len(entries):
            return
        record = self._record[entries]
        self._add(
            store,
            "queue entry has a record",
            entries,
            record < 0,
            "{queue} entry {number} points to {position}, where no record begins",
        )
        entries, record = entries[record >= 0], record[record >= 0]
        size, code = _ints(self._table, "size"), _ints(self._table, "code")
        self._add(
            store,
            "queue entry size",
            entries,
            size[entries] != size[record],
            "{queue} entry {number} has size {size}, the record at {position} has {record_size}",
        )
        time = _ints(self._table, "time")
        timed = time[entries] != NO_TIME
        if timed.any():
            self._add(
                store,
                "time index",
                entries[timed],
                (time[entries] != time[record])[timed],
                "{queue} entry {number} has time {time}, the record at {position} has {record_time}",
            )
        own = ~self._is_light[entries]
        entries, record = entries[own], record[own]
        self._add(
            store,
            "queue entry place",
            entries,
            (self._queue[entries] != self._queue[record]) | (self._number[entries] != self._number[record]),
            "{queue} entry {number} points to {position}, the record of {record_queue} with queue offset"
            " {record_number}",
        )
        is_delayed = self._is_of(lambda name: name.startswith(f"{SCHEDULE_TOPIC}/"))[entries]
        wrong = (code[entries] != code[record]) & (code[entries] > _EXT_ADDRESS)
        for name, chosen in (("queue entry tagsCode", ~is_delayed), ("delivery time", is_delayed)):
            self._add(
                store,
                name,
                entries[chosen],
                wrong[chosen],
                "{queue} entry {number} has tagsCode {code}, the record at {position} has {record_code}",
            )

    def _records(self, store: int, records: _Int64s) -> None:
        expects = _ints(self._table, "expects")
        with_entry = np.unique(self._record[(self._kind == RowKind.QUEUE_ENTRY) & ~self._is_light])
        rows = records[expects[records] & EXPECTS_QUEUE_ENTRY != 0]
        self._add(
            store,
            "record has a queue entry",
            rows,
            ~np.isin(rows, with_entry),
            "record at {position} ({queue}, queue offset {number}) has no entry",
        )

    def _copies(self, store: int, copies: _Int64s) -> None:
        """Check that each record has one copy, with the fields of the evidence."""
        expects = _ints(self._table, "expects")
        is_expected = (self._kind == RowKind.RECORD) & (expects & EXPECTS_COPY != 0)
        rows = np.flatnonzero((self._store == store) & is_expected)
        if not len(copies) and not len(rows):
            return
        record = self._record[copies]
        wrong = record < 0
        for name in ("size", "number", "code", "time"):
            values = _ints(self._table, name)
            wrong |= values[copies] != values[record]
        wrong |= self._queue[copies] != self._queue[record]
        wrong[1:] |= (record[1:] >= 0) & (record[1:] == record[:-1])
        words = "row of {position} ({queue}, queue offset {number}) is a duplicate or differs from the record"
        self._add(store, "Parquet copy", copies, wrong, words)
        lacking = ~np.isin(rows, record)
        self._add(store, "Parquet copy", rows, lacking, "record at {position} ({queue}) has no row")

    def _index_entries(self, store: int, entries: _Int64s) -> None:
        expects = _ints(self._table, "expects")
        records = np.flatnonzero((self._store == store) & (self._kind == RowKind.RECORD))
        indexed = records[expects[records] & EXPECTS_INDEX_ENTRIES != 0]
        if not len(entries) and not len(indexed):
            return
        self._add(
            store,
            "index entry has a record",
            entries,
            self._record[entries] < 0,
            "{queue} entry {number} points to {position}, where no record begins",
        )
        entries = entries[self._record[entries] >= 0]
        keys, owner = self._hashes("hashes")
        others, _ = self._hashes("others")
        code = _ints(self._table, "code")
        found = self._record[entries] << 32 | code[entries]
        self._add(
            store,
            "index key",
            entries,
            ~np.isin(found, keys) & ~np.isin(found, others),
            "{queue} entry {number}: the record at {position} ({record_queue}) has no key with hash {code}",
        )
        wanted = np.isin(owner, indexed)
        lacking = wanted & ~np.isin(keys, found)
        rows = owner[wanted]
        self._add(
            store,
            "key has an index entry",
            rows,
            lacking[wanted],
            "record at {position} ({queue}, queue offset {number}): one of its keys has no entry",
        )

    def _hashes(self, name: str) -> tuple[_Int64s, _Int64s]:
        """Return the hashes of all records, each combined with its row in one number, and the rows."""
        lists = self._table.column(name).combine_chunks()
        counts = lists.value_lengths().fill_null(0).to_numpy().astype(np.int64)
        owner: _Int64s = np.repeat(np.arange(len(counts)), counts)
        return owner << 32 | lists.flatten().to_numpy().astype(np.int64), owner
