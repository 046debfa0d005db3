"""Comparison of two groups: the stored offsets of both, queue by queue."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from rewindmq.dashboard.data.answer import Answer
from rewindmq.dashboard.data.cluster_source import ClusterSource, Queues
from rewindmq.protocol.body.stats import OffsetWrapper
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.names import RETRY_GROUP_TOPIC_PREFIX


@dataclass(frozen=True)
class Pair:
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
class Comparison:
    """Two groups side by side.

    Attributes:
        pairs: the queues of either group, sorted; without those of the groups' own retry topics.
        left_problem: why the left group's offsets are not known, a sentence; then there are no pairs.
        right_problem: the same of the right group.
        is_absent: one of the groups does not exist.
        problems: one sentence for each broker that could not be asked.
    """

    pairs: tuple[Pair, ...] = ()
    left_problem: str | None = None
    right_problem: str | None = None
    problems: dict[str, str] = field(default_factory=dict)
    is_absent: bool = False

    @property
    def differing(self) -> int:
        """Queues in which the groups do not stand at the same offset."""
        return sum(pair.ahead != 0 for pair in self.pairs)

    @property
    def topics(self) -> dict[str, tuple[bool, bool]]:
        """Topics, sorted; of each, if the left and if the right group has a stored offset there."""
        left = {pair.queue.topic for pair in self.pairs if pair.left is not None}
        right = {pair.queue.topic for pair in self.pairs if pair.right is not None}
        return {topic: (topic in left, topic in right) for topic in sorted(left | right)}

    @property
    def left_lag(self) -> int:
        """Messages that the left group is behind in all queues."""
        return sum(lag_of(pair.left) for pair in self.pairs if pair.left is not None)

    @property
    def right_lag(self) -> int:
        """Messages that the right group is behind in all queues."""
        return sum(lag_of(pair.right) for pair in self.pairs if pair.right is not None)


def lag_of(row: OffsetWrapper) -> int:
    """Return the messages behind the end of the queue."""
    return row.broker_offset - row.consumer_offset


async def compare(source: ClusterSource, left: str, right: str, topic: str = "") -> Comparison:
    """Ask every broker for the offsets of both groups at the same time.

    Args:
        topic: only queues of this topic; "": of all.
    """
    answers = await asyncio.gather(source.group_queues(left), source.group_queues(right))
    if answers[0].value is None or answers[1].value is None:
        return Comparison(
            left_problem=_problem(answers[0], left),
            right_problem=_problem(answers[1], right),
            is_absent=any(answer.is_absent for answer in answers),
        )
    first, second = _rows(answers[0].value, topic), _rows(answers[1].value, topic)
    problems = answers[0].value.problems | answers[1].value.problems
    return Comparison(
        tuple(
            Pair(queue, first.get(queue), second.get(queue))
            for queue in sorted(first.keys() | second.keys())
            # A broker that answered for one group only would look as if the other had no offset.
            if queue.broker_name not in problems
        ),
        problems=problems,
    )


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
