"""Reads the log for a verification: a row per record, and checks within each part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rewindmq.broker.store.config import DEFAULT_DELAY_LEVELS
from rewindmq.broker.store.consume_queue.tags_code import DelayLevels
from rewindmq.broker.store.layout.index import index_keys, key_hash
from rewindmq.pipeline.decode.damage import Damage, DamageKind
from rewindmq.pipeline.decode.message_columns import MessageColumns
from rewindmq.pipeline.decode.record_block import Int64s, RecordBlock
from rewindmq.pipeline.decode.segment_reader import Segment, SegmentReader
from rewindmq.pipeline.files import ReadableFiles
from rewindmq.pipeline.verify.evidence import (
    EXPECTS_COPY,
    EXPECTS_INDEX_ENTRIES,
    EXPECTS_QUEUE_ENTRY,
    RowKind,
    evidence,
    tally_evidence,
)
from rewindmq.pipeline.verify.report import MAX_EXAMPLES, Tally
from rewindmq.protocol.message.sysflag import TRANSACTION_MASK, MessageSysFlag

_PEEK_BYTES: Final = 64 << 10
_OUTSIDE_QUEUES: Final = (
    int(MessageSysFlag.TRANSACTION_PREPARED),
    int(MessageSysFlag.TRANSACTION_ROLLBACK),
)
_TAG_PREFIX: Final = "T#"
_NEVER: Final = 2**63 - 1
_ROLLBACK: Final = int(MessageSysFlag.TRANSACTION_ROLLBACK)


class QueueBegins(NamedTuple):
    """Log positions from which on a record must have an entry in its queue; pickles.

    A topic that was deleted and created again has messages in the log that belong to no queue. All queues of
    a topic are deleted together, so the queues' own first messages say where that was.

    Attributes:
        queues: "topic/queueId" to the position of the message at queue offset 0; 0 if it is not known.
        topics: the lowest of these positions for each topic: it applies to queues without entries.
    """

    queues: Mapping[str, int]
    topics: Mapping[str, int]

    def of(self, queue: str) -> int:
        """Return the position for a queue "topic/queueId"."""
        found = self.queues.get(queue)
        return self.topics.get(queue.rpartition("/")[0], _NEVER) if found is None else found


class LogTask(NamedTuple):
    """A part of one log; pickles.

    Attributes:
        following: the next segment, if any: the store time of its first record is compared, too.
        begins: see ``QueueBegins``.
        dispatched: log position after the newest record that has an entry in any queue.
        indexed: log positions between which all keys must have index entries, end exclusive; (0, 0) without
            an index.
        is_copied: whether each record must be in a Parquet copy.
    """

    store: int
    files: ReadableFiles
    segment: Segment
    start: int
    stop: int
    following: Segment | None
    begins: QueueBegins
    dispatched: int
    indexed: tuple[int, int]
    is_copied: bool = False

    def run(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of this part."""
        return _LogScan(self).run()


class _LogScan:
    def __init__(self, task: LogTask) -> None:
        self._task = task
        self._tally = Tally()
        self._levels = DelayLevels(DEFAULT_DELAY_LEVELS)
        self._newest: tuple[int, int] | None = None

    def run(self) -> Iterator[pa.RecordBatch]:
        task = self._task
        reader = SegmentReader(task.files, task.segment, self._tell)
        for block in reader.blocks(task.start, task.stop):
            self._check_crc(block)
            self._check_times(block)
            yield self._rows(block)
        behind = self._first_behind()
        if behind is not None:
            self._check_times(behind, counted=0)
        self._tally.add(task.store, "log without holes", 0)
        yield tally_evidence(self._tally)

    def _tell(self, damage: Damage) -> None:
        if damage.kind is DamageKind.HOLE:
            text = f"{damage.start} to {damage.end}: {damage.detail}"
            self._tally.add(self._task.store, "log without holes", 1, 1, [(damage.start, text)])

    def _check_crc(self, block: RecordBlock) -> None:
        bad = np.flatnonzero(~block.crc_ok)
        examples = []
        for number in bad[:MAX_EXAMPLES].tolist():
            head = block.head[number]
            position = int(head["physical_offset"])
            text = f"record at {position} (queue {head['queue_id']}, queue offset {head['queue_offset']})"
            examples.append((position, text))
        self._tally.add(self._task.store, "body CRC", len(block), len(bad), examples)
        self._tally.add(self._task.store, "log without holes", len(block))

    def _check_times(self, block: RecordBlock, counted: int | None = None) -> None:
        """Compare store times; rank examples by how far the clock went back, the furthest first."""
        times = block.store_timestamp
        positions = block.head["physical_offset"].astype(np.int64)
        if self._newest is not None:
            positions = np.concatenate(([self._newest[0]], positions))
            times = np.concatenate(([self._newest[1]], times))
        steps: Int64s = np.diff(times)
        back = np.flatnonzero(steps < 0)
        furthest = back[np.argsort(steps[back], kind="stable")][:MAX_EXAMPLES]
        examples = [
            (
                int(steps[number]),
                f"record at {positions[number + 1]}: {-steps[number]} ms earlier than the record before",
            )
            for number in furthest.tolist()
        ]
        checked = max(len(block) if counted is None else counted, len(back))
        self._tally.add(self._task.store, "store times", checked, len(back), examples)
        self._newest = (int(positions[-1]), int(times[-1]))

    def _first_behind(self) -> RecordBlock | None:
        task = self._task
        segment, start = task.segment, task.stop
        if start >= segment.end:
            if task.following is None:
                return None
            segment, start = task.following, task.following.base
        reader = SegmentReader(task.files, segment, _ignore, _PEEK_BYTES)
        position = reader.next_record(start, segment.end)
        if position is None:
            return None
        return next((block for block in reader.blocks(position, position + 1)), None)

    def _rows(self, block: RecordBlock) -> pa.RecordBatch:
        task = self._task
        columns = MessageColumns(block, "", task.segment.base, self._levels)
        topics = columns.column("topic")
        queue_ids = columns.column("queueId").cast(pa.string())
        position = block.head["physical_offset"].astype(np.int64)
        transaction = block.sys_flag & TRANSACTION_MASK
        queues = pc.binary_join_element_wise(topics, queue_ids, "/")
        names = queues.dictionary_encode()
        begins = np.asarray([task.begins.of(name) for name in names.dictionary.to_pylist()], np.int64)
        in_queue = ~np.isin(transaction, _OUTSIDE_QUEUES) & (position >= begins[names.indices.to_numpy()])
        waiting = in_queue & (position >= task.dispatched)
        examples = [
            (at, f"record at {at} has no queue entry yet") for at in position[waiting][:MAX_EXAMPLES].tolist()
        ]
        self._tally.add(task.store, "not dispatched yet", len(block), int(waiting.sum()), examples)
        expects = np.where(in_queue & ~waiting, EXPECTS_QUEUE_ENTRY, 0)
        hashes = others = pa.nulls(len(block), pa.list_(pa.int64()))
        if task.is_copied:
            expects |= EXPECTS_COPY
        begin, end = task.indexed
        if end > begin:
            indexed = (position >= begin) & (position < end) & (transaction != _ROLLBACK)
            expects |= np.where(indexed, EXPECTS_INDEX_ENTRIES, 0)
            hashes, others = _hashes(columns), _tag_hashes(columns)
        return evidence(
            task.store,
            RowKind.RECORD,
            position=position,
            size=columns.column("storeSize"),
            queue=queues,
            number=columns.column("queueOffset"),
            code=columns.column("tagsCode"),
            time=block.store_timestamp,
            expects=expects.astype(np.int32),
            hashes=hashes,
            others=others,
        )


def _hashes(columns: MessageColumns) -> pa.Array:
    rows = zip(
        columns.column("topic").to_pylist(),
        columns.column("uniqueKey").to_pylist(),
        columns.column("keysText").to_pylist(),
        strict=True,
    )
    return pa.array(
        [[key_hash(topic, key) for key in index_keys(unique, keys)] for topic, unique, keys in rows],
        pa.list_(pa.int64()),
    )


def _tag_hashes(columns: MessageColumns) -> pa.Array:
    """Return the hashes of tags; only 5.5.0 also indexes tags."""
    rows = zip(columns.column("topic").to_pylist(), columns.column("tag").to_pylist(), strict=True)
    return pa.array(
        [[key_hash(topic, f"{_TAG_PREFIX}{tags}")] if tags else None for topic, tags in rows],
        pa.list_(pa.int64()),
    )


def _ignore(_damage: Damage) -> None:
    pass
