"""Distributes index entries over index files, and names the files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from rewindmq.broker.store.layout.index import FIRST_ENTRY
from rewindmq.pipeline.files import Files
from rewindmq.pipeline.index.key_index import (
    INDEX_FOLDER,
    EntryRun,
    IndexFilePlan,
    file_capacity,
    name_after,
)
from rewindmq.pipeline.index.scan import ENTRY
from rewindmq.pipeline.index_files.format import IndexHeader, read_header


class PreviousIndex(NamedTuple):
    """The index files of an earlier run that this run continues.

    Attributes:
        kept: paths of the full files, oldest first; they stay unchanged.
        unfinished: path of the newest file, if it has room.
        newest: name and header of the newest file; "" and None if there is none.
    """

    kept: tuple[str, ...]
    unfinished: str | None
    newest: str
    header: IndexHeader | None


def previous_index(files: Files, folder: str | None, entries: int, log_begin: int) -> PreviousIndex:
    """Find the index files in a published folder.

    Args:
        entries: maxIndexNum.
        log_begin: files that end before it are left out, except the newest (docs/spec/store.md 5.6).
    """
    names = [] if folder is None else [entry.name for entry in files.list(f"{folder}/{INDEX_FOLDER}")]
    if not names:
        return PreviousIndex((), None, "", None)
    paths = [f"{folder}/{INDEX_FOLDER}/{name}" for name in names]
    while len(paths) > 1 and read_header(files, paths[0]).end_phy_offset < log_begin:
        paths.pop(0)
    header = read_header(files, paths[-1])
    if header.index_count - FIRST_ENTRY < file_capacity(entries):
        return PreviousIndex(tuple(paths[:-1]), paths[-1], names[-1], header)
    return PreviousIndex(tuple(paths), None, names[-1], header)


def plan_index_files(
    files: Files,
    runs: Sequence[EntryRun],
    target: str,
    slots: int,
    entries: int,
    before: PreviousIndex,
) -> list[IndexFilePlan]:
    """Plan the files for new entries.

    Args:
        runs: all new entries, in order.
        target: folder of the index files.
        slots, entries: maxHashSlotNum and maxIndexNum.
    """
    count = sum(run.entries for run in runs)
    plans: list[IndexFilePlan] = []
    taken, name, end_before = 0, before.newest, 0 if before.header is None else before.header.end_timestamp
    if before.unfinished is not None and before.header is not None and count:
        taken = min(file_capacity(entries) + FIRST_ENTRY - before.header.index_count, count)
        chosen = tuple(_cut(runs, 0, taken))
        plans.append(IndexFilePlan(files, f"{target}/{name}", slots, entries, before.unfinished, 0, chosen))
    while taken < count:
        chosen = tuple(_cut(runs, taken, min(taken + file_capacity(entries), count)))
        name = name_after(_time(files, chosen[0]), name)
        if taken:
            end_before = _time(files, next(_cut(runs, taken - 1, taken)))
        plans.append(IndexFilePlan(files, f"{target}/{name}", slots, entries, None, end_before, chosen))
        taken += sum(run.entries for run in chosen)
    return plans


def _cut(runs: Sequence[EntryRun], begin: int, end: int) -> Iterator[EntryRun]:
    """Yield the entries [begin, end) of all runs."""
    first = 0
    for run in runs:
        start, stop = max(begin - first, 0), min(end - first, run.entries)
        if start < stop:
            yield EntryRun(run.path, run.first + start, stop - start)
        first += run.entries


def _time(files: Files, run: EntryRun) -> int:
    """Return the store timestamp of the first entry, ms."""
    data = files.read(run.path, run.first * ENTRY.itemsize, ENTRY.itemsize)
    return int(np.frombuffer(data, ENTRY)["time"][0])
