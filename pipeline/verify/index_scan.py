"""Reads key index files for a verification: a row per entry, and checks within each file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rewindmq.broker.store.layout.index import (
    ENTRY_BYTES,
    FIRST_ENTRY,
    HEADER_BYTES,
    SLOT_BYTES,
)
from rewindmq.pipeline.files import ReadableFiles
from rewindmq.pipeline.index_files.format import ENTRIES, IndexHeader, read_header
from rewindmq.pipeline.verify.evidence import RowKind, evidence, tally_evidence
from rewindmq.pipeline.verify.report import MAX_EXAMPLES, Tally

_CHUNK_ENTRIES: Final = 200_000

_Int32s = npt.NDArray[np.int32]


class IndexTask(NamedTuple):
    """One index file; pickles. The task holds its slots and 8 bytes of each entry in memory.

    Attributes:
        name: name of the file in examples.
        slots: maxHashSlotNum.
        log_begin, log_end: of the snapshot.
    """

    store: int
    files: ReadableFiles
    path: str
    name: str
    slots: int
    log_begin: int
    log_end: int

    def run(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of this file."""
        header = read_header(self.files, self.path)
        count = header.index_count - FIRST_ENTRY
        tally = Tally()
        hashes, previous = np.empty(count, np.int32), np.empty(count, np.int32)
        first = last = None
        for start in range(0, count, _CHUNK_ENTRIES):
            entries = self._entries(start, min(_CHUNK_ENTRIES, count - start))
            hashes[start : start + len(entries)] = entries["key_hash"]
            previous[start : start + len(entries)] = entries["previous"]
            first = entries[0] if first is None else first
            last = entries[-1]
            yield self._rows(start, entries)
        self._check_header(tally, header, first, last)
        self._check_chains(tally, header, hashes, previous)
        yield tally_evidence(tally)

    def _entries(self, start: int, count: int) -> np.ndarray:
        at = HEADER_BYTES + self.slots * SLOT_BYTES + (FIRST_ENTRY + start) * ENTRY_BYTES
        return np.frombuffer(self.files.read(self.path, at, count * ENTRY_BYTES), ENTRIES)

    def _rows(self, start: int, entries: np.ndarray) -> pa.RecordBatch:
        position = entries["position"].astype(np.int64)
        kept = np.flatnonzero((position >= self.log_begin) & (position < self.log_end))
        return evidence(
            self.store,
            RowKind.INDEX_ENTRY,
            position=position[kept],
            queue=pa.array([self.name], pa.string()).take(pa.array(np.zeros(len(kept), np.int32))),
            number=(FIRST_ENTRY + start + kept).astype(np.int64),
            code=entries["key_hash"].astype(np.int64)[kept],
        )

    def _check_header(self, tally: Tally, header: IndexHeader, first: Any, last: Any) -> None:
        faults = []
        if first is not None and int(first["position"]) != header.begin_phy_offset:
            faults.append(
                f"beginPhyOffset is {header.begin_phy_offset}, the first entry's {first['position']}"
            )
        if last is not None and int(last["position"]) != header.end_phy_offset:
            faults.append(f"endPhyOffset is {header.end_phy_offset}, the last entry's {last['position']}")
        if header.end_timestamp < header.begin_timestamp:
            faults.append("endTimestamp is before beginTimestamp")
        examples = [(0, f"{self.name}: {fault}") for fault in faults]
        tally.add(self.store, "index file", 1, int(bool(faults)), examples)

    def _check_chains(self, tally: Tally, header: IndexHeader, hashes: _Int32s, previous: _Int32s) -> None:
        """Check that each entry names the previous entry of its slot, and each slot its newest entry."""
        slot_of = hashes.astype(np.int64) % self.slots
        order = np.argsort(slot_of, kind="stable")
        sorted_slots = slot_of[order]
        is_first = np.ones(len(order), np.bool_)
        is_first[1:] = sorted_slots[1:] != sorted_slots[:-1]
        expected = np.zeros(len(order), np.int64)
        expected[1:] = np.where(is_first[1:], 0, order[:-1] + FIRST_ENTRY)
        wrong = np.sort(order[previous[order] != expected])
        examples = [
            (number, f"{self.name} entry {number + FIRST_ENTRY}: previous is {previous[number]}")
            for number in wrong[:MAX_EXAMPLES].tolist()
        ]
        tally.add(self.store, "index chain", len(order), len(wrong), examples)
        self._check_slots(tally, header, sorted_slots[is_first], order, is_first)

    def _check_slots(self, tally: Tally, header: IndexHeader, used: Any, order: Any, is_first: Any) -> None:
        data = self.files.read(self.path, HEADER_BYTES, self.slots * SLOT_BYTES)
        slots = np.frombuffer(data, ">i4")
        newest = np.zeros(self.slots, np.int32)
        if len(order):
            is_last = np.append(is_first[1:], True)
            newest[used] = order[is_last] + FIRST_ENTRY
        wrong = np.flatnonzero(slots != newest)
        examples = [
            (slot, f"{self.name} slot {slot}: names entry {slots[slot]}, not {newest[slot]}")
            for slot in wrong[:MAX_EXAMPLES].tolist()
        ]
        if header.hash_slot_count != len(used):
            text = f"{self.name}: hashSlotCount is {header.hash_slot_count}, {len(used)} slots are used"
            examples.insert(0, (-1, text))
        bad = len(wrong) + int(header.hash_slot_count != len(used))
        tally.add(self.store, "index chain", len(used) + bad, bad, examples)
