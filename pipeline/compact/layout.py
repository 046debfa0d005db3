"""Assigns positions, files and queue offsets of the output to the kept messages, in one pass.

A record's position depends on all records before it, so one task goes through the survivors' sizes. It holds
one batch, and one entry per queue and output file, in memory.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rewindmq.broker.store.layout.compaction import ENTRY_BYTES
from rewindmq.broker.store.layout.queue_path import queue_path
from rewindmq.pipeline.compact.options import CompactOptions, Format
from rewindmq.pipeline.compact.topics import Treatment
from rewindmq.pipeline.decode.record_block import Int64s
from rewindmq.pipeline.errors import PipelineError
from rewindmq.pipeline.files import Files
from rewindmq.protocol.message.record import BLANK_BYTES
from rewindmq.protocol.names import PathNameError

BATCH_ROWS: Final = 65_536
# The latest mtime that every file system can store.
_LAST_MS: Final = 253_402_300_799_999
OFFSET_MAP: Final = "part-00000.parquet"

# The row that a generation keeps of each of its messages; the next run continues from these rows.
OFFSET_MAP_SCHEMA: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("queueId", pa.int32()),
        ("queueOffset", pa.int64()),
        ("newQueueOffset", pa.int64()),
        ("physicalOffset", pa.int64()),
        ("newPhysicalOffset", pa.int64()),
        ("storeSize", pa.int32()),
        ("storeTimestamp", pa.int64()),
        ("key", pa.string()),
        ("hasBody", pa.bool_()),
        ("kind", pa.int32()),
        ("origin", pa.int64()),
    ]
)


class Stream(NamedTuple):
    """One log of the output: a new store's commit log, or one queue of a compaction store."""

    topic: str
    queue_id: int


WHOLE_STORE: Final = Stream("", -1)


def queue_folder(stream: Stream) -> str:
    """Return the folder of a queue's log, below the output; a record may state any text as its topic.

    Raises:
        PipelineError: topic or queue id would lead out of the output.
    """
    try:
        return queue_path(stream.topic, stream.queue_id)
    except PathNameError as error:
        raise PipelineError(
            f"the store has messages of a queue without a place in the output: {error}. Leave the topic out"
            " by naming the others with --topic (compaction format)"
        ) from None


class OutputFile(NamedTuple):
    """One log file of the output.

    Attributes:
        base: position of the file's first byte in its stream.
        first_row, rows: its messages, by their rows in the offset map.
        end: position after its last record.
        store_timestamp: store time of its newest message, ms; also the mtime of the file.
        is_last: whether it is the last of its stream; the others end with a blank record.
        digest: digest of the messages and their places; equal digests mean equal bytes.
    """

    topic: str
    queue_id: int
    base: int
    first_row: int
    rows: int
    end: int
    store_timestamp: int
    is_last: bool
    digest: str

    @property
    def stream(self) -> Stream:
        return Stream(self.topic, self.queue_id)


class FileShape(NamedTuple):
    """Maximum size of a file.

    Attributes:
        bytes: bytes of a log file, its blank record included.
        records: maximum number of records in a file.
    """

    bytes: int
    records: int


def shape_of(options: CompactOptions, source_segment_bytes: int) -> FileShape:
    """Return the file sizes of this output."""
    if options.format is Format.COMPACTION:
        # 5.3.3 keeps the last entry of a full queue file for the end mark.
        return FileShape(options.log_file_bytes, options.cq_file_bytes // ENTRY_BYTES - 1)
    size = options.segment_bytes or source_segment_bytes
    return FileShape(size, size)


class Cursor:
    """Position of the next record of a stream."""

    def __init__(self, shape: FileShape) -> None:
        self._shape = shape
        self._position = 0
        self._records = 0

    def place(self, sizes: Int64s) -> Int64s:
        """Return the positions of the next records, which have these sizes; shape (n,).

        Raises:
            PipelineError: a record is larger than a file.
        """
        positions = np.empty(len(sizes), np.int64)
        ends = np.cumsum(sizes)
        done, before = 0, 0
        while done < len(sizes):
            base = self._position - self._position % self._shape.bytes
            room = base + self._shape.bytes - BLANK_BYTES - self._position
            fits = int(np.searchsorted(ends, before + room, side="right"))
            fits = min(fits, done + self._shape.records - self._records)
            if fits > done:
                positions[done:fits] = self._position + ends[done:fits] - sizes[done:fits] - before
                self._records += fits - done
                self._position += int(ends[fits - 1]) - before
                before = int(ends[fits - 1])
            elif self._position == base:
                raise PipelineError(
                    f"a message of {sizes[done]} bytes does not fit into a file of {self._shape.bytes} bytes"
                )
            if fits < len(sizes):
                self._position = base + self._shape.bytes
                self._records = 0
            done = fits
        return positions


class Layout:
    """Assigns places to survivors, batch by batch, in the order of the output.

    Attributes:
        files: the output files, after ``finish``.
        ranks: (topic, queueId, offset) to the number of kept messages below that offset.
        counts: per topic: kept, bytes, KEYED, tombstones among the KEYED, WHOLE, END.
    """

    def __init__(
        self, options: CompactOptions, shape: FileShape, offsets: Mapping[tuple[str, int], Sequence[int]]
    ) -> None:
        """``offsets``: the offsets of groups to translate, by (topic, queueId)."""
        self._is_store = options.format is Format.STORE
        self._shape = shape
        self._cursor = Cursor(shape)
        self._stream: Stream | None = None
        self._row = 0
        self._next_offset: dict[tuple[str, int], int] = defaultdict(int)
        self._asked = {queue: np.unique(np.asarray(wanted, np.int64)) for queue, wanted in offsets.items()}
        self._ranks = {queue: np.zeros(len(wanted), np.int64) for queue, wanted in self._asked.items()}
        self._open: OutputFile | None = None
        self._digest = hashlib.blake2b(digest_size=16)
        self.files: list[OutputFile] = []
        self.counts: dict[str, list[int]] = defaultdict(lambda: [0] * 6)

    @property
    def ranks(self) -> dict[tuple[str, int, int], int]:
        return {
            (*queue, offset): rank
            for queue, wanted in self._asked.items()
            for offset, rank in zip(wanted.tolist(), self._ranks[queue].tolist(), strict=True)
        }

    def add(self, batch: pa.RecordBatch) -> pa.Table:
        """Return the offset map of the next rows."""
        topics = batch.column("topic").dictionary_encode()
        names = topics.dictionary.to_pylist()
        topic_of = topics.indices.to_numpy().astype(np.int64)
        queue_id = batch.column("queueId").to_numpy().astype(np.int64)
        packed = batch.column("packed").to_numpy()
        queue_offset = batch.column("queueOffset").to_numpy()
        positions = np.empty(len(packed), np.int64)
        new_offsets = queue_offset.copy() if not self._is_store else np.empty(len(packed), np.int64)
        queues = topic_of << 32 | queue_id
        if self._is_store:
            for queue, rows in _by_value(queues):
                name = (names[queue >> 32], queue & 0xFFFF_FFFF)
                new_offsets[rows] = self._next_offset[name] + np.arange(len(rows))
                self._next_offset[name] += len(rows)
                self._rank(name, queue_offset[rows])
        for start, stop in _runs(np.zeros_like(queues) if self._is_store else queues):
            stream = WHOLE_STORE if self._is_store else Stream(names[topic_of[start]], int(queue_id[start]))
            self._enter(stream)
            positions[start:stop] = self._cursor.place(packed[start:stop] >> 1)
            self._note_files(batch.slice(start, stop - start), positions[start:stop], new_offsets[start:stop])
        self._count(names, topic_of, batch)
        return _offset_map(batch, positions, new_offsets)

    def finish(self) -> None:
        """Complete the last file; no rows follow."""
        self._close_file(is_last=True)

    def _rank(self, queue: tuple[str, int], queue_offsets: Int64s) -> None:
        if queue in self._asked:
            self._ranks[queue] += np.searchsorted(np.sort(queue_offsets), self._asked[queue], side="left")

    def _enter(self, stream: Stream) -> None:
        if not self._is_store:
            queue_folder(stream)
        if stream != self._stream:
            self._close_file(is_last=True)
            self._stream = stream
            self._cursor = Cursor(self._shape)

    def _note_files(self, batch: pa.RecordBatch, positions: Int64s, new_offsets: Int64s) -> None:
        assert self._stream is not None
        identity = np.stack((batch.column("physicalOffset").to_numpy(), positions, new_offsets), axis=1)
        ends = positions + (batch.column("packed").to_numpy() >> 1)
        times = batch.column("storeTimestamp").to_numpy()
        for start, stop in _runs(positions // self._shape.bytes):
            base = int(positions[start] - positions[start] % self._shape.bytes)
            if self._open is not None and self._open.base != base:
                self._close_file(is_last=False)
            if self._open is None:
                self._open = OutputFile(*self._stream, base, self._row, 0, base, 0, False, "")
                self._digest = hashlib.blake2b(digest_size=16)
            self._digest.update(identity[start:stop].tobytes())
            self._open = self._open._replace(
                rows=self._open.rows + stop - start,
                end=int(ends[stop - 1]),
                store_timestamp=min(max(self._open.store_timestamp, int(times[start:stop].max())), _LAST_MS),
            )
            self._row += stop - start

    def _close_file(self, *, is_last: bool) -> None:
        if self._open is not None:
            self.files.append(self._open._replace(is_last=is_last, digest=self._digest.hexdigest()))
            self._open = None

    def _count(self, names: list[str], topic_of: Int64s, batch: pa.RecordBatch) -> None:
        packed = batch.column("packed").to_numpy()
        kinds = batch.column("kind").to_numpy()
        for topic, rows in _by_value(topic_of):
            kind = kinds[rows]
            counts = self.counts[names[topic]]
            found = (
                len(rows),
                int((packed[rows] >> 1).sum()),
                int((kind == Treatment.KEYED).sum()),
                int(((kind == Treatment.KEYED) & (packed[rows] & 1 == 1)).sum()),
                int((kind == Treatment.WHOLE).sum()),
                int((kind == Treatment.END).sum()),
            )
            counts[:] = [count + more for count, more in zip(counts, found, strict=True)]


def _runs(values: Int64s) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each run of equal values."""
    if len(values):
        cuts = (np.flatnonzero(values[1:] != values[:-1]) + 1).tolist()
        yield from zip([0, *cuts], [*cuts, len(values)], strict=True)


def _by_value(values: Int64s) -> Iterator[tuple[int, Int64s]]:
    """Yield each value with its indexes, in order."""
    order = np.argsort(values, kind="stable")
    for start, stop in _runs(values[order]):
        yield int(values[order[start]]), order[start:stop]


def _offset_map(batch: pa.RecordBatch, positions: Int64s, new_offsets: Int64s) -> pa.Table:
    packed = batch.column("packed").to_numpy()
    columns = {name: batch.column(name) for name in batch.schema.names if name in OFFSET_MAP_SCHEMA.names}
    columns |= {
        "newQueueOffset": pa.array(new_offsets),
        "newPhysicalOffset": pa.array(positions),
        "storeSize": pa.array((packed >> 1).astype(np.int32)),
        "hasBody": pa.array(packed & 1 == 0),
    }
    return pa.table([columns[name] for name in OFFSET_MAP_SCHEMA.names], schema=OFFSET_MAP_SCHEMA)


class LayoutPlan(NamedTuple):
    """Input of the layout's only task; pickles.

    Attributes:
        sources: the survivors' Parquet files, in order.
        target: path of the offset map.
    """

    files: Files
    sources: tuple[str, ...]
    target: str
    options: CompactOptions
    shape: FileShape
    offsets: Mapping[tuple[str, int], Sequence[int]]


def lay_out(plan: LayoutPlan) -> dict[str, Any]:
    """Write the offset map; return JSON values: ``files``, ``ranks``, ``counts``."""
    layout = Layout(plan.options, plan.shape, plan.offsets)
    with (
        plan.files.create(plan.target) as target,
        pq.ParquetWriter(target, OFFSET_MAP_SCHEMA, compression="zstd") as writer,
    ):
        for path in plan.sources:
            with plan.files.open(path) as source:
                for batch in pq.ParquetFile(source).iter_batches(BATCH_ROWS):
                    writer.write_table(layout.add(batch))
    layout.finish()
    plan.files.sync(plan.target)
    return {
        "files": [list(file) for file in layout.files],
        "ranks": [[*key, rank] for key, rank in layout.ranks.items()],
        "counts": dict(layout.counts),
    }
