"""The view in_flight: one row per message that a group has popped, and that is neither acknowledged nor
revived."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from rewindmq.pipeline.decode.message_columns import FIRST_MOMENT_MS, LAST_MOMENT_MS, timestamps
from rewindmq.pipeline.options import ReadOptions
from rewindmq.pipeline.schema import IN_FLIGHT, arrow_schema
from rewindmq.pipeline.snapshot.snapshot import StoreSnapshot
from rewindmq.pipeline.views.reader import StorePiece
from rewindmq.pipeline.views.timer_records import TimerRecordReader, queue_positions, whole_numbers
from rewindmq.protocol.pop.records import AckMsg, BatchAckMsg, PopCheckPoint, PopRecordError, decode_record
from rewindmq.protocol.pop.topics import REVIVE_GROUP, REVIVE_TOPIC_PREFIX

if TYPE_CHECKING:
    import pyarrow as pa

_SEPARATOR: Final = "@"
_INT32_MAX: Final = (1 << 31) - 1
_INT64_MAX: Final = (1 << 63) - 1
# Topic, group, queue id, start offset, POP time and broker of a checkpoint.
_Key = tuple[str | None, str | None, int, int, int, str | None]


class _ReviveQueue(NamedTuple):
    """A queue of the revive topic.

    Attributes:
        first: offset of the first record that is not done.
    """

    topic: str
    queue_id: int
    first: int


class InFlightReader(TimerRecordReader):
    """Reads rows of open checkpoints (docs/spec/pop.md 4).

    A checkpoint and its acks are timer messages until shortly before they are due, then records of the revive
    topic. All open checkpoints of a store are in memory, less than 1 KiB each.
    """

    def __init__(self, options: ReadOptions, names: Sequence[str]) -> None:
        """
        Raises:
            PipelineError: a store cannot be read.
        """
        super().__init__(options, names)
        self._revive_queues = [list(_revive_queues(snapshot)) for snapshot in self.snapshots]

    def rows(self, piece: StorePiece) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        points = _Points()
        for queue_id, record in self._records(piece.store):
            points.add(queue_id, record)
        rows = points.rows(self.snapshots[piece.store].name)
        schema = arrow_schema(", ".join(f"{name} {IN_FLIGHT[name].type}" for name in self.names))
        while found := list(islice(rows, self.options.batch_records)):
            columns = [_column(name, [row[name] for row in found], schema) for name in self.names]
            yield pa.RecordBatch.from_arrays(columns, self.names)

    def _records(self, store: int) -> Iterator[tuple[int, PopCheckPoint | AckMsg]]:
        """Yield checkpoints and acks with the ids of their revive queues."""
        snapshot = self.snapshots[store]
        for queue in self._revive_queues[store]:
            positions = queue_positions(snapshot, queue.topic, queue.queue_id, queue.first)
            for columns in self.records_at(store, positions):
                for record in _decoded(columns.column("tag"), columns.column("body")):
                    if record is not None:
                        yield queue.queue_id, record
        timers = self.open_timers(store)
        for columns, _ in self.columns_of(store, timers, timers.positions):
            topics = columns.column("realTopic").to_pylist()
            queue_ids = whole_numbers(columns.column("realQueueId")).tolist()
            records = _decoded(columns.column("tag"), columns.column("body"))
            for topic, queue_id, record in zip(topics, queue_ids, records, strict=True):
                if record is None or not 0 <= queue_id <= _INT32_MAX:
                    continue
                if topic is not None and topic.startswith(REVIVE_TOPIC_PREFIX):
                    yield queue_id, record


def _revive_queues(snapshot: StoreSnapshot) -> Iterator[_ReviveQueue]:
    """Yield the revive queues; a broker that starts continues behind the last checkpoint that is done."""
    table = snapshot.config("consumerOffset.json").get("offsetTable", {})
    for queue in snapshot.queues():
        if queue.topic.startswith(REVIVE_TOPIC_PREFIX):
            stored = table.get(f"{queue.topic}{_SEPARATOR}{REVIVE_GROUP}", {})
            done = {int(number): int(offset) for number, offset in stored.items()}
            yield _ReviveQueue(queue.topic, queue.queue_id, max(done.get(queue.queue_id, -1), -1) + 1)


def _decoded(tags: pa.Array, bodies: pa.Array) -> Iterator[PopCheckPoint | AckMsg | None]:
    """Yield the records; None for what is none, which the broker skips, too."""
    for tag, body in zip(tags.to_pylist(), bodies.to_pylist(), strict=True):
        try:
            yield decode_record(tag, body)
        except PopRecordError:
            yield None


class _Points:
    """The checkpoints, and what is acknowledged of them: bit n of ``bit_map`` is the message at place n."""

    def __init__(self) -> None:
        # With the ids of their revive queues.
        self._points: dict[_Key, tuple[int, PopCheckPoint]] = {}
        # Acks that are read before their checkpoints, and those of old brokers, which do not name the broker.
        self._early: defaultdict[_Key, set[int]] = defaultdict(set)

    def add(self, queue_id: int, record: PopCheckPoint | AckMsg) -> None:
        """Take in one record; the first of several checkpoints with one name counts, as in the broker."""
        key = _key(record)
        if isinstance(record, PopCheckPoint):
            diffs = record.offset_diffs
            is_illegal = record.topic is None or record.consumer_group is None or record.num <= 0
            if not is_illegal and not (diffs and len(diffs) < record.num):
                record.bit_map = 0
                _acknowledge(record, self._early.pop(key, ()))
                self._points.setdefault(key, (queue_id, record))
            return
        offsets = record.ack_offsets if isinstance(record, BatchAckMsg) else (record.ack_offset,)
        known = self._points.get(key)
        if known is None:
            self._early[key].update(offsets)
        else:
            _acknowledge(known[1], offsets)

    def rows(self, store: str) -> Iterator[Mapping[str, Any]]:
        """Yield a row for each message without an ack."""
        for key, (queue_id, point) in self._points.items():
            _acknowledge(point, self._early.get((*key[:5], None), ()))
            visible = min(max(point.revive_time, FIRST_MOMENT_MS), LAST_MOMENT_MS)
            for place, offset in enumerate(point.offsets[: point.num]):
                # A record that names an impossible offset revives nothing.
                if not point.bit_map >> place & 1 and 0 <= offset <= _INT64_MAX:
                    yield {
                        "store": store,
                        "group": point.consumer_group,
                        "topic": point.topic,
                        "queueId": point.queue_id,
                        "queueOffset": offset,
                        "popTimestamp": point.pop_time,
                        "visibleTimestamp": visible,
                        "reviveQueueId": queue_id,
                        "startOffset": point.start_offset,
                        "popTimestampMs": point.pop_time,
                        "visibleTimestampMs": visible,
                    }


def _acknowledge(point: PopCheckPoint, offsets: Iterable[int]) -> None:
    for offset in offsets:
        place = point.index_of(offset)
        if place >= 0:
            point.bit_map |= 1 << place


def _key(record: PopCheckPoint | AckMsg) -> _Key:
    return (
        record.topic,
        record.consumer_group,
        record.queue_id,
        record.start_offset,
        record.pop_time,
        record.broker_name,
    )


def _column(name: str, values: Sequence[Any], schema: pa.Schema) -> pa.Array:
    import pyarrow as pa

    if IN_FLIGHT[name].type == "timestamp":
        return timestamps(np.asarray(values, np.int64))
    return pa.array(values, schema.field(name).type)
