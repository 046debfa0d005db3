"""An idle group fetched as many messages as the redelivery has, and its consumers are through.

Shows: every message was redelivered. Brokers count the messages that a group pulls from a topic:
GROUP_GET_NUMS of VIEW_BROKER_STATS_DATA (315). If the group had fetched none for a minute, and nothing new
arrives, the fetched ones are redelivered ones. As many as the redelivery has are all of them: a consumer goes
through a queue from one offset to the end, so it leaves messages out only if it takes the queue over twice.
A queue counts only if its offset was seen at the target or behind it, or its consumer gave it up.
Cannot see: which queue of a broker the messages are from; a consumer that gives a queue up and takes it again
between two samples; anything of a group that was not idle.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Final

from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.watch.evidence.moment import Case, Moment
from rewindmq.watch.evidence.position import Position, low_of
from rewindmq.watch.evidence.sample import QueueSample, Sample
from rewindmq.watch.finding import Finding
from rewindmq.watch.rules.jump import Jump

# Seconds after the reset until which the broker's minute goes back to before the reset: brokers sample their
# counts every 10 s.
_COUNTED_UNTIL: Final = 55.0
# The count may be as old as that, in ms.
_SAMPLED_EVERY: Final = 10_000


class FetchCount:
    """Tells at which brokers the consumers fetched every message to be redelivered, and no other.

    Args:
        before: the sample right before the reset.
        targets: target offset of each queue that was reset.
    """

    def __init__(self, before: Sample, targets: Mapping[MessageQueue, int]) -> None:
        self._before = before
        self._holders = {
            queue: seen.live[0].client_id for queue, seen in before.queues.items() if len(seen.live) == 1
        }
        self._is_live = dict.fromkeys(before.queues, True)
        self._gaps = dict.fromkeys(before.queues, 0)
        # Broker name to the messages of its redelivery.
        self._expected: Counter[str] = Counter()
        if before.queues.keys() != targets.keys() or not _is_countable(before):
            return
        for queue, seen in before.queues.items():
            self._expected[queue.broker_name] += seen.max_offset - targets[queue]
        for queue, seen in before.queues.items():
            is_quiet = before.fetched.get(queue.broker_name) == 0 and targets[queue] <= seen.max_offset
            if queue not in self._holders or not is_quiet or not _is_idle(seen, seen.live[0]):
                del self._expected[queue.broker_name]

    def add(self, seconds: float, sample: Sample) -> AbstractSet[str]:
        """Take in a sample, ``seconds`` after the reset; return the names of the brokers."""
        if not _is_countable(sample) or sample.clients != self._before.clients:
            self._expected.clear()
        for queue, seen in sample.queues.items():
            if queue.broker_name in self._expected and not self._is_kept(queue, seen):
                del self._expected[queue.broker_name]
        if seconds > _COUNTED_UNTIL:
            return frozenset()
        return {broker for broker, count in self._expected.items() if sample.fetched.get(broker) == count}

    def _is_kept(self, queue: MessageQueue, seen: QueueSample) -> bool:
        """True if nothing new arrived, and the consumer has given the queue up at most once."""
        is_live = bool(seen.live)
        self._gaps[queue] += self._is_live[queue] and not is_live
        self._is_live[queue] = is_live
        is_same = seen.stored is not None and seen.max_offset == self._before.queues[queue].max_offset
        clients = {position.client_id for position in seen.positions}
        return is_same and clients <= {self._holders[queue]} and self._gaps[queue] <= 1


def _is_countable(sample: Sample) -> bool:
    """True if each consumer reports its queues."""
    return sample.is_complete and bool(sample.clients) and not (sample.is_broadcasting or sample.is_pulling)


def _is_idle(seen: QueueSample, holder: Position) -> bool:
    return (
        seen.stored == seen.max_offset == holder.offset
        and holder.first is None
        and holder.last_pull - holder.last_consume >= _SAMPLED_EVERY
    )


class FetchedAll:
    """Waits until all messages were fetched, and the consumers are at the old offset or past it."""

    def __init__(self, case: Case, jump: Jump) -> None:
        self._case = case
        self._jump = jump
        self._was_applied = False

    def add(self, moment: Moment) -> Finding | None:
        """Take in a moment, after the jump has; find ``FETCHED``."""
        old, live = self._case.old, moment.seen.live
        # A consumer may store what it has consumed right after the target, so that no sample sees the target.
        self._was_applied = self._was_applied or self._case.is_moved(moment.stored) or not live
        is_through = moment.stored >= old and bool(live) and all(low_of(position) >= old for position in live)
        if moment.is_fetched and self._was_applied and is_through and not self._jump.is_open:
            return Finding.FETCHED
        return None
