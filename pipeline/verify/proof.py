"""Proves a compaction: derives from the log alone what the output must keep and drop.

It does not use the job's own code for this, and takes only the options from the job's manifest.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from rewindmq.broker.store.layout.compaction import CQ_FOLDER, FOLDER, LOG_FOLDER
from rewindmq.pipeline.decode.segment_reader import Segment
from rewindmq.pipeline.snapshot.snapshot import PositionedFile, StoreSnapshot, positioned_files
from rewindmq.pipeline.verify.claim import Options, Proof
from rewindmq.pipeline.verify.named_halves import NAMED_SCHEMA, named_halves
from rewindmq.pipeline.verify.offset_proof import DELAY_OFFSETS, check_offsets, offsets_asked
from rewindmq.pipeline.verify.report import Tally
from rewindmq.protocol.names import (
    DLQ_GROUP_TOPIC_PREFIX,
    RETRY_GROUP_TOPIC_PREFIX,
    SCHEDULE_TOPIC,
    TRANS_HALF_TOPIC,
    TRANS_OP_HALF_TOPIC,
    is_system_topic,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from rewindmq.pipeline.engines.engine import Engine, Rows
    from rewindmq.pipeline.verify.proof_scan import ProofTask

_PART_BYTES: Final = 64 << 20
_PREPARED, _ROLLBACK = 0x4, 0xC
_OFFSET_MAP: Final = "pipeline/offsetMap"


def is_user_topic(topic: str) -> bool:
    """Whether the topic holds an application's own messages."""
    return not (
        is_system_topic(topic)
        or topic == SCHEDULE_TOPIC
        or topic.startswith((RETRY_GROUP_TOPIC_PREFIX, DLQ_GROUP_TOPIC_PREFIX))
    )


def prove(engine: Engine, proof: Proof, tally: Tally) -> None:
    """Compare the output with what the log requires."""
    from rewindmq.pipeline.verify.judge import RESULT
    from rewindmq.pipeline.verify.proof_tally import RANKS, ProofTally

    scanned = _scan(engine, _log_tasks(proof.source))
    offsets = offsets_asked(proof)
    asked = {queue: sorted(set(wanted)) for queue, wanted in offsets.items()}
    counter = ProofTally(proof.number, asked, proof.source.begin)
    ranks: dict[tuple[str, int, int], int] = {}
    with engine.query("SELECT * FROM {scanned} WHERE crcOk", scanned=scanned).kept() as log:
        expected, output = _expected(engine, log, proof), _output(engine, proof)
        both = "SELECT * FROM {expected} FULL OUTER JOIN {output} USING (topic, queueId, queueOffset)"
        rows = engine.query(both, expected=expected, output=output)
        found = rows.map(counter.count, RESULT).collect()
    for store, name, *rest in found:
        if name == RANKS:
            for topic, queue_id, offset, count in json.loads(rest[-1][0]):
                key = (topic, queue_id, offset)
                ranks[key] = ranks.get(key, 0) + count
        else:
            tally.add_rows([(store, name, *rest)])
    check_offsets(proof, ranks, tally)


# Expected rows, from the log.


def _expected(engine: Engine, log: Rows, proof: Proof) -> Rows:
    """Return the log's records that are in queues, with the columns ``must`` and ``may`` (be kept).

    The newest messages are found by sums instead of a window, so that a frequent key does not end up in one
    task.
    """
    options = proof.options
    is_done = "isDone IS NOT NULL"
    newest = engine.query("SELECT MAX(time) AS newest FROM {log}", log=log).collect()[0][0]
    until = (newest or 0) - options.grace_ms
    in_grace = f"time >= {until}" if options.grace_ms > 0 else "FALSE"
    # On a live store, it is unknown whether a delayed message was delivered before the compaction or after.
    may_be_delivered = "FALSE" if proof.is_settled else f"topic = '{SCHEDULE_TOPIC}'"
    text = f"""
        WITH messages AS (
            SELECT topic, queueId, queueOffset, position, time, bodySize, digest,
                compactedTopic IS NOT NULL AS isCompacted,
                CASE WHEN compactedTopic IS NOT NULL AND REPLACE(key, ' ', '') <> '' THEN key END AS key
            FROM {{log}} AS records LEFT JOIN {{compacted}} AS compacted ON topic = compactedTopic
            WHERE transaction NOT IN ({_PREPARED}, {_ROLLBACK})
        ),
        newest AS (
            SELECT {_NEWEST_BY_TOPIC if options.by_topic else _NEWEST_BY_QUEUE}
        ),
        ends AS (
            SELECT topic, queueId, MAX(queueOffset) AS queueOffset, TRUE AS atEnd
            FROM messages WHERE key IS NOT NULL GROUP BY topic, queueId
        ),
        done AS (SELECT DISTINCT topic, queueId, queueOffset, TRUE AS isDone FROM {{named}} AS named),
        joined AS (
            SELECT * FROM messages
            LEFT JOIN newest USING (topic, queueId, queueOffset)
            LEFT JOIN ends USING (topic, queueId, queueOffset)
            LEFT JOIN done USING (topic, queueId, queueOffset)
        ),
        judged AS (
            SELECT *, CASE
                WHEN key IS NOT NULL THEN isNewest IS NOT NULL AND (bodySize <> 0 OR {in_grace})
                WHEN isCompacted THEN {str(options.keeps_keyless).upper()}
                ELSE {_kept_elsewhere(proof, is_done)} END AS must
            FROM joined
        )
        SELECT topic, queueId, queueOffset, position AS sourcePosition, digest AS sourceDigest, must,
            must OR {"FALSE" if options.is_store else "atEnd IS NOT NULL"} OR {may_be_delivered} AS may,
            CASE
                WHEN key IS NULL THEN 'other'
                WHEN isNewest IS NULL THEN 'superseded'
                WHEN bodySize = 0 THEN 'tombstone'
                ELSE 'newest' END AS role
        FROM judged
    """
    return engine.query(
        text, log=log, compacted=_compacted(engine, log, options), named=log.map(named_halves, NAMED_SCHEMA)
    )


_NEWEST_BY_QUEUE: Final = (
    "topic, queueId, MAX(queueOffset) AS queueOffset, TRUE AS isNewest FROM messages"
    " WHERE key IS NOT NULL GROUP BY topic, queueId, key"
)
_NEWEST_BY_TOPIC: Final = (
    "topic, MAX_BY(queueId, (time, position)) AS queueId,"
    " MAX_BY(queueOffset, (time, position)) AS queueOffset, TRUE AS isNewest FROM messages"
    " WHERE key IS NOT NULL GROUP BY topic, key"
)


def _compacted(engine: Engine, log: Rows, options: Options) -> Rows:
    """Return the compacted topics."""
    if options.chosen is not None:
        topics = sorted(options.chosen)
    else:
        found = engine.query("SELECT DISTINCT topic FROM {log}", log=log).collect()
        topics = [topic for (topic,) in found if is_user_topic(topic)]

    def run(_number: int) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        yield pa.RecordBatch.from_arrays([pa.array(topics, pa.string())], ["compactedTopic"])

    return engine.tasks(1, run, "compactedTopic string")


def _kept_elsewhere(proof: Proof, is_done: str) -> str:
    """Return the condition for a kept message of an uncompacted topic.

    Only format store keeps any: all except delivered delayed messages, half messages that an op record names,
    and op records.
    """
    if not proof.options.is_store:
        return "FALSE"
    table = proof.source.config(DELAY_OFFSETS).get("offsetTable") or {}
    levels = " ".join(
        f"WHEN queueId = {int(level) - 1} THEN {int(offset)}" for level, offset in table.items()
    )
    first = f"CASE {levels} ELSE 0 END" if levels else "0"
    return (
        f"CASE WHEN topic = '{SCHEDULE_TOPIC}' THEN queueOffset >= {first}"
        f" WHEN topic = '{TRANS_HALF_TOPIC}' THEN NOT ({is_done})"
        f" ELSE topic <> '{TRANS_OP_HALF_TOPIC}' END"
    )


# Actual rows, from the output.


def _output(engine: Engine, proof: Proof) -> Rows:
    """Return the output's records by their old queue offsets, each with its predecessor in its queue."""
    # A compaction store keeps queue offsets, so the comparison does not need its offset map.
    old = "mapOffset" if proof.options.is_store else "COALESCE(newOffset, mapOffset)"
    queue = "PARTITION BY topic, queueId ORDER BY outPosition NULLS FIRST"
    text = f"""
        WITH found AS (
            SELECT topic, queueId, queueOffset AS newOffset, position AS outPosition, digest AS outDigest,
                fault, LAG(queueOffset) OVER (PARTITION BY topic, queueId ORDER BY position) AS newBefore
            FROM {{records}} AS records
        ),
        mapped AS (
            SELECT topic, queueId, newQueueOffset AS newOffset, newPhysicalOffset AS mapPosition,
                queueOffset AS mapOffset, physicalOffset AS mapSource
            FROM {{offset_map}} AS offset_map
        ),
        joined AS (SELECT * FROM found FULL OUTER JOIN mapped USING (topic, queueId, newOffset)),
        numbered AS (SELECT *, {old} AS queueOffset FROM joined)
        SELECT *, LAG(queueOffset) OVER ({queue}) AS oldBefore,
            COUNT(*) OVER (PARTITION BY topic, queueId, queueOffset) AS copies
        FROM numbered
    """
    offset_map = engine.saved(proof.output, f"{proof.folder}/{_OFFSET_MAP}", f"{proof.uri}/{_OFFSET_MAP}")
    return engine.query(text, records=_scan(engine, _output_tasks(proof)), offset_map=offset_map)


def _scan(engine: Engine, tasks: Sequence[ProofTask]) -> Rows:
    from rewindmq.pipeline.verify.proof_scan import SCHEMA

    def run(number: int) -> Iterator[pa.RecordBatch]:
        if tasks:
            yield from tasks[number].run()

    return engine.tasks(max(len(tasks), 1), run, SCHEMA)


def _log_tasks(snapshot: StoreSnapshot) -> list[ProofTask]:
    from rewindmq.pipeline.verify.proof_scan import ProofTask

    return [
        ProofTask(snapshot.files, segment, start, min(start + _PART_BYTES, segment.end), is_output=False)
        for segment in snapshot.segments
        for start in range(segment.base, segment.end, _PART_BYTES)
    ]


def _output_tasks(proof: Proof) -> list[ProofTask]:
    from rewindmq.pipeline.verify.proof_scan import ProofTask

    files, folder = proof.output, f"{proof.folder}/{FOLDER}/{LOG_FOLDER}"
    if proof.options.is_store:
        found = positioned_files(files, f"{proof.folder}/commitlog")
        return [ProofTask(files, _whole(file), file.base, file.base + file.size, True) for file in found]
    tasks = []
    for topic in files.list(folder):
        for queue in files.list(f"{folder}/{topic.name}"):
            queue_folder = f"{proof.folder}/{FOLDER}/{CQ_FOLDER}/{topic.name}/{queue.name}"
            tasks += [
                ProofTask(
                    files,
                    _whole(file),
                    file.base,
                    file.base + file.size,
                    True,
                    f"{queue_folder}/{file.base:020d}",
                )
                for file in positioned_files(files, f"{folder}/{topic.name}/{queue.name}")
            ]
    return tasks


def _whole(file: PositionedFile) -> Segment:
    return Segment(file.path, file.base, file.size, file.base + file.size)
