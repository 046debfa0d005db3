"""Reads consume queues for a verification: a row per entry, and checks within each file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from rewindmq.broker.store.layout.time_index import TIME_BYTES
from rewindmq.pipeline.files import ReadableFiles
from rewindmq.pipeline.snapshot.snapshot import CQ_ENTRY_BYTES, PRE_BLANK_SIZE, PositionedFile
from rewindmq.pipeline.verify.evidence import NO_TIME, RowKind, evidence, tally_evidence
from rewindmq.pipeline.verify.report import MAX_EXAMPLES, Tally

ENTRY: Final = np.dtype([("position", ">i8"), ("size", ">i4"), ("code", ">i8")])
CHUNK_ENTRIES: Final = 300_000
_LIGHT_QUEUE: Final = "%LMQ%"


class QueueTask(NamedTuple):
    """Some entries of one consume queue file; pickles.

    Attributes:
        label: topic/queueId.
        first: index within the file of the first entry to check.
        before: the file with the entry before; None if it is in this file.
        is_last: whether no later file of the queue has entries.
        log_begin, log_end: of the snapshot.
        times: path of the time index's file for this file; "" if there is none.
    """

    store: int
    files: ReadableFiles
    label: str
    file: PositionedFile
    first: int
    before: PositionedFile | None
    is_last: bool
    log_begin: int
    log_end: int
    times: str = ""

    def run(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of these entries."""
        tally = Tally()
        entries = self._read(self.file, self.first, CHUNK_ENTRIES)
        number = self.file.base // CQ_ENTRY_BYTES + self.first + np.arange(len(entries))
        position, size = entries["position"].astype(np.int64), entries["size"].astype(np.int32)
        is_entry = (position >= 0) & (size > 0)
        self._check_holes(tally, is_entry, number)
        message = is_entry & (size != PRE_BLANK_SIZE)
        self._check_order(tally, position[message], number[message])
        beyond = message & (position + size > self.log_end)
        examples = [
            (int(position[at]), f"{self.label} entry {number[at]} points to {position[at]}")
            for at in np.flatnonzero(beyond)[:MAX_EXAMPLES]
        ]
        tally.add(self.store, "queue entry within the log", int(message.sum()), int(beyond.sum()), examples)
        kept = message & ~beyond & (position >= self.log_begin)
        yield evidence(
            self.store,
            RowKind.QUEUE_ENTRY,
            position=position[kept],
            size=size[kept],
            queue=pa.array([self.label], pa.string()).take(pa.array(np.zeros(int(kept.sum()), np.int32))),
            number=number[kept],
            code=entries["code"].astype(np.int64)[kept],
            time=self._times(len(entries))[kept],
        )
        yield tally_evidence(tally)

    def _read(self, file: PositionedFile, first: int, count: int) -> np.ndarray:
        data = self.files.read(file.path, first * CQ_ENTRY_BYTES, count * CQ_ENTRY_BYTES)
        return np.frombuffer(data[: len(data) - len(data) % CQ_ENTRY_BYTES], ENTRY)

    def _times(self, count: int) -> np.ndarray:
        """Return store times from the time index; ``NO_TIME`` without one."""
        times = np.full(count, NO_TIME, np.int64)
        if self.times:
            data = self.files.read(self.times, self.first * TIME_BYTES, count * TIME_BYTES)
            told = np.frombuffer(data[: len(data) // TIME_BYTES * TIME_BYTES], ">i8")
            times[:] = 0
            times[: len(told)] = told
        return times

    def _check_holes(self, tally: Tally, is_entry: np.ndarray, number: np.ndarray) -> None:
        used = int(np.flatnonzero(is_entry)[-1]) + 1 if is_entry.any() else 0
        end = used if self.is_last else len(is_entry)
        missing = np.flatnonzero(~is_entry[:end])
        examples = [
            (int(number[at]), f"{self.label} entry {number[at]} is empty") for at in missing[:MAX_EXAMPLES]
        ]
        tally.add(self.store, "queue without holes", end, len(missing), examples)

    def _check_order(self, tally: Tally, position: np.ndarray, number: np.ndarray) -> None:
        before = self._position_before()
        if before is not None and len(position):
            position, number = np.append(before, position), np.append(number[0] - 1, number)
        wrong = np.flatnonzero(np.diff(position) <= 0) + 1
        examples = [
            (
                int(number[at]),
                f"{self.label} entry {number[at]}: position {position[at]} follows {position[at - 1]}",
            )
            for at in wrong[:MAX_EXAMPLES]
        ]
        tally.add(self.store, "queue entry order", len(position), len(wrong), examples)

    def _position_before(self) -> int | None:
        if self.first:
            entry = self._read(self.file, self.first - 1, 1)
        elif self.before is not None:
            entry = self._read(self.before, self.before.size // CQ_ENTRY_BYTES - 1, 1)
        else:
            return None
        is_message = len(entry) and 0 < entry["size"][0] != PRE_BLANK_SIZE
        return int(entry["position"][0]) if is_message else None


def is_light(queue: str) -> bool:
    """Whether a queue is a light queue, whose entries point to records of another topic."""
    return queue.startswith(_LIGHT_QUEUE)
