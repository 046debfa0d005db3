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
from rewindmq.watch.evidence.clues import Clues
from rewindmq.watch.evidence.moment import Case, Moment
from rewindmq.watch.evidence.position import Position, low_of
from rewindmq.watch.evidence.sample import QueueSample, Sample, name_of
from rewindmq.watch.finding import Finding
from rewindmq.watch.rules.jump import Jump

# Seconds after the reset until which the broker's minute goes back to before the reset: brokers sample their
# counts every 10 s.
COUNTED_UNTIL: Final = 55.0
# The count may be as old as that, in ms.
_SAMPLED_EVERY: Final = 10_000


class FetchCount:
    """Tells at which brokers the consumers fetched every message to be redelivered, and no other.

    Args:
        before: the sample right before the reset.
        targets: target offset of each queue that was reset.

    Attributes:
        obstacles: broker name to the reason why its count shows nothing, for all brokers without a count.
    """

    def __init__(self, before: Sample, targets: Mapping[MessageQueue, int]) -> None:
        self._before = before
        self.obstacles: dict[str, str] = {}
        self._holders = {
            queue: seen.live[0].client_id for queue, seen in before.queues.items() if len(seen.live) == 1
        }
        self._is_live = dict.fromkeys(before.queues, True)
        self._gaps = dict.fromkeys(before.queues, 0)
        # Broker name to the messages of its redelivery.
        self._expected: Counter[str] = Counter()
        for queue, seen in before.queues.items():
            self._expected[queue.broker_name] += seen.max_offset - targets.get(queue, 0)
        left_out = min(before.queues.keys() ^ targets.keys(), default=None)
        if left_out is not None:
            self._give_up(f"the reset does not cover {name_of(left_out)}")
        elif not _is_countable(before):
            self._give_up("not every consumer reports its queues")
        for queue, seen in before.queues.items():
            if queue.broker_name in self._expected and (busy := self._why_busy(queue, seen, targets[queue])):
                self._give_up(busy, queue.broker_name)

    @property
    def brokers(self) -> AbstractSet[str]:
        """The brokers whose count can show the redelivery."""
        return self._expected.keys()

    def add(self, seconds: float, sample: Sample) -> AbstractSet[str]:
        """Take in a sample, ``seconds`` after the reset; return the names of the brokers."""
        if not _is_countable(sample):
            self._give_up("not every consumer reported its queues at times")
        elif sample.clients != self._before.clients:
            self._give_up("a consumer joined or left")
        for queue, seen in sample.queues.items():
            if queue.broker_name in self._expected and (disturbed := self._why_disturbed(queue, seen)):
                self._give_up(disturbed, queue.broker_name)
        if seconds > COUNTED_UNTIL:
            return frozenset()
        return {broker for broker, count in self._expected.items() if sample.fetched.get(broker) == count}

    def _give_up(self, obstacle: str, *brokers: str) -> None:
        """Note why the counts of these brokers, or of all, show nothing."""
        for broker in brokers or [*self._expected]:
            self.obstacles[broker] = obstacle
            del self._expected[broker]

    def _why_busy(self, queue: MessageQueue, seen: QueueSample, target: int) -> str:
        """Return why the group was not idle in the queue right before the reset; "" if it was."""
        fetched, name = self._before.fetched.get(queue.broker_name), name_of(queue)
        if fetched is None:
            return f"{queue.broker_name} does not tell how many messages the group fetched"
        if fetched:
            return f"the group fetched {fetched} messages from {queue.broker_name} in the minute before"
        if queue not in self._holders:
            return f"{len(seen.live)} consumers had {name}"
        if target > seen.max_offset:
            return f"the target of {name} is past its end"
        return _why_not_idle(name, seen, seen.live[0])

    def _why_disturbed(self, queue: MessageQueue, seen: QueueSample) -> str:
        """Return what else may have been fetched since, or what may be left out; "" if nothing."""
        is_live = bool(seen.live)
        self._gaps[queue] += self._is_live[queue] and not is_live
        self._is_live[queue] = is_live
        name, end = name_of(queue), self._before.queues[queue].max_offset
        if seen.stored is None:
            return f"{queue.broker_name} did not answer at times"
        if seen.max_offset != end:
            return f"new messages arrived in {name}: its end was {end}, and is {seen.max_offset}"
        if any(position.client_id != self._holders[queue] for position in seen.positions):
            return f"another consumer took {name}"
        return f"the consumer of {name} gave it up twice" if self._gaps[queue] > 1 else ""


def _is_countable(sample: Sample) -> bool:
    """True if each consumer reports its queues."""
    return sample.is_complete and bool(sample.clients) and not (sample.is_broadcasting or sample.is_pulling)


def _why_not_idle(name: str, seen: QueueSample, holder: Position) -> str:
    if not seen.stored == seen.max_offset == holder.offset or holder.first is not None:
        return f"the group was at {low_of(holder)} in {name}, stored {seen.stored} of {seen.max_offset}"
    if holder.last_pull - holder.last_consume < _SAMPLED_EVERY:
        return f"the group consumed a message of {name} in the 10 s before"
    return ""


class FetchedAll:
    """Waits until all messages were fetched, and the consumers are at the old offset or past it."""

    def __init__(self, case: Case, clues: Clues, jump: Jump) -> None:
        self._case = case
        self._clues = clues
        self._jump = jump
        self._was_given_up = False

    def add(self, moment: Moment) -> Finding | None:
        """Take in a moment, after the jump has; find ``FETCHED``."""
        old, live = self._case.old, moment.seen.live
        # A consumer may store what it has consumed right after the target, so that no sample sees the target.
        self._was_given_up = self._was_given_up or not live
        was_applied = self._clues.was_stored or self._was_given_up
        is_through = moment.stored >= old and bool(live) and all(low_of(position) >= old for position in live)
        if moment.is_fetched and was_applied and is_through and not self._jump.is_open:
            return Finding.FETCHED
        return None
