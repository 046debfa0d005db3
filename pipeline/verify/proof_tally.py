"""Checks compared rows of log and output, many rows at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rewindmq.pipeline.verify.judge import result_batch
from rewindmq.pipeline.verify.report import MAX_EXAMPLES, Tally

# Name of the rows that count the kept messages below the requested offsets.
RANKS: Final = "ranks"

_Bools = npt.NDArray[np.bool_]


class ProofTally:
    """Counts of the checks; pickles.

    Args:
        number: index of the store.
        offsets: requested offsets by queue, in order.
        log_begin: start of the log. Older messages are deleted from it, but a continued output may still have
            them.
    """

    def __init__(self, number: int, offsets: Mapping[tuple[str, int], Sequence[int]], log_begin: int) -> None:
        self._number = number
        self._log_begin = log_begin
        self._offsets = offsets

    def count(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Check one task's rows."""
        tally = Tally()
        ranks = {queue: np.zeros(len(offsets), np.int64) for queue, offsets in self._offsets.items()}
        for batch in batches:
            if batch.num_rows:
                _Rows(batch, self._number, self._log_begin, tally).run()
                self._count_ranks(batch, ranks)
        rows = tally.rows()
        told = [
            [*queue, offset, int(rank)]
            for queue, found in ranks.items()
            for offset, rank in zip(self._offsets[queue], found.tolist(), strict=True)
            if rank
        ]
        yield result_batch([*rows, (self._number, RANKS, 0, 0, [0], [json.dumps(told)])])

    def _count_ranks(
        self, batch: pa.RecordBatch, ranks: dict[tuple[str, int], npt.NDArray[np.int64]]
    ) -> None:
        kept = batch.filter(pc.is_valid(batch.column("outPosition")))
        topics, queue_ids = kept.column("topic").to_pylist(), kept.column("queueId").to_pylist()
        offsets = kept.column("queueOffset").to_pylist()
        for topic, queue_id, offset in zip(topics, queue_ids, offsets, strict=True):
            found = ranks.get((topic, queue_id))
            if found is not None and offset is not None:
                asked = self._offsets[topic, queue_id]
                found[np.searchsorted(asked, offset, side="right") :] += 1


class _Rows:
    def __init__(self, batch: pa.RecordBatch, number: int, log_begin: int, tally: Tally) -> None:
        self._batch = batch
        self._log_begin = log_begin
        self._number = number
        self._tally = tally

    def run(self) -> None:
        in_log, in_out = self._has("sourcePosition"), self._has("outPosition")
        is_fault = self._has("fault")
        self._faults(is_fault)
        in_out &= self._ints("outPosition") >= 0
        in_map = self._has("mapSource")
        must, may = self._flag("must"), self._flag("may")
        role = self._batch.column("role")
        missing = must & ~in_out
        kinds = {
            "survivor kept": self._is(role, "newest"),
            "tombstone kept": self._is(role, "tombstone"),
            "message kept": self._is(role, "other"),
        }
        for name, kind in kinds.items():
            self._add(name, must & kind, missing & kind, "is not in the output")
        extra = in_log & in_out & ~may
        superseded = self._is(role, "superseded")
        self._add("nothing superseded", in_out & in_log, extra & superseded, "has a newer message of its key")
        self._add("nothing expired", in_out & in_log, extra & ~superseded, "should not be in the output")
        copied = self._ints("copies") > 1
        is_gone = in_map & (self._ints("mapSource") < self._log_begin)
        invented = in_out & ((~in_log & ~is_gone) | copied)
        self._add("nothing invented", in_out, invented, "is not in the log, or is twice in the output")
        both = in_log & in_out
        same = pc.equal(self._batch.column("sourceDigest"), self._batch.column("outDigest"))
        self._add("bytes kept", both, both & ~_filled(same), "differs in the output")
        self._order(in_out)
        mapped = in_out | in_map
        misplaced = (
            (in_out != in_map)
            | (self._ints("mapPosition") != self._ints("outPosition"))
            | (in_log & (self._ints("mapSource") != self._ints("sourcePosition")))
        )
        self._add("offset map", mapped, mapped & misplaced, "is not at its place in the offset map")

    def _order(self, in_out: _Bools) -> None:
        follows = in_out & self._has("oldBefore") & self._has("newBefore")
        wrong = (self._ints("queueOffset") <= self._ints("oldBefore")) | (
            self._ints("newOffset") <= self._ints("newBefore")
        )
        self._add("order kept", in_out, follows & wrong, "follows a later message")

    def _faults(self, is_fault: _Bools) -> None:
        texts = self._batch.column("fault").filter(pa.array(is_fault)).to_pylist()
        examples = [(0, text) for text in texts[:MAX_EXAMPLES]]
        self._tally.add(self._number, "output files", len(is_fault), len(texts), examples)

    def _add(self, name: str, checked: _Bools, wrong: _Bools, words: str) -> None:
        examples = [
            (position, f"{topic}/{queue_id} queue offset {offset} {words}")
            for topic, queue_id, offset, position in self._places(np.flatnonzero(wrong)[:MAX_EXAMPLES])
        ]
        self._tally.add(self._number, name, int((checked | wrong).sum()), int(wrong.sum()), examples)

    def _places(self, rows: npt.NDArray[np.int64]) -> Iterator[tuple[str, int, Any, int]]:
        for row in rows.tolist():
            table: dict[str, Any] = self._batch.slice(row, 1).to_pylist()[0]
            offset = table["newOffset"] if table["queueOffset"] is None else table["queueOffset"]
            yield table["topic"], table["queueId"], offset, table["sourcePosition"] or 0

    def _has(self, name: str) -> _Bools:
        return _filled(pc.is_valid(self._batch.column(name)))

    def _flag(self, name: str) -> _Bools:
        return _filled(self._batch.column(name))

    def _is(self, column: pa.Array, value: str) -> _Bools:
        return _filled(pc.equal(column, value))

    def _ints(self, name: str) -> npt.NDArray[np.int64]:
        values: npt.NDArray[np.int64] = pc.fill_null(self._batch.column(name), -1).to_numpy()
        return values


def _filled(column: pa.Array) -> _Bools:
    values: _Bools = pc.fill_null(column, False).to_numpy(zero_copy_only=False)
    return values.copy()
