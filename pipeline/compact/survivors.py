"""Selects the messages to keep: the queries of a compaction.

``group`` finds the newest message of each key. It uses only values of fixed width, so that Spark combines
them in a hash table before it sends data between tasks, even if a key occurs often. ``survivors`` then reads
one row per key, not the log.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from rewindmq.pipeline.compact.options import CompactOptions, Format, Scope
from rewindmq.pipeline.compact.topics import Treatment
from rewindmq.pipeline.engines.engine import Engine, Rows

# Number of rows that one task of a later step sorts in memory.
ROWS_PER_PART: Final = 500_000
MAY_BE_KEPT: Final = (Treatment.KEYED, Treatment.WHOLE, Treatment.HALF, Treatment.END)


class QueueTotals(NamedTuple):
    """Sums over one queue's messages of one kind.

    Attributes:
        messages: messages that this run read, including superseded ones of kind KEYED.
        carried: messages that the previous run kept.
        groups: for kind KEYED: number of distinct keys.
        newest: highest queue offset.
        newest_store_timestamp: ms.
        last: log position of the last message that this run read; -1 for none.
        lowest: lowest queue offset that this run read; None for none.
        newest_at: log position of the newest message; -1 if an earlier run read it.
    """

    topic: str
    queue_id: int
    kind: Treatment
    messages: int
    carried: int
    groups: int
    newest: int
    newest_store_timestamp: int
    last: int
    lowest: int | None
    newest_at: int


_GROUP: Final = """
    SELECT topic, queueId, kind, key, alone,
        MAX(queueOffset) AS queueOffset,
        MAX_BY(physicalOffset, queueOffset) AS physicalOffset,
        MAX_BY(packed, queueOffset) AS packed,
        MAX_BY(storeTimestamp, queueOffset) AS storeTimestamp,
        MAX_BY(origin, queueOffset) AS origin,
        MAX(storeTimestamp) AS newestStoreTimestamp,
        MAX(CASE WHEN origin < 0 THEN physicalOffset ELSE -1 END) AS last,
        MIN(CASE WHEN origin < 0 THEN queueOffset END) AS lowest,
        MAX_BY(CASE WHEN origin < 0 THEN physicalOffset ELSE -1 END, queueOffset) AS newestAt,
        CAST(SUM(CASE WHEN origin < 0 THEN 1 ELSE 0 END) AS BIGINT) AS messages,
        CAST(SUM(CASE WHEN origin < 0 THEN 0 ELSE 1 END) AS BIGINT) AS carried
    FROM {rows} GROUP BY topic, queueId, kind, key, alone
"""
_TOTALS: Final = f"""
    SELECT topic, queueId, kind,
        CAST(SUM(messages) AS BIGINT) AS messages,
        CAST(SUM(carried) AS BIGINT) AS carried,
        COUNT(*) AS keys,
        MAX(queueOffset) AS newest,
        MAX(newestStoreTimestamp) AS newestTime,
        MAX(last) AS last,
        MIN(lowest) AS lowest,
        MAX_BY(newestAt, queueOffset) AS newestAt
    FROM {{groups}} WHERE kind NOT IN ({Treatment.DAMAGE:d}, {Treatment.NAMED_HALF:d})
    GROUP BY topic, queueId, kind
"""


def group(engine: Engine, rows: Rows) -> Rows:
    """Return one row per key and queue from rows of ``scan.SCHEMA``: its newest message, and the count."""
    return engine.query(_GROUP, rows=rows)


def queue_totals(engine: Engine, groups: Rows) -> list[QueueTotals]:
    """Return the sums by queue and kind: as many rows as queues and kinds."""
    found = engine.query(_TOTALS, groups=groups).collect()
    return [QueueTotals(topic, queue_id, Treatment(kind), *rest) for topic, queue_id, kind, *rest in found]


def damaged_places(engine: Engine, groups: Rows, limit: int) -> tuple[int, list[list[Any]]]:
    """Return the number of damaged places, and the first of them: kind, start, end, detail."""
    places = f"FROM {{groups}} WHERE kind = {Treatment.DAMAGE:d}"
    columns = f"SELECT topic, physicalOffset, queueOffset, key {places} ORDER BY physicalOffset LIMIT {limit}"
    first = [list(row) for row in engine.query(columns, groups=groups).collect()]
    if len(first) < limit:
        return len(first), first
    ((count,),) = engine.query(f"SELECT COUNT(*) AS places {places}", groups=groups).collect()
    return count, first


def keys_of_topics(engine: Engine, groups: Rows) -> dict[str, int]:
    """Return the number of distinct keys of each topic, over all its queues."""
    text = (
        f"SELECT topic, COUNT(DISTINCT key) FROM {{groups}} WHERE kind = {Treatment.KEYED:d} GROUP BY topic"
    )
    return dict(engine.query(text, groups=groups).collect())


def survivors(
    engine: Engine,
    groups: Rows,
    options: CompactOptions,
    newest_store_timestamp: int,
    *,
    has_halves: bool,
) -> Rows:
    """Return the rows to keep; a message that is kept only for its queue's end has ``kind`` END.

    The compaction format keeps each queue's newest message with a key. Otherwise the queue would end before
    the offsets of groups that have already consumed the message.

    Args:
        newest_store_timestamp: of the whole log, ms; the grace of tombstones counts back from it.
        has_halves: whether there are messages of kind HALF; without them, a join less is needed.
    """
    is_keyed = f"kind IN ({Treatment.KEYED:d}, {Treatment.END:d})"
    has_ends = options.format is Format.COMPACTION
    text = f"""
        WITH candidates AS (
            SELECT * FROM {{groups}} AS message
            WHERE kind IN ({", ".join(f"{kind:d}" for kind in MAY_BE_KEPT)}) {_UNNAMED if has_halves else ""}
        ),
        ends AS (
            SELECT topic AS endTopic, queueId AS endQueueId, MAX(queueOffset) AS queueEnd
            FROM {{groups}} WHERE {is_keyed} GROUP BY topic, queueId
        ),
        decided AS (SELECT *, {_is_kept(options, newest_store_timestamp)} AS isKept FROM candidates),
        ended AS (
            SELECT /*+ BROADCAST(ends) */ decided.*,
                {is_keyed if has_ends else "FALSE"} AND NOT isKept AND COALESCE(queueOffset = queueEnd, FALSE)
                AS isEnd
            FROM decided LEFT JOIN ends ON topic = endTopic AND queueId = endQueueId
        )
        SELECT topic, queueId, queueOffset, physicalOffset, packed, storeTimestamp, key,
            CASE WHEN isEnd THEN {Treatment.END:d} ELSE kind END AS kind, origin
        FROM ended WHERE isKept OR isEnd
    """
    return engine.query(text, groups=groups)


# Half messages that no op record names.
_UNNAMED: Final = f"""
    AND NOT EXISTS (
        SELECT 1 FROM {{groups}} AS named
        WHERE named.kind = {Treatment.NAMED_HALF:d} AND message.kind = {Treatment.HALF:d}
            AND named.queueId = message.queueId AND named.queueOffset = message.queueOffset
    )
"""


def _is_kept(options: CompactOptions, newest_store_timestamp: int) -> str:
    is_kept = "packed % 2 = 0"
    if options.tombstone_grace_ms:
        until = newest_store_timestamp - options.tombstone_grace_ms
        is_kept = f"({is_kept} OR storeTimestamp >= {until})"
    if options.scope is Scope.TOPIC:
        is_kept += (
            " AND ROW_NUMBER() OVER"
            " (PARTITION BY topic, key, alone ORDER BY storeTimestamp DESC, physicalOffset DESC) = 1"
        )
    return f"CASE WHEN kind = {Treatment.KEYED:d} THEN {is_kept} ELSE kind <> {Treatment.END:d} END"


def in_order(rows: Rows, count: int, is_store: bool) -> Rows:
    """Return the rows in the order of the output; a part has about ``ROWS_PER_PART`` rows."""
    order = ["physicalOffset"] if is_store else ["topic", "queueId", "queueOffset"]
    return rows.sorted(order, count // ROWS_PER_PART + 1)
