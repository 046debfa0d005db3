"""The only pass over the log that a plan needs: keys, sizes and store times, no bodies.

The driver receives only sums, whose size does not grow with the log. Rows are summed by queue and bin, and by
queue and key; the latter sums are then summed by queue.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from rewindmq.pipeline.engines.engine import Engine
from rewindmq.pipeline.replay.plan import Bins, MessageLoad, Mode

_COLUMNS: Final = (
    "topic",
    "queueId",
    "queueOffset",
    "physicalOffset",
    "storeSize",
    "keysText",
    "storeTimestampMs",
    "transactionState",
)


class Span(NamedTuple):
    """The messages of one queue that a mode affects: ``start`` <= ``stop``; equal for none."""

    start: int
    stop: int


class QueueSpans(NamedTuple):
    """The messages to read from one queue.

    Attributes:
        store: index of the store.
        low_position: log position of the first message to read.
        max_offset: messages from this offset on are ignored: a live store got them after the plan began.
    """

    store: int
    queue_id: int
    low_position: int
    max_offset: int
    spans: Mapping[Mode, Span]

    @property
    def low(self) -> int:
        """First queue offset to read."""
        return min(span.start for span in self.spans.values())


class ReplayScan(NamedTuple):
    """The results of the pass.

    Attributes:
        loads: by (store, queue id) and mode.
        histograms: by (store, queue id) and mode: a number per bin.
        distinct_keys: by mode and whether queues move ahead: distinct keys over all queues.
    """

    loads: Mapping[tuple[int, int, Mode], MessageLoad]
    histograms: Mapping[tuple[int, int, Mode], tuple[int, ...]]
    distinct_keys: Mapping[tuple[Mode, bool], int]


NOTHING_FOUND: Final = ReplayScan(MappingProxyType({}), MappingProxyType({}), MappingProxyType({}))


def scan(
    engine: Engine,
    locations: Sequence[str],
    topic: str,
    queues: Sequence[QueueSpans],
    ahead: Mapping[tuple[int, int, Mode], bool],
    bins: Bins,
) -> ReplayScan:
    """Read the messages of ``queues``; at least one queue must have a non-empty span.

    Args:
        ahead: by (store, queue id, mode): whether the queue moves ahead.
    """
    stores = {
        f"store_{number}": engine.messages(locations[number], _COLUMNS, topic=topic)
        for number in {queue.store for queue in queues}
    }
    sums = engine.query(_sums(_messages(queues), _spans(queues, ahead), bins), **stores)
    with sums.kept() as kept:
        by_bin = engine.query("SELECT * FROM {sums} WHERE isByKey = 0", sums=kept).records()
        keys = engine.query(_BY_QUEUE, sums=kept).records()
        (distinct,) = engine.query(_DISTINCT, sums=kept).records()
    return ReplayScan(
        _loads(by_bin, keys),
        _histograms(by_bin, bins),
        {(mode, way): int(distinct[f"{mode}_{way}"] or 0) for mode in Mode for way in (False, True)},
    )


def _messages(queues: Sequence[QueueSpans]) -> str:
    """Return the query for the stores' messages from the first that a queue needs."""
    parts = []
    for number in sorted({queue.store for queue in queues}):
        mine = [queue for queue in queues if queue.store == number]
        parts.append(
            f"SELECT {number} AS store, {', '.join(_COLUMNS)} FROM {{store_{number}}}"
            f" WHERE physicalOffset >= {min(queue.low_position for queue in mine)}"
            f" AND queueOffset >= {min(queue.low for queue in mine)}"
            " AND transactionState IN ('none', 'commit')"
        )
    return " UNION ALL ".join(parts)


def _spans(queues: Sequence[QueueSpans], ahead: Mapping[tuple[int, int, Mode], bool]) -> str:
    rows = []
    for queue in queues:
        row = [queue.store, queue.queue_id, queue.low, queue.max_offset]
        for mode in Mode:
            row += [*queue.spans[mode], int(ahead[queue.store, queue.queue_id, mode])]
        rows.append(f"({', '.join(map(str, row))})")
    return f"VALUES {', '.join(rows)}"


def _sums(messages: str, spans: str, bins: Bins) -> str:
    """Return the query for the sums by queue and key, and by queue and bin.

    If the clock went back, a time may lie outside all bins: the nearest counts.
    """
    names = ", ".join(f"{mode}_start, {mode}_stop, {mode}_ahead" for mode in Mode)
    inside = ", ".join(
        f"CASE WHEN queueOffset >= {mode}_start AND queueOffset < {mode}_stop THEN 1 ELSE 0 END AS {mode}_in"
        for mode in Mode
    )
    sums = ", ".join(
        f"CAST(SUM({mode}_in) AS BIGINT) AS {mode}_messages,"
        f" CAST(SUM({mode}_in * storeSize) AS BIGINT) AS {mode}_size,"
        f" MAX({mode}_stop) AS {mode}_stop, MAX({mode}_ahead) AS {mode}_ahead"
        for mode in Mode
    )
    number = f"FLOOR((storeTimestampMs - {bins.start}) / {bins.width})"
    return f"""
        WITH messages AS ({messages}),
        spans (store, queueId, low, high, {names}) AS ({spans}),
        affected AS (
            SELECT messages.*, {names}, {inside},
                CAST(GREATEST(0, LEAST({bins.count - 1}, {number})) AS INT) AS bin
            FROM messages JOIN spans ON messages.store = spans.store AND messages.queueId = spans.queueId
            WHERE queueOffset >= low AND queueOffset < high
        )
        SELECT store, queueId, keysText, bin, GROUPING(bin) AS isByKey, MAX(queueOffset) AS newest, {sums}
        FROM affected GROUP BY GROUPING SETS ((store, queueId, keysText), (store, queueId, bin))
    """


def _key_sums(mode: Mode) -> str:
    """All messages of a key except the newest are superseded. The newest message may be after the span."""
    keyed = f"keysText IS NOT NULL AND {mode}_messages > 0"
    newest_inside = f"CASE WHEN newest < {mode}_stop THEN 1 ELSE 0 END"
    return (
        f"CAST(SUM(CASE WHEN {keyed} THEN 1 ELSE 0 END) AS BIGINT) AS {mode}_keys,"
        f" CAST(SUM(CASE WHEN keysText IS NULL THEN {mode}_messages ELSE 0 END) AS BIGINT) AS {mode}_without,"
        f" CAST(SUM(CASE WHEN {keyed} THEN {mode}_messages - {newest_inside} ELSE 0 END) AS BIGINT)"
        f" AS {mode}_superseded"
    )


def _has_key(mode: Mode, *, way: bool) -> str:
    return (
        f"MAX(CASE WHEN {mode}_messages > 0 AND {mode}_ahead = {int(way)} THEN 1 ELSE 0 END) AS {mode}_{way}"
    )


_WAYS: Final = tuple((mode, way) for mode in Mode for way in (False, True))
_BY_QUEUE: Final = (
    f"SELECT store, queueId, {', '.join(map(_key_sums, Mode))} FROM {{sums}} WHERE isByKey = 1"
    " GROUP BY store, queueId"
)
# A key that is in several queues counts once.
_DISTINCT: Final = (
    f"SELECT {', '.join(f'CAST(SUM({mode}_{way}) AS BIGINT) AS {mode}_{way}' for mode, way in _WAYS)} FROM"
    f" (SELECT keysText, {', '.join(_has_key(mode, way=way) for mode, way in _WAYS)} FROM {{sums}}"
    " WHERE isByKey = 1 AND keysText IS NOT NULL GROUP BY keysText) AS keyed"
)


def _loads(by_bin: Sequence[Any], keys: Sequence[Any]) -> dict[tuple[int, int, Mode], MessageLoad]:
    loads = {}
    for row in keys:
        store, queue_id = row["store"], row["queueId"]
        mine = [other for other in by_bin if other["store"] == store and other["queueId"] == queue_id]
        for mode in Mode:
            loads[store, queue_id, mode] = MessageLoad(
                messages=sum(other[f"{mode}_messages"] for other in mine),
                size=sum(other[f"{mode}_size"] for other in mine),
                distinct_keys=row[f"{mode}_keys"],
                without_key=row[f"{mode}_without"],
                superseded=row[f"{mode}_superseded"],
            )
    return loads


def _histograms(by_bin: Sequence[Any], bins: Bins) -> dict[tuple[int, int, Mode], tuple[int, ...]]:
    counts: dict[tuple[int, int, Mode], list[int]] = {}
    for row in by_bin:
        for mode in Mode:
            histogram = counts.setdefault((row["store"], row["queueId"], mode), [0] * bins.count)
            histogram[row["bin"]] += row[f"{mode}_messages"]
    return {key: tuple(histogram) for key, histogram in counts.items()}
