"""The only pass over the log: writes the Parquet copy and the input of queues and index, part by part."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rewindmq.broker.store.consume_queue.tags_code import DelayLevels
from rewindmq.broker.store.layout.topic_end import TOPIC_END_SYS_FLAG, is_topic_end
from rewindmq.pipeline.decode.damage import Damage, DamageKind
from rewindmq.pipeline.decode.gather import gather
from rewindmq.pipeline.decode.message_columns import MessageColumns
from rewindmq.pipeline.decode.record_block import RecordBlock
from rewindmq.pipeline.decode.segment_reader import Segment, SegmentReader
from rewindmq.pipeline.engines.engine import Engine, Rows
from rewindmq.pipeline.files import Files, ReadableFiles
from rewindmq.pipeline.index.key_hashes import entry_hashes
from rewindmq.pipeline.index.queue_pieces import PIECE_SCHEMA, PIECES, QUEUE_ENTRY_COLUMNS, pack
from rewindmq.pipeline.snapshot.snapshot import StoreSnapshot
from rewindmq.protocol.message.sysflag import TRANSACTION_MASK, MessageSysFlag

# Columns of the Parquet copy: all columns of a message except its body.
COPIED: Final = (
    "physicalOffset", "storeSize", "topic", "queueId", "queueOffset", "storeTimestamp", "bornTimestamp",
    "keys", "uniqueKey", "tag", "tagsCode", "bodySize", "bodyCRC", "reconsumeTimes", "flag", "sysFlag",
    "transactionState", "preparedTransactionOffset", "bornHost", "storeHost", "delay", "realTopic",
    "realQueueId", "properties",
)  # fmt: skip
PARQUET_FOLDER: Final = "messages"
# An entry of the key index, before it is numbered and chained.
ENTRY: Final = np.dtype([("hash", "<i4"), ("position", "<i8"), ("time", "<i8")])
# The columns that become QUEUE_ENTRY_COLUMNS, in the same order.
_QUEUE_ENTRY_SOURCES: Final = tuple("storeSize" if name == "size" else name for name in QUEUE_ENTRY_COLUMNS)
_PART_BYTES: Final = 64 << 20
_ROW_GROUP: Final = 32_768
_DAMAGE_SHOWN: Final = 20
_NO_QUEUE_ENTRY: Final = (int(MessageSysFlag.TRANSACTION_PREPARED), int(MessageSysFlag.TRANSACTION_ROLLBACK))


class LogPart(NamedTuple):
    """The log positions that one task reads, as ranges of segments."""

    ranges: tuple[tuple[Segment, int, int], ...]

    @property
    def name(self) -> str:
        """Name of the part's files: its first log position."""
        return f"{self.ranges[0][1]:020d}"


class IndexScanPlan(NamedTuple):
    """Source and target of the parts; pickles.

    Attributes:
        staging: folder for ``<part>.queue-entries`` (Arrow, ``PIECE_SCHEMA``) and ``<part>.index-entries``
            (``ENTRY``).
        parquet: folder for ``<part>.parquet``.
    """

    source: ReadableFiles
    files: Files
    staging: str
    parquet: str
    delay_levels: str


class PartFindings(NamedTuple):
    """The content of a part.

    Attributes:
        records: number of intact records.
        last_position, last_size, last_time: of the last record; -1 if there is none. Time in ms.
        parquet_bytes: size of the Parquet file; 0 if the part has no records and thus no file.
        damage: the first damaged places, as fields of ``Damage``; ``damage_count`` counts all.
        ended: topics that were deleted, with the log position of the record that says so.
    """

    name: str
    records: int
    queue_entries: int
    index_entries: int
    log_bytes: int
    parquet_bytes: int
    last_position: int
    last_size: int
    last_time: int
    damage_count: int
    damage: list[list[Any]]
    ended: Mapping[str, int] = {}


def split(snapshot: StoreSnapshot, begin: int) -> list[LogPart]:
    """Split the log from a position on into parts of about 64 MiB; small segments share a part."""
    parts: list[LogPart] = []
    ranges: list[tuple[Segment, int, int]] = []
    size = 0
    for segment in snapshot.segments:
        start = max(segment.base, begin)
        while start < segment.end:
            stop = min(start + _PART_BYTES - size, segment.end)
            ranges.append((segment, start, stop))
            size += stop - start
            start = stop
            if size >= _PART_BYTES:
                parts.append(LogPart(tuple(ranges)))
                ranges, size = [], 0
    return [*parts, LogPart(tuple(ranges))] if ranges else parts


def scan(engine: Engine, plan: IndexScanPlan, parts: Sequence[LogPart]) -> list[PartFindings]:
    """Read the parts, one task each; a task holds about 8 MiB of log and a Parquet row group in memory.

    Raises:
        PipelineError: a task failed.
    """
    if not parts:
        return []

    def run(number: int) -> Iterator[pa.RecordBatch]:
        found = _PartScan(plan, parts[number]).run()
        yield pa.RecordBatch.from_pydict({"found": [json.dumps(found)]})

    rows = engine.tasks(len(parts), run, "found string").collect()
    found = [PartFindings(*json.loads(text)) for (text,) in rows]
    return sorted(found, key=lambda part: part.name)


class _Columns:
    """The columns of a block; each is built once."""

    def __init__(self, block: RecordBlock, segment: int, levels: DelayLevels) -> None:
        self._maker = MessageColumns(block, "", segment, levels)
        self._made: dict[str, pa.Array] = {}
        self.block = block

    def __getitem__(self, name: str) -> pa.Array:
        if name not in self._made:
            self._made[name] = self._maker.column(name)
        return self._made[name]

    def batch(self, names: Sequence[str], chosen: Any = None) -> pa.RecordBatch:
        batch = pa.RecordBatch.from_arrays([self[name] for name in names], list(names))
        return batch if chosen is None or chosen.all() else batch.filter(pa.array(chosen))

    @cached_property
    def transaction(self) -> Any:
        return self.block.sys_flag & TRANSACTION_MASK


class _PartScan:
    """Scans one part, in a task."""

    def __init__(self, plan: IndexScanPlan, part: LogPart) -> None:
        self._plan = plan
        self._part = part
        self._levels = DelayLevels(plan.delay_levels)
        self._damage: list[Damage] = []
        self._damage_count = 0
        self._records = self._queue_entry_count = self._index_entry_count = 0
        self._last = (-1, -1, -1)
        self._ended: dict[str, int] = {}

    def run(self) -> PartFindings:
        files, name = self._plan.files, self._part.name
        paths = [f"{self._plan.staging}/{name}.queue-entries", f"{self._plan.staging}/{name}.index-entries"]
        parquet = f"{self._plan.parquet}/{name}.parquet"
        with files.create(paths[0]) as queue_file, files.create(paths[1]) as index_file:
            copy = _ParquetCopy(files, parquet)
            with pa.ipc.new_stream(queue_file, PIECE_SCHEMA) as queue_entries:
                for columns in self._blocks():
                    self._note_ends(columns)
                    self._write_queue_entries(columns, queue_entries)
                    index_file.write(self._index_entries(columns))
                    copy.add(columns.batch(COPIED))
            copy.close()
        for path in paths:
            files.sync(path)
        written = files.entry(parquet) if self._records else None
        size = sum(stop - start for _, start, stop in self._part.ranges)
        return PartFindings(
            name,
            self._records,
            self._queue_entry_count,
            self._index_entry_count,
            size,
            0 if written is None else written.size,
            *self._last,
            self._damage_count,
            [list(damage) for damage in self._damage],
            self._ended,
        )

    def _blocks(self) -> Iterator[_Columns]:
        for segment, start, stop in self._part.ranges:
            reader = SegmentReader(self._plan.source, segment, self._tell)
            for block in reader.blocks(start, stop):
                columns = _Columns(block, segment.base, self._levels)
                self._records += len(block)
                head = block.head[-1]
                position, size = int(head["physical_offset"]), int(head["total_size"])
                self._last = (position, size, int(block.store_timestamp[-1]))
                yield columns

    def _tell(self, damage: Damage) -> None:
        self._damage_count += 1
        if len(self._damage) < _DAMAGE_SHOWN:
            self._damage.append(damage)

    def _note_ends(self, columns: _Columns) -> None:
        rolled_back = np.flatnonzero(columns.transaction == TOPIC_END_SYS_FLAG)
        if not len(rolled_back):
            return
        block = columns.block.select(rolled_back)
        texts = gather(block.data, block.properties_at, block.end).to_pylist()
        topics = columns["topic"].take(pa.array(rolled_back)).to_pylist()
        positions = block.head["physical_offset"].tolist()
        for topic, position, text in zip(topics, positions, texts, strict=True):
            if is_topic_end(TOPIC_END_SYS_FLAG, text):
                self._ended[topic] = position

    def _write_queue_entries(self, columns: _Columns, writer: pa.ipc.RecordBatchWriter) -> None:
        batch = columns.batch(_QUEUE_ENTRY_SOURCES, ~np.isin(columns.transaction, _NO_QUEUE_ENTRY))
        if batch.num_rows:
            self._queue_entry_count += batch.num_rows
            writer.write_batch(pack(batch.rename_columns(list(QUEUE_ENTRY_COLUMNS))))

    def _index_entries(self, columns: _Columns) -> bytes:
        kept = columns.transaction != int(MessageSysFlag.TRANSACTION_ROLLBACK)
        names = ("topic", "uniqueKey", "keys", "physicalOffset", "storeTimestampMs")
        batch = columns.batch(names, kept)
        messages, hashes = entry_hashes(batch.column(0), batch.column(1), batch.column(2))
        entries = np.empty(len(messages), ENTRY)
        entries["hash"] = hashes
        entries["position"] = batch.column(3).to_numpy()[messages]
        entries["time"] = batch.column(4).to_numpy()[messages]
        self._index_entry_count += len(entries)
        return entries.tobytes()


class _ParquetCopy:
    """One Parquet file; its row groups have statistics for every column, so that readers can skip groups."""

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self._path = path
        self._file: Any = None
        self._writer: Any = None
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        self._waiting.append(batch)
        self._rows += batch.num_rows
        if self._rows >= _ROW_GROUP:
            self._write()

    def _write(self) -> None:
        table = pa.Table.from_batches(self._waiting)
        if self._writer is None:
            self._file = self._files.create(self._path)
            self._writer = pq.ParquetWriter(
                self._file,
                table.schema,
                compression="zstd",
                compression_level=1,
                write_page_index=True,
                sorting_columns=[pq.SortingColumn(0)],
            )
        self._writer.write_table(table, row_group_size=_ROW_GROUP)
        self._waiting, self._rows = [], 0

    def close(self) -> None:
        if self._rows:
            self._write()
        if self._writer is not None:
            self._writer.close()
            self._file.close()
            self._files.sync(self._path)


def damage_of(found: Sequence[PartFindings]) -> list[Damage]:
    """Return the reported damaged places, in the order of the log."""
    return [Damage(DamageKind(kind), *rest) for part in found for kind, *rest in part.damage][:_DAMAGE_SHOWN]


def read_pieces(engine: Engine, files: Files, staging: str, names: Sequence[str]) -> Rows:
    """Return the pieces of these parts (``queue_pieces.PIECES``)."""

    def read(number: int) -> Iterator[pa.RecordBatch]:
        data = files.read_all(f"{staging}/{names[number]}.queue-entries")
        assert data is not None
        yield from pa.ipc.open_stream(data)

    return engine.tasks(len(names), read, PIECES)
