"""ConsumeStatistics: pull and consumption rates by topic, ``statusTable`` of GET_CONSUMER_RUNNING_INFO (307).

Specification: docs/spec/protocol.md 5.6.

Source: RocketMQ 4.9.4 ``ConsumerStatsManager``. The spans are the same: rates over the last minute, failures
over the last hour. RocketMQ counts each message in a table. Here each ProcessQueue counts for itself; the
counts are gathered when offsets are persisted, every 5 s, and for each request.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Final, NamedTuple

from rewindmq.client.consume.process_queue import ProcessQueue
from rewindmq.protocol.body.running_info import ConsumeStatus
from rewindmq.protocol.message_queue import MessageQueue

MINUTE: Final = 60.0
HOUR: Final = 3_600.0
# Seconds between two snapshots of a window.
_MINUTE_STEP: Final = 10.0
_HOUR_STEP: Final = 600.0


class _Sums(NamedTuple):
    """Totals of one topic since the consumer started; see ``QueueCounts``."""

    pulls: float = 0
    pull_seconds: float = 0
    pulled: float = 0
    calls: float = 0
    call_seconds: float = 0
    consumed: float = 0
    failed: float = 0


_NOTHING: Final = _Sums()


class _Window:
    """Snapshots of a topic's totals over one time span."""

    def __init__(self, span: float, step: float, now: float) -> None:
        self._span = span
        self._step = step
        self._snapshots: deque[tuple[float, _Sums]] = deque([(now, _NOTHING)])

    def keep(self, now: float, sums: _Sums) -> None:
        snapshots = self._snapshots
        if now - snapshots[-1][0] >= self._step:
            snapshots.append((now, sums))
        while len(snapshots) > 1 and now - snapshots[1][0] >= self._span:
            snapshots.popleft()

    def growth(self, now: float, sums: _Sums) -> tuple[float, _Sums]:
        """Return the seconds that the window covers, and the growth of the totals in them."""
        begin, before = self._snapshots[0]
        grown = _Sums(*(new - old for new, old in zip(sums, before, strict=True)))
        return now - begin, grown


class _Topic:
    def __init__(self, now: float) -> None:
        self.sums = _NOTHING
        self.minute = _Window(MINUTE, _MINUTE_STEP, now)
        self.hour = _Window(HOUR, _HOUR_STEP, now)


class ConsumeStatistics:
    """The statistics of one consumer.

    Args:
        now: protocol seconds.
    """

    def __init__(self, now: float) -> None:
        self._began = now
        self._topics: dict[str, _Topic] = {}

    def gather(self, now: float, process_queues: Mapping[MessageQueue, ProcessQueue]) -> None:
        """Add the counts of all queues since the last call."""
        for queue, process_queue in process_queues.items():
            self.take(now, queue, process_queue)
        for topic in self._topics.values():
            topic.minute.keep(now, topic.sums)
            topic.hour.keep(now, topic.sums)

    def take(self, now: float, queue: MessageQueue, process_queue: ProcessQueue) -> None:
        """Add the counts of one queue since the last call."""
        counts = process_queue.take_counts()
        if counts.consumed or counts.failed:
            process_queue.last_consume = now
        topic = self._topics.get(queue.topic)
        if topic is None:
            topic = self._topics[queue.topic] = _Topic(self._began)
        topic.sums = _Sums(*(total + getattr(counts, name) for name, total in topic.sums._asdict().items()))

    def status(self, topic: str, now: float) -> ConsumeStatus:
        """Return the rates of a topic; zeros if the topic is unknown."""
        known = self._topics.get(topic)
        if known is None:
            return ConsumeStatus()
        seconds, grown = known.minute.growth(now, known.sums)
        _, of_hour = known.hour.growth(now, known.sums)
        return ConsumeStatus(
            pull_rt=_quotient(1_000 * grown.pull_seconds, grown.pulls),
            pull_tps=_quotient(grown.pulled, seconds),
            consume_rt=_quotient(1_000 * grown.call_seconds, grown.calls),
            consume_ok_tps=_quotient(grown.consumed, seconds),
            consume_failed_tps=_quotient(grown.failed, seconds),
            consume_failed_msgs=int(of_hour.failed),
        )


def _quotient(value: float, by: float) -> float:
    return round(value / by, 2) if by > 0 else 0.0
