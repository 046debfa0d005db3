"""The only pass over the log: a row for every message that may be kept or decides about others.

The data source's views do not have these rows: ``messages`` has none for damage and for half messages that op
records name, and checks CRCs only by copying bodies. A compaction needs all of this in one read of the log.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rewindmq.broker.store.config import DEFAULT_DELAY_LEVELS
from rewindmq.broker.store.consume_queue.tags_code import DelayLevels
from rewindmq.pipeline.compact.topics import TopicRules, Treatment
from rewindmq.pipeline.decode.damage import Damage, DamageKind
from rewindmq.pipeline.decode.gather import gather
from rewindmq.pipeline.decode.message_columns import MessageColumns
from rewindmq.pipeline.decode.record_block import Bools, Int64s, RecordBlock
from rewindmq.pipeline.decode.segment_reader import Segment, SegmentReader
from rewindmq.pipeline.engines.engine import Engine, Rows
from rewindmq.pipeline.files import ReadableFiles
from rewindmq.protocol.message.sysflag import TRANSACTION_MASK, MessageSysFlag
from rewindmq.protocol.names import SCHEDULE_TOPIC, TRANS_HALF_TOPIC, TRANS_OP_HALF_TOPIC

SPLIT_BYTES: Final = 64 << 20
# Value of "alone" for rows that are grouped by their other fields only.
SHARED: Final = -1
# Value of "origin" for a message whose bytes come from the source, not from the previous generation.
FROM_SOURCE: Final = -1

# "packed" is twice the record's size in bytes, plus one if the body is empty. "origin" is a position in the
# previous generation. "alone" is one of the fields by which rows are grouped: a unique value keeps a row in a
# group of its own.
SCHEMA: Final = (
    "topic string, queueId int, kind int, key string, alone bigint, queueOffset bigint,"
    " physicalOffset bigint, packed bigint, storeTimestamp bigint, origin bigint"
)
ARROW_SCHEMA: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("queueId", pa.int32()),
        ("kind", pa.int32()),
        ("key", pa.string()),
        ("alone", pa.int64()),
        ("queueOffset", pa.int64()),
        ("physicalOffset", pa.int64()),
        ("packed", pa.int64()),
        ("storeTimestamp", pa.int64()),
        ("origin", pa.int64()),
    ]
)
# Kinds for which a damaged body matters.
_COUNTED: Final = (Treatment.KEYED, Treatment.WHOLE, Treatment.HALF, Treatment.DONE)
_OUTSIDE_QUEUES: Final = (
    int(MessageSysFlag.TRANSACTION_PREPARED),
    int(MessageSysFlag.TRANSACTION_ROLLBACK),
)

Kinds = npt.NDArray[np.int32]


class CompactScanPlan(NamedTuple):
    """Input of a scan's tasks.

    Attributes:
        keep_keyless: whether to keep messages of compacted topics that have no key.
    """

    files: ReadableFiles
    segments: tuple[Segment, ...]
    rules: TopicRules
    keep_keyless: bool


def scan_log(engine: Engine, plan: CompactScanPlan, begin: int, end: int) -> Rows:
    """Return rows of ``SCHEMA`` for the records that begin at log positions [begin, end)."""
    parts = [
        (segment, start, min(start + SPLIT_BYTES, segment.end, end))
        for segment in plan.segments
        for start in range(max(segment.base, begin), min(segment.end, end), SPLIT_BYTES)
    ]

    def run(number: int) -> Iterator[pa.RecordBatch]:
        if parts:
            yield from _scan_part(plan, *parts[number])

    return engine.tasks(max(len(parts), 1), run, SCHEMA)


def _scan_part(plan: CompactScanPlan, segment: Segment, start: int, stop: int) -> Iterator[pa.RecordBatch]:
    met: list[Damage] = []
    reader = SegmentReader(plan.files, segment, met.append)
    for block in reader.blocks(start, stop):
        yield from scan_block(plan, segment.base, block)
    if met:
        yield _damage_rows(met)


def scan_block(plan: CompactScanPlan, base: int, block: RecordBlock) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one block of records; ``base`` is the segment's."""
    columns = MessageColumns(block, "", base, DelayLevels(DEFAULT_DELAY_LEVELS))
    topics = columns.column("topic").dictionary_encode()
    topic_of = topics.indices.to_numpy()
    names = topics.dictionary.to_pylist()
    kinds = _kinds(plan.rules, names, topic_of, block)
    bad = _bad_crc(block, kinds)
    keys = columns.column("keysText")
    kinds[(kinds == Treatment.KEYED) & _is_blank(keys)] = (
        Treatment.WHOLE if plan.keep_keyless else Treatment.KEYLESS
    )
    kinds[bad] = Treatment.DAMAGED
    yield _message_rows(block, topics, keys, kinds)
    if bad.any():
        yield _damage_rows(_bad_records(base, block.select(np.flatnonzero(bad))))
    is_op = np.isin(topic_of, [place for place, name in enumerate(names) if name == TRANS_OP_HALF_TOPIC])
    if is_op.any() and (kinds[is_op] == Treatment.DONE).any():
        yield _named_halves(block.select(np.flatnonzero(is_op & (kinds == Treatment.DONE))))


def _message_rows(
    block: RecordBlock, topics: pa.DictionaryArray, keys: pa.Array, kinds: Kinds
) -> pa.RecordBatch:
    physical_offset = block.head["physical_offset"].astype(np.int64)
    is_alone = (kinds == Treatment.WHOLE) | (kinds == Treatment.HALF)
    size = block.head["total_size"].astype(np.int64)
    return pa.RecordBatch.from_arrays(
        [
            topics.dictionary.take(topics.indices),
            pa.array(block.head["queue_id"].astype(np.int32)),
            pa.array(kinds),
            pc.if_else(pa.array(kinds == Treatment.KEYED), keys, pa.scalar(None, pa.string())),
            pa.array(np.where(is_alone, physical_offset, SHARED)),
            pa.array(block.head["queue_offset"].astype(np.int64)),
            pa.array(physical_offset),
            pa.array(2 * size + (block.tail["body_length"] == 0)),
            pa.array(block.store_timestamp),
            pa.array(np.full(len(block), FROM_SOURCE, np.int64)),
        ],
        schema=ARROW_SCHEMA,
    )


def _kinds(rules: TopicRules, names: list[str], topic_of: Int64s, block: RecordBlock) -> Kinds:
    by_topic = np.asarray([rules.kind_of(name) for name in names], np.int32)
    kinds: Kinds = by_topic[topic_of]
    if SCHEDULE_TOPIC in names:
        delayed = np.flatnonzero((topic_of == names.index(SCHEDULE_TOPIC)) & (kinds == Treatment.WHOLE))
        for record in delayed.tolist():
            head = block.head[record]
            if int(head["queue_offset"]) < rules.first_undelivered(int(head["queue_id"])):
                kinds[record] = Treatment.DONE
    transaction = block.sys_flag & TRANSACTION_MASK
    kinds[np.isin(transaction, _OUTSIDE_QUEUES)] = Treatment.OUTSIDE
    return kinds


def _bad_crc(block: RecordBlock, kinds: Kinds) -> Bools:
    """Return which records that will be copied have a body that does not match its CRC."""
    bad: Bools = np.zeros(len(block), np.bool_)
    counted = np.flatnonzero(np.isin(kinds, _COUNTED))
    bad[counted] = ~block.select(counted).crc_ok
    return bad


def _is_blank(keys: pa.Array) -> Bools:
    """Return whether each KEYS is blank; to 5.3.3's CompactionLog such a message has no key."""
    blank = pc.or_(pc.equal(keys, ""), pc.utf8_is_space(keys))
    found: Bools = pc.fill_null(blank, True).to_numpy(zero_copy_only=False)
    return found


def _bad_records(base: int, block: RecordBlock) -> list[Damage]:
    start = block.head["physical_offset"].astype(np.int64)
    end = start + block.head["total_size"].astype(np.int64)
    detail = "the body does not match the CRC that its record states"
    return [
        Damage(DamageKind.BAD_CRC, base, first, last, detail)
        for first, last in zip(start.tolist(), end.tolist(), strict=True)
    ]


def _damage_rows(damage: Sequence[Damage]) -> pa.RecordBatch:
    return _other_rows(
        [
            {
                "topic": str(place.kind),
                "queueId": 0,
                "kind": int(Treatment.DAMAGE),
                "key": place.detail,
                "alone": place.start,
                "queueOffset": place.end,
                "physicalOffset": place.start,
            }
            for place in damage
        ]
    )


def _named_halves(ops: RecordBlock) -> pa.RecordBatch:
    """Return a row for each half message that op records name: one per record in 4.x, several in 5.x."""
    rows = []
    bodies = gather(ops.data, ops.body_at, ops.body_end).to_pylist()
    for body, queue_id in zip(bodies, ops.head["queue_id"].tolist(), strict=True):
        for piece in body.split(b","):
            if piece.strip().isdigit():
                offset = int(piece)
                rows.append(
                    {
                        "topic": TRANS_HALF_TOPIC,
                        "queueId": queue_id,
                        "kind": int(Treatment.NAMED_HALF),
                        "key": None,
                        "alone": offset,
                        "queueOffset": offset,
                        "physicalOffset": 0,
                    }
                )
    return _other_rows(rows)


def _other_rows(rows: Sequence[Mapping[str, object]]) -> pa.RecordBatch:
    rest = {"packed": 0, "storeTimestamp": 0, "origin": FROM_SOURCE}
    return pa.RecordBatch.from_pylist([{**row, **rest} for row in rows], schema=ARROW_SCHEMA)
