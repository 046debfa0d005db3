"""Writes key index files, byte for byte as a 4.9.4 broker does from the same log (docs/spec/store.md 5).

Entries are numbered before any file is written, so each task writes one file.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from rewindmq.broker.store.layout.index import (
    ENTRY_BYTES,
    FIRST_ENTRY,
    HEADER,
    HEADER_BYTES,
    SLOT_BYTES,
    file_bytes,
)
from rewindmq.pipeline.engines.engine import Engine
from rewindmq.pipeline.files import Files, LocalFiles
from rewindmq.pipeline.index.scan import ENTRY
from rewindmq.pipeline.index_files.format import ENTRIES, IndexHeader, read_header

if TYPE_CHECKING:
    import pyarrow as pa

INDEX_FOLDER: Final = "index"
_INT32_MAX: Final = 0x7FFF_FFFF
_SLOT: Final = np.dtype(">i4")
# Entries processed at a time: about 100 bytes of memory each.
_SLICE: Final = 1 << 19
# Slots written at a time; a group without used slots is not written.
_SLOT_RUN: Final = 1 << 12
_COPY_BYTES: Final = 8 << 20
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_MS: Final = 253_402_300_799_999


class EntryRun(NamedTuple):
    """A part of a file of entries that the scan wrote: ``entries`` of them, from index ``first`` on."""

    path: str
    first: int
    entries: int


class IndexFilePlan(NamedTuple):
    """An index file to write; pickles.

    Attributes:
        previous: path of the unfinished file that this one continues.
        end_before: endTimestamp of the file before, ms; 0 if there is none. A broker copies it to a new
            file's header, and computes the timeDiff of the first entry from it.
    """

    files: Files
    path: str
    slots: int
    entries: int
    previous: str | None
    end_before: int
    runs: tuple[EntryRun, ...]


def file_capacity(max_index_num: int) -> int:
    """Return the entries that fit into a file: number 0 is never used."""
    return max_index_num - FIRST_ENTRY


def name_after(timestamp: int, before: str) -> str:
    """Return a file's name: its first entry's store time (ms) in UTC, or the next free name.

    Args:
        before: the name of the file before; "" if there is none.
    """
    name = _name(timestamp)
    while name <= before:
        moment = datetime.strptime(before[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
        name = _name((moment - _EPOCH) // timedelta(milliseconds=1) + int(before[14:]) + 1)
    return name


def _name(timestamp: int) -> str:
    moment = _EPOCH + timedelta(milliseconds=min(max(timestamp, 0), _LAST_MS))
    return f"{moment:%Y%m%d%H%M%S}{moment.microsecond // 1000:03d}"


def write_index_files(engine: Engine, plans: Sequence[IndexFilePlan]) -> int:
    """Write the files, each in one task that holds the file's slots and a slice of its entries in memory.

    Returns:
        Bytes used in the files, including those copied from a continued file.

    Raises:
        PipelineError: a task failed.
    """
    if not plans:
        return 0

    def run(number: int) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        written = write_index_file(plans[number])
        yield pa.RecordBatch.from_pydict({"found": [json.dumps(written)]})

    rows = engine.tasks(len(plans), run, "found string").collect()
    return sum(json.loads(text) for (text,) in rows)


def write_index_file(plan: IndexFilePlan) -> int:
    """Write one file; return the bytes used in it."""
    with _seekable(plan.files, plan.path) as file:
        writer = _FileWriter(plan, file)
        if plan.previous is not None:
            writer.go_on(plan.previous)
        for run in plan.runs:
            for entries in _slices(plan.files, run):
                writer.add(entries)
        written = writer.finish()
    plan.files.sync(plan.path)
    plan.files.set_mtime(plan.path, max(writer.header.end_timestamp, 0))
    return written


@contextmanager
def _seekable(files: Files, path: str) -> Iterator[BinaryIO]:
    """Open a new file for random writes; for remote file systems, through a local temporary file."""
    if isinstance(files, LocalFiles):
        with files.create(path) as file:
            yield file
        return
    with tempfile.TemporaryFile() as draft:
        yield cast("BinaryIO", draft)
        draft.seek(0)
        with files.create(path) as file:
            shutil.copyfileobj(draft, file, _COPY_BYTES)


def _slices(files: Files, run: EntryRun) -> Iterator[npt.NDArray[np.void]]:
    for start in range(run.first, run.first + run.entries, _SLICE):
        count = min(_SLICE, run.first + run.entries - start)
        data = files.read(run.path, start * ENTRY.itemsize, count * ENTRY.itemsize)
        entries = np.frombuffer(data, ENTRY)
        assert len(entries) == count
        yield entries


class _FileWriter:
    """Writes an index file: header and slots stay in memory, entries go to the file at once."""

    def __init__(self, plan: IndexFilePlan, file: BinaryIO) -> None:
        self._plan = plan
        self._file = file
        self._entries_at = HEADER_BYTES + plan.slots * SLOT_BYTES
        self._slots = np.zeros(plan.slots, np.int32)
        self._written = HEADER_BYTES
        self.header = IndexHeader(plan.end_before, 0, 0, 0, 0, FIRST_ENTRY)

    def go_on(self, previous: str) -> None:
        """Copy the content of an unfinished file."""
        files = self._plan.files
        self.header = read_header(files, previous)
        data = files.read(previous, HEADER_BYTES, len(self._slots) * SLOT_BYTES)
        self._slots = np.frombuffer(data, _SLOT).astype(np.int32)
        position = self._entries_at + FIRST_ENTRY * ENTRY_BYTES
        end = self._entries_at + self.header.index_count * ENTRY_BYTES
        self._file.seek(position)
        while position < end:
            self._file.write(files.read(previous, position, min(_COPY_BYTES, end - position)))
            position = min(position + _COPY_BYTES, end)

    def add(self, entries: npt.NDArray[np.void]) -> None:
        """Append entries; the file must have room for them."""
        header = self.header
        first, count = header.index_count, len(entries)
        assert first + count <= self._plan.entries
        written = np.empty(count, ENTRIES)
        written["key_hash"] = entries["hash"]
        written["position"] = entries["position"]
        written["time_diff"] = _seconds(entries["time"], header.begin_timestamp)
        if first == FIRST_ENTRY:
            header = header._replace(
                begin_timestamp=int(entries["time"][0]), begin_phy_offset=int(entries["position"][0])
            )
            written["time_diff"][1:] = _seconds(entries["time"][1:], header.begin_timestamp)
        written["previous"], begun = self._chain(entries["hash"] % self._plan.slots, first)
        self.header = header._replace(
            end_timestamp=int(entries["time"][-1]),
            end_phy_offset=int(entries["position"][-1]),
            hash_slot_count=header.hash_slot_count + begun,
            index_count=first + count,
        )
        self._file.seek(self._entries_at + first * ENTRY_BYTES)
        self._file.write(written.tobytes())

    def _chain(self, slots: npt.NDArray[np.int32], first: int) -> tuple[npt.NDArray[np.int32], int]:
        """Return each entry's predecessor in its slot, 0 for none, and the number of newly used slots."""
        order = np.argsort(slots, kind="stable")
        ordered = slots[order]
        numbers = (first + order).astype(np.int32)
        is_first = np.ones(len(ordered), np.bool_)
        is_first[1:] = ordered[1:] != ordered[:-1]
        before = np.empty(len(ordered), np.int32)
        before[1:] = numbers[:-1]
        heads = ordered[is_first]
        before[is_first] = self._slots[heads]
        begun = int(np.count_nonzero(self._slots[heads] == 0))
        self._slots[heads] = numbers[np.append(np.flatnonzero(is_first)[1:], len(ordered)) - 1]
        chained = np.empty(len(ordered), np.int32)
        chained[order] = before
        return chained, begun

    def finish(self) -> int:
        """Write header and slots; return the bytes used."""
        plan, file = self._plan, self._file
        file.seek(0)
        file.write(HEADER.pack(*self.header))
        written = HEADER_BYTES + (self.header.index_count - FIRST_ENTRY) * ENTRY_BYTES
        for start in range(0, plan.slots, _SLOT_RUN):
            run = self._slots[start : start + _SLOT_RUN]
            if run.any():
                file.seek(HEADER_BYTES + start * SLOT_BYTES)
                file.write(run.astype(_SLOT).tobytes())
                written += len(run) * SLOT_BYTES
        file.truncate(file_bytes(plan.slots, plan.entries))
        return written


def _seconds(times: npt.NDArray[np.int64], begin: int) -> npt.NDArray[np.int64]:
    """Return the timeDiff of entries, as ``broker.store.layout.index.time_diff`` computes it."""
    if begin <= 0:
        return np.zeros(len(times), np.int64)
    seconds: npt.NDArray[np.int64] = np.clip((times.astype(np.int64) - begin) // 1000, 0, _INT32_MAX)
    return seconds
