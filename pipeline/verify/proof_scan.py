"""Reads the records of a log or of an output: identity, and a digest of the bytes that must not change."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rewindmq.broker.store.config import DEFAULT_DELAY_LEVELS
from rewindmq.broker.store.consume_queue.tags_code import DelayLevels
from rewindmq.broker.store.layout.compaction import ENTRY_BYTES
from rewindmq.pipeline.decode.damage import Damage
from rewindmq.pipeline.decode.gather import gather
from rewindmq.pipeline.decode.message_columns import MessageColumns
from rewindmq.pipeline.decode.record_block import RecordBlock
from rewindmq.pipeline.decode.segment_reader import Segment, SegmentReader
from rewindmq.pipeline.files import ReadableFiles
from rewindmq.protocol.message.record import QUEUE_OFFSET_AT
from rewindmq.protocol.message.sysflag import TRANSACTION_MASK
from rewindmq.protocol.names import TRANS_OP_HALF_TOPIC

# "transaction" holds the bits of sysFlag; "body" that of op records, else null; "fault" describes a place of
# an output without a record.
SCHEMA: Final = (
    "topic string, queueId int, queueOffset bigint, position bigint, time bigint, key string,"
    " bodySize int, transaction int, crcOk boolean, digest binary, body binary, fault string"
)
_ARROW: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("queueId", pa.int32()),
        ("queueOffset", pa.int64()),
        ("position", pa.int64()),
        ("time", pa.int64()),
        ("key", pa.string()),
        ("bodySize", pa.int32()),
        ("transaction", pa.int32()),
        ("crcOk", pa.bool_()),
        ("digest", pa.binary()),
        ("body", pa.binary()),
        ("fault", pa.string()),
    ]
)
# A compaction rewrites queueOffset, physicalOffset and preparedTransactionOffset.
_OFFSETS: Final = slice(QUEUE_OFFSET_AT, QUEUE_OFFSET_AT + 16)
_PREPARED_AT: Final = 4
_INT64_BYTES: Final = 8
_DIGEST_BYTES: Final = 12
# ``broker.store.layout.compaction.ENTRY``.
_ENTRY: Final = np.dtype(
    [
        ("position", ">i8"),
        ("size", ">i4"),
        ("code", ">i8"),
        ("time", ">i8"),
        ("number", ">i8"),
        ("batch", ">i2"),
        ("compacted", ">i4"),
        ("reserved", ">i4"),
    ]
)
assert _ENTRY.itemsize == ENTRY_BYTES


class ProofTask(NamedTuple):
    """A part of a log, or a log file of an output; pickles.

    Attributes:
        queue_file: path of the compaction queue file of the log file; "" if there is none.
        is_output: whether a place without a record is a fault, unless it is empty.
    """

    files: ReadableFiles
    segment: Segment
    start: int
    stop: int
    is_output: bool
    queue_file: str = ""

    def run(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of this part."""
        met: list[Damage] = []
        reader = SegmentReader(self.files, self.segment, met.append)
        levels = DelayLevels(DEFAULT_DELAY_LEVELS)
        seen = 0
        for block in reader.blocks(self.start, self.stop):
            columns = MessageColumns(block, "", self.segment.base, levels)
            yield _rows(columns, self._entry_faults(columns, seen))
            seen += len(block)
        faults = [place for place in met if self.is_output and self._is_filled(place)]
        faults_told = [f"{self.segment.path} at {place.start}: {place.detail}" for place in faults]
        if self.queue_file and self._entry_count() > seen:
            faults_told.append(f"{self.queue_file} has entries without a message")
        if faults_told:
            yield _fault_rows(faults_told)

    def _is_filled(self, place: Damage) -> bool:
        """Return whether a place has bytes other than zero; files may end with 100 MiB of unwritten zeros."""
        at, end = place.start - self.segment.base, place.end - self.segment.base
        while at < end and (found := self.files.data_range(self.segment.path, at)) is not None:
            start, stop = min(found[0], end), min(found[1], end)
            data = self.files.read(self.segment.path, start, stop - start)
            if data.count(0) < len(data):
                return True
            at = stop
        return False

    def _entry_faults(self, columns: MessageColumns, seen: int) -> pa.Array:
        """Return the fault of each record's entry; null if the entry is correct."""
        count = len(columns.block)
        if not self.queue_file:
            return pa.nulls(count, pa.string())
        data = self.files.read(self.queue_file, seen * ENTRY_BYTES, count * ENTRY_BYTES)
        entries = np.frombuffer(data[: len(data) // ENTRY_BYTES * ENTRY_BYTES], _ENTRY)
        if len(entries) < count:
            return pa.array([f"{self.queue_file} lacks entries"] * count, pa.string())
        block = columns.block
        right = (
            (entries["position"] == block.head["physical_offset"])
            & (entries["size"] == block.head["total_size"])
            & (entries["number"] == block.head["queue_offset"])
            & (entries["time"] == block.store_timestamp)
            & (entries["code"] == columns.column("tagsCode").to_numpy())
            & (entries["batch"] == 1)
        )
        text = f"{self.queue_file} has an entry that differs from its message"
        return pc.if_else(pa.array(right), pa.scalar(None, pa.string()), pa.scalar(text, pa.string()))

    def _entry_count(self) -> int:
        entry = self.files.entry(self.queue_file)
        assert entry is not None
        data = self.files.read(self.queue_file, 0, entry.size)
        entries = np.frombuffer(data[: len(data) // ENTRY_BYTES * ENTRY_BYTES], _ENTRY)
        return int(((entries["position"] >= 0) & (entries["size"] > 0)).sum())


def _rows(columns: MessageColumns, faults: pa.Array) -> pa.RecordBatch:
    block = columns.block
    topics = columns.column("topic")
    bodies = gather(block.data, block.body_at, block.body_end)
    is_op = pc.equal(topics, TRANS_OP_HALF_TOPIC)
    return pa.RecordBatch.from_arrays(
        [
            topics,
            columns.column("queueId"),
            columns.column("queueOffset"),
            columns.column("physicalOffset"),
            columns.column("storeTimestampMs"),
            columns.column("keysText"),
            columns.column("bodySize"),
            pa.array((block.sys_flag & TRANSACTION_MASK).astype(np.int32)),
            columns.column("crcOk"),
            pa.array(_digests(block), pa.binary()),
            pc.if_else(is_op, bodies, pa.scalar(None, pa.binary())),
            faults,
        ],
        schema=_ARROW,
    )


def _digests(block: RecordBlock) -> list[bytes]:
    found = []
    prepared = (block.store_host_end - block.at + _PREPARED_AT).tolist()
    for start, end, at in zip(block.at.tolist(), block.end.tolist(), prepared, strict=True):
        record = bytearray(block.data[start:end])
        record[_OFFSETS] = bytes(16)
        record[at : at + _INT64_BYTES] = bytes(_INT64_BYTES)
        found.append(blake2b(record, digest_size=_DIGEST_BYTES).digest())
    return found


def _fault_rows(faults: list[str]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"position": -1, "fault": text} for text in faults], schema=_ARROW)
