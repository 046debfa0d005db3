"""Writes the output's log files: copies kept records, many at a time, and patches their positions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import BinaryIO, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from rewindmq.broker.store.config import DEFAULT_DELAY_LEVELS
from rewindmq.broker.store.consume_queue.tags_code import DelayLevels
from rewindmq.broker.store.layout.compaction import (
    BATCH_SIZE,
    CQ_FOLDER,
    END_OF_FILE,
    ENTRY,
    ENTRY_BYTES,
    FOLDER,
    LOG_FOLDER,
    NO_COMPACTED_OFFSET,
)
from rewindmq.pipeline.compact.layout import WHOLE_STORE, OutputFile, Stream, queue_folder
from rewindmq.pipeline.decode.gather import gather
from rewindmq.pipeline.decode.message_columns import MessageColumns
from rewindmq.pipeline.decode.record_block import Int64s, RecordBlock
from rewindmq.pipeline.decode.segment_reader import Segment
from rewindmq.pipeline.errors import PipelineError
from rewindmq.pipeline.files import Files, LocalFiles, ReadableFiles
from rewindmq.protocol.message.record import BLANK, MAGIC_BLANK, PHYSICAL_OFFSET_AT, QUEUE_OFFSET_AT

# Bytes of records that a task processes at a time; reading them needs at most as much memory again.
_CHUNK_BYTES: Final = 8 << 20
# Read up to this many unwanted bytes between two records instead of skipping them.
_LOCAL_GAP: Final = 16 << 10
_REMOTE_GAP: Final = 1 << 20
_ENTRIES: Final = np.dtype(
    [
        ("physical_offset", ">i8"),
        ("size", ">i4"),
        ("tags_code", ">i8"),
        ("store_timestamp", ">i8"),
        ("queue_offset", ">i8"),
        ("batch_size", ">i2"),
        ("compacted_offset", ">i4"),
        ("reserved", ">i4"),
    ]
)
Octets = npt.NDArray[np.uint8]
_COLUMNS: Final = ("physicalOffset", "newPhysicalOffset", "newQueueOffset", "storeSize", "origin")


class WritePlan(NamedTuple):
    """Input of the tasks that write files; pickles.

    Attributes:
        source: the source's files and segments.
        target: the output's files.
        root: folder of the new store, within ``target``.
        former: folder of the previous generation; "" if there is none.
        offset_map: path of the offset map.
        file_bytes: size of a log file.
        cq_file_bytes: size of a compaction queue file; 0 for format store.
    """

    source: ReadableFiles
    segments: tuple[Segment, ...]
    target: Files
    root: str
    former: str
    offset_map: str
    file_bytes: int
    cq_file_bytes: int


def log_path(root: str, stream: Stream, base: int) -> str:
    """Return the path of a log file of the output."""
    if stream == WHOLE_STORE:
        return f"{root}/commitlog/{base:020d}"
    return f"{root}/{FOLDER}/{LOG_FOLDER}/{queue_folder(stream)}/{base:020d}"


def cq_path(root: str, stream: Stream, base: int) -> str:
    """Return the path of the queue file that belongs to a compaction log file."""
    return f"{root}/{FOLDER}/{CQ_FOLDER}/{queue_folder(stream)}/{base:020d}"


def write_file(plan: WritePlan, file: OutputFile, attempt: int) -> None:
    """Write one log file and, in a compaction store, its queue file.

    Args:
        attempt: number of the task's attempt, so that two attempts never write to the same file.

    Raises:
        PipelineError: the source no longer has the records that were selected.
    """
    path = log_path(plan.root, file.stream, file.base)
    draft = f"{path}.{attempt}"
    entries = []
    with plan.target.create(draft) as target:
        for rows in _chunks(plan, file):
            data = _records(plan, file, rows)
            entries.append(_patch(plan, data, rows))
            target.write(data.tobytes())
        _fill(plan, target, file)
    _put(plan.target, draft, path, file.store_timestamp)
    if plan.cq_file_bytes:
        path = cq_path(plan.root, file.stream, file.base)
        draft = f"{path}.{attempt}"
        with plan.target.create(draft) as target:
            written = sum(target.write(part) for part in entries)
            if not file.is_last:
                written += target.write(ENTRY.pack(END_OF_FILE, 0, 0, 0, 0, 0, NO_COMPACTED_OFFSET, 0))
            plan.target.fill(target, plan.cq_file_bytes - written)
        _put(plan.target, draft, path, file.store_timestamp)


def link_file(plan: WritePlan, file: OutputFile) -> None:
    """Link a file of the previous generation that has the same content."""
    paths = [log_path] if not plan.cq_file_bytes else [log_path, cq_path]
    for path in paths:
        target = path(plan.root, file.stream, file.base)
        plan.target.link(path(plan.former, file.stream, file.base), target)


def _put(files: Files, draft: str, path: str, mtime_ms: int) -> None:
    files.set_mtime(draft, mtime_ms)
    files.sync(draft)
    files.move(draft, path)


def _fill(plan: WritePlan, target: BinaryIO, file: OutputFile) -> None:
    written = file.end - file.base
    if not file.is_last:
        written += target.write(BLANK.pack(plan.file_bytes - written, MAGIC_BLANK))
    plan.target.fill(target, plan.file_bytes - written)


def _chunks(plan: WritePlan, file: OutputFile) -> Iterator[dict[str, Int64s]]:
    """Yield the file's rows of the offset map by column, about ``_CHUNK_BYTES`` of records at a time."""
    for rows in _rows(plan, file.first_row, file.first_row + file.rows):
        part = np.cumsum(rows["storeSize"]) // _CHUNK_BYTES
        cuts = [0, *(np.flatnonzero(np.diff(part)) + 1).tolist(), len(part)]
        for start, stop in pairwise(cuts):
            yield {name: values[start:stop] for name, values in rows.items()}


def _rows(plan: WritePlan, first: int, last: int) -> Iterator[dict[str, Int64s]]:
    with plan.target.open(plan.offset_map) as source:
        table = pq.ParquetFile(source)
        begin = 0
        for number in range(table.num_row_groups):
            count = table.metadata.row_group(number).num_rows
            if begin < last and first < begin + count:
                found = table.read_row_group(number, columns=list(_COLUMNS))
                start = max(first - begin, 0)
                found = found.slice(start, min(last - begin, count) - start)
                yield {name: found.column(name).to_numpy().astype(np.int64) for name in _COLUMNS}
            begin += count


def _records(plan: WritePlan, file: OutputFile, rows: dict[str, Int64s]) -> Octets:
    """Return the records, concatenated, as they are in their source."""
    origin = rows["origin"]
    at = np.where(origin < 0, rows["physicalOffset"], origin)
    bases = np.asarray([segment.base for segment in plan.segments], np.int64)
    segment = np.searchsorted(bases, at, side="right") - 1
    # The sign tells files of the source from those of the previous generation.
    number = np.where(origin < 0, -1 - segment, at // plan.file_bytes)
    cuts = np.flatnonzero((number[1:] != number[:-1]) | (at[1:] < at[:-1])) + 1
    pieces = []
    for start, stop in pairwise([0, *cuts.tolist(), len(at)]):
        sizes = rows["storeSize"][start:stop]
        if origin[start] < 0:
            found = plan.segments[int(segment[start])]
            data = _read_same(plan.source, found.path, found.base, at[start:stop], sizes)
        else:
            base = int(at[start] - at[start] % plan.file_bytes)
            path = log_path(plan.former, file.stream, base)
            data = _read_same(plan.target, path, base, at[start:stop], sizes)
        pieces.append(np.frombuffer(data, np.uint8))
    return np.concatenate(pieces)


def _read_same(files: ReadableFiles, path: str, base: int, at: Int64s, sizes: Int64s) -> bytes:
    """Read records of one file, in the file's order.

    Raises:
        PipelineError: the records are not there.
    """
    data = read_pieces(files, path, at - base, sizes)
    starts = np.cumsum(sizes) - sizes
    same = len(data) == int(sizes.sum())
    if same:
        head = RecordBlock(data, 0, starts).head
        same = bool(np.all(head["total_size"] == sizes) and np.all(head["physical_offset"] == at))
    if not same:
        raise PipelineError(f"{path} changed while it was read; run again")
    return data


def read_pieces(files: ReadableFiles, path: str, at: Int64s, sizes: Int64s) -> bytes:
    """Return pieces of a file, concatenated; ``at`` increases, and pieces do not overlap."""
    ends = at + sizes
    gap = _LOCAL_GAP if isinstance(files, LocalFiles) else _REMOTE_GAP
    is_cut = (at[1:] - ends[:-1] > gap) | (at[1:] // _CHUNK_BYTES != at[:-1] // _CHUNK_BYTES)
    bounds = [0, *(np.flatnonzero(is_cut) + 1).tolist(), len(at)]
    pieces = []
    for start, stop in pairwise(bounds):
        first = int(at[start])
        data = files.read(path, first, int(ends[stop - 1]) - first)
        if stop - start > 1 and len(data) == ends[stop - 1] - first:
            found = gather(data, at[start:stop] - first, ends[start:stop] - first)
            data = found.buffers()[2].slice(0, int(sizes[start:stop].sum()))
        pieces.append(data)
    return b"".join(pieces)


def _patch(plan: WritePlan, data: Octets, rows: dict[str, Int64s]) -> bytes:
    """Write the new places into the records; return the queue entries of a compaction store."""
    sizes = rows["storeSize"]
    starts = np.cumsum(sizes) - sizes
    _set_int64(data, starts + PHYSICAL_OFFSET_AT, rows["newPhysicalOffset"])
    if not plan.cq_file_bytes:
        _set_int64(data, starts + QUEUE_OFFSET_AT, rows["newQueueOffset"])
        return b""
    block = RecordBlock(data.tobytes(), 0, starts)
    entries = np.zeros(len(starts), _ENTRIES)
    entries["physical_offset"] = rows["newPhysicalOffset"]
    entries["size"] = sizes
    entries["tags_code"] = MessageColumns(block, "", 0, DelayLevels(DEFAULT_DELAY_LEVELS)).column("tagsCode")
    entries["store_timestamp"] = block.store_timestamp
    entries["queue_offset"] = rows["newQueueOffset"]
    entries["batch_size"] = BATCH_SIZE
    entries["compacted_offset"] = NO_COMPACTED_OFFSET
    assert entries.itemsize == ENTRY_BYTES
    return entries.tobytes()


def _set_int64(data: Octets, at: Int64s, values: Int64s) -> None:
    octets = values.astype(">i8").view(np.uint8).reshape(-1, 8)
    data[at[:, None] + np.arange(8)] = octets
