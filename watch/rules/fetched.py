"""The group fetched as many messages as the redelivery has, and its consumers are through.

Shows: every message was redelivered, if the group was idle. Brokers count the messages that a group pulls
from a topic: GROUP_GET_NUMS of VIEW_BROKER_STATS_DATA (315). If the group had fetched none for a minute, and
nothing new arrives, the fetched ones are redelivered ones. As many as the redelivery has are all of them: a
consumer goes through a queue from one offset to the end, so it leaves messages out only if it takes the queue
over twice.
A queue counts only if its offset was seen at the target or behind it, or its consumer gave it up.
Under traffic, ``ClassicMinute`` bounds how many messages may be left out. If they are fewer than the
redelivery of a queue, this queue was redelivered.
Cannot see: which queue of a broker the messages are from; a consumer that gives a queue up and takes it again
between two samples; under traffic, a part of the redelivery that is smaller than the bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Final

from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.watch.evidence.clues import Clues
from rewindmq.watch.evidence.moment import Case, Counted, Moment, group_offset
from rewindmq.watch.evidence.position import Position, low_of
from rewindmq.watch.evidence.sample import QueueSample, Sample, name_of
from rewindmq.watch.finding import Finding
from rewindmq.watch.rules.jump import Jump
from rewindmq.watch.rules.minute import ClassicMinute, CountSpan

# Seconds after the reset until which the broker's minute goes back to before the reset: brokers sample their
# counts every 10 s.
COUNTED_UNTIL: Final = 55.0
# The count may be as old as that, in ms.
_SAMPLED_EVERY: Final = 10_000


class FetchCount:
    """Tells at which brokers the consumers fetched every message to be redelivered.

    Args:
        before: the sample right before the reset.
        targets: target offset of each queue that was reset.

    Attributes:
        obstacles: broker name to the reason why its count shows nothing of an idle group, for all brokers
            without such a count.
    """

    def __init__(self, before: Sample, targets: Mapping[MessageQueue, int]) -> None:
        self._before = before
        self._targets = targets
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
        self._minutes = {broker: ClassicMinute(broker, targets) for broker in self._expected}
        left_out = min(before.queues.keys() ^ targets.keys(), default=None)
        if left_out is not None:
            self._give_up(f"the reset does not cover {name_of(left_out)}")
        elif not _is_countable(before):
            self._give_up("not every consumer reports its queues")
        for queue, seen in before.queues.items():
            if queue.broker_name in self._expected and (busy := self._why_busy(queue, seen, targets[queue])):
                self._expect_nothing(busy, queue.broker_name)
            # A skip lacks messages in the count, although it is kept.
            if queue not in self._holders or targets.get(queue, 0) > (seen.stored or 0):
                self._minutes.pop(queue.broker_name, None)

    @property
    def brokers(self) -> AbstractSet[str]:
        """The brokers whose count can show the redelivery of an idle group."""
        return self._expected.keys()

    @property
    def minutes(self) -> AbstractSet[str]:
        """The brokers whose count of a minute may show the redelivery of a group under traffic."""
        return self._minutes.keys()

    @property
    def expected_within(self) -> Mapping[str, CountSpan]:
        """Broker name to when it takes the count that shows a redelivery: the watch asks for it closely."""
        spans = {broker: minute.ends_within for broker, minute in self._minutes.items()}
        return {broker: span for broker, span in spans.items() if span is not None}

    def needs(self, at: float, seconds: float) -> AbstractSet[str]:
        """Return the brokers whose count may show something, ``at`` on the clock of ``Sample.at``."""
        idle = self.brokers if seconds <= COUNTED_UNTIL else frozenset[str]()
        return idle | {broker for broker, minute in self._minutes.items() if minute.needs_count(at)}

    def add(self, seconds: float, sample: Sample) -> Mapping[str, int]:
        """Take in a sample, ``seconds`` after the reset.

        Returns:
            Broker name to how many messages of the redelivery may be left out at most, where this is known.
        """
        if not _is_countable(sample):
            self._give_up("not every consumer reported its queues at times")
        elif sample.clients != self._before.clients:
            self._give_up("a consumer joined or left")
        for queue, seen in sample.queues.items():
            broker = queue.broker_name
            if broker not in self._expected and broker not in self._minutes:
                continue
            if disturbed := self._why_disturbed(queue, seen):
                self._give_up(disturbed, broker)
            elif broker in self._expected and (arrived := self._what_arrived(queue, seen)):
                self._expect_nothing(arrived, broker)
        left_out: dict[str, int] = {}
        for broker, minute in self._minutes.items():
            if (most := minute.add(sample)) is not None:
                left_out[broker] = most
                self.obstacles[broker] = (
                    f"{broker}'s count of the minute after the reset may lack up to {most} messages"
                )
        if seconds <= COUNTED_UNTIL:
            counts = self._expected.items()
            left_out |= {broker: 0 for broker, count in counts if _messages(sample, broker) == count}
        return left_out

    def of(self, queue: MessageQueue, left_out: Mapping[str, int]) -> Counted:
        """Return what the counts show of a queue.

        A queue with more messages to redeliver than may be left out was redelivered.

        Args:
            left_out: from ``add``.
        """
        broker = queue.broker_name
        minute, seen = self._minutes.get(broker), self._before.queues.get(queue)
        is_fetched = False
        if broker in left_out and seen is not None:
            # If the reset is lost in the queue, its consumer goes on where the group was.
            target = self._targets[queue]
            is_fetched = left_out[broker] < group_offset(seen, target) - target
        is_counting = minute is not None and minute.is_counting
        return Counted(is_fetched, self.obstacles.get(broker, ""), is_counting)

    def _give_up(self, obstacle: str, *brokers: str) -> None:
        """Note why the counts of these brokers, or of all, show nothing."""
        self._expect_nothing(obstacle, *brokers)
        for broker in brokers or [*self._minutes]:
            self._minutes.pop(broker, None)

    def _expect_nothing(self, obstacle: str, *brokers: str) -> None:
        """Note why these brokers, or all, cannot count the redelivery of an idle group."""
        for broker in brokers or [*self._expected]:
            if self._expected.pop(broker, None) is not None:
                self.obstacles[broker] = obstacle

    def _why_busy(self, queue: MessageQueue, seen: QueueSample, target: int) -> str:
        """Return why the group was not idle in the queue right before the reset; "" if it was."""
        fetched, name = _messages(self._before, queue.broker_name), name_of(queue)
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
        """Return why messages may have been left out, or fetched twice; "" if they were not."""
        is_live = bool(seen.live)
        self._gaps[queue] += self._is_live[queue] and not is_live
        self._is_live[queue] = is_live
        name = name_of(queue)
        if seen.stored is None:
            return f"{queue.broker_name} did not answer at times"
        if any(position.client_id != self._holders[queue] for position in seen.positions):
            return f"another consumer took {name}"
        return f"the consumer of {name} gave it up twice" if self._gaps[queue] > 1 else ""

    def _what_arrived(self, queue: MessageQueue, seen: QueueSample) -> str:
        """Return what else may be fetched; "" if nothing."""
        end = self._before.queues[queue].max_offset
        if seen.max_offset == end:
            return ""
        return f"new messages arrived in {name_of(queue)}: its end was {end}, and is {seen.max_offset}"


def _messages(sample: Sample, broker: str) -> int | None:
    """Return how many messages the group fetched within a minute; None if the broker does not tell."""
    told = sample.fetched.get(broker)
    return None if told is None else told.messages


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
        if moment.counted.is_fetched and was_applied and is_through and not self._jump.is_open:
            return Finding.FETCHED
        return None
