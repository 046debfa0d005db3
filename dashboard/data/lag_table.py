"""LagTable: how far a group is behind, in each queue and in all."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from rewindmq.protocol.body.stats import OffsetWrapper
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.names import retry_topic


@dataclass(frozen=True)
class LagTable:
    """How far a group is behind.

    Attributes:
        lags: messages not yet consumed of each queue.
        total: of all queues.
        largest: what the brokers say of the queues with the largest lags, the largest first.
        behind: topics with a lag, sorted, without the group's retry topic.
        skipping: how many messages the group skips next, by topic: its offsets there are beyond the ends of
            queues, as after a topic was deleted and created again at a broker that kept them.
        inflight: messages of all queues that are popped, and neither acknowledged nor revived.
        last: when the newest consumed message was stored, ms since 1970; 0: unknown.
    """

    lags: Mapping[MessageQueue, int]
    total: int
    largest: Mapping[MessageQueue, OffsetWrapper]
    behind: list[str]
    skipping: Mapping[str, int]
    inflight: int
    last: int


def lag_table(rows: Mapping[MessageQueue, OffsetWrapper], group: str, count: int) -> LagTable:
    """Return the lags of a group's queues. Call it in a worker thread if they may be many.

    Args:
        count: queues in ``largest``, at most.
    """
    lags = {queue: row.broker_offset - row.consumer_offset for queue, row in rows.items()}
    skipping: Counter[str] = Counter()
    for queue, lag in lags.items():
        if lag < 0:
            skipping[queue.topic] -= lag
    largest = heapq.nsmallest(count, lags, key=lambda queue: (-lags[queue], queue))
    return LagTable(
        lags,
        sum(lags.values()),
        {queue: rows[queue] for queue in largest},
        sorted({queue.topic for queue, lag in lags.items() if lag > 0} - {retry_topic(group)}),
        dict(sorted(skipping.items())),
        sum(row.pop_inflight or 0 for row in rows.values()),
        max((row.last_timestamp for row in rows.values()), default=0),
    )
