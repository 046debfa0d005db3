"""Comparison of two groups: the stored offsets of both, queue by queue."""

from __future__ import annotations

import asyncio
import heapq
from dataclasses import dataclass, field
from typing import NamedTuple

from rewindmq.dashboard.data.answer import Answer
from rewindmq.dashboard.data.cluster_source import ClusterSource, Queues, in_order
from rewindmq.protocol.body.stats import OffsetWrapper
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.names import RETRY_GROUP_TOPIC_PREFIX


class Pair(NamedTuple):
    """One queue: what brokers say of the left and of the right group; None: it has no stored offset there."""

    queue: MessageQueue
    left: OffsetWrapper | None
    right: OffsetWrapper | None

    @property
    def ahead(self) -> int | None:
        """Messages that the left group has consumed and the right one has not; negative: the other way."""
        if self.left is None or self.right is None:
            return None
        return self.left.consumer_offset - self.right.consumer_offset


@dataclass(frozen=True)
class GroupComparison:
    """Two groups side by side, without the groups' own retry topics.

    Attributes:
        queues: number of queues of either group.
        differing: of these, those in which the groups do not stand at the same offset.
        rows: the queues with the largest differences, the largest first.
        topics: topics, sorted; of each, if the left and if the right group has a stored offset there.
        left_lag: messages that the left group is behind in all queues.
        right_lag: messages that the right group is behind in all queues.
        left_problem: why the left group's offsets are not known, a sentence; then there are no queues.
        right_problem: the same of the right group.
        is_absent: one of the groups does not exist.
        problems: one sentence for each broker that could not be asked.
    """

    queues: int = 0
    differing: int = 0
    rows: tuple[Pair, ...] = ()
    topics: dict[str, tuple[bool, bool]] = field(default_factory=dict)
    left_lag: int = 0
    right_lag: int = 0
    left_problem: str | None = None
    right_problem: str | None = None
    problems: dict[str, str] = field(default_factory=dict)
    is_absent: bool = False


def lag_of(row: OffsetWrapper) -> int:
    """Return the messages behind the end of the queue."""
    return row.broker_offset - row.consumer_offset


async def compare(source: ClusterSource, left: str, right: str, topic: str, rows: int) -> GroupComparison:
    """Ask every broker for the offsets of both groups at the same time.

    Args:
        topic: only queues of this topic; "": of all.
        rows: queues in the comparison's ``rows``, at most.
    """
    answers = await asyncio.gather(source.group_queues(left), source.group_queues(right))
    if answers[0].value is None or answers[1].value is None:
        return GroupComparison(
            left_problem=_problem(answers[0], left),
            right_problem=_problem(answers[1], right),
            is_absent=any(answer.is_absent for answer in answers),
        )
    # In a worker thread: 50,000 queues would hold the event loop.
    return await source.runtime.workers.run(_compared, answers[0].value, answers[1].value, topic, rows)


def _compared(
    left: Queues[OffsetWrapper], right: Queues[OffsetWrapper], topic: str, rows: int
) -> GroupComparison:
    first, second = _rows(left, topic), _rows(right, topic)
    problems = left.problems | right.problems
    pairs = [
        Pair(queue, first.get(queue), second.get(queue))
        for queue in in_order(first.keys() | second.keys())
        # A broker that answered for one group only would look as if the other had no offset.
        if queue.broker_name not in problems
    ]
    of_left = {pair.queue.topic for pair in pairs if pair.left is not None}
    of_right = {pair.queue.topic for pair in pairs if pair.right is not None}
    return GroupComparison(
        queues=len(pairs),
        differing=sum(pair.ahead != 0 for pair in pairs),
        rows=tuple(heapq.nsmallest(rows, pairs, key=_largest_first)),
        topics={name: (name in of_left, name in of_right) for name in sorted(of_left | of_right)},
        left_lag=sum(lag_of(pair.left) for pair in pairs if pair.left is not None),
        right_lag=sum(lag_of(pair.right) for pair in pairs if pair.right is not None),
        problems=problems,
    )


def _largest_first(pair: Pair) -> tuple[bool, int]:
    return pair.ahead is not None, -abs(pair.ahead or 0)


def _problem(answer: Answer[Queues[OffsetWrapper]], group: str) -> str | None:
    if answer.problem is None:
        return None
    return f"Group {group}: {answer.problem}." if answer.is_absent else answer.sentence


def _rows(queues: Queues[OffsetWrapper], topic: str) -> dict[MessageQueue, OffsetWrapper]:
    return {
        queue: row
        for queue, row in queues.rows.items()
        if not queue.topic.startswith(RETRY_GROUP_TOPIC_PREFIX) and topic in ("", queue.topic)
    }
