"""Bounds the messages that a classic redelivery may lack, from the broker's one-minute count.

Shows: in a classic reset, the consumers give up every queue for 10 s. Then they fetch a queue from its target
to its end, or from its old offset if the reset is lost there. A broker counts what a group fetches every
10 s; it returns the sum of a minute, and how long the minute was. So one count that the watch sees shows when
its minute began. A minute that began in the wait has all that was fetched since. What it lacks between
targets and ends is left out. The watch can ask for this count closely, and for the ends right after it.
Cannot see: which messages; those that arrive between the count and the question for the ends may be among
them. Messages that a broken connection lost on the way, which are fetched twice. A group that fetches again
before the next count; whatever happens after the minute. A broker that counts late while its clock is set
back by as much: the rule takes a minute below 60 s for one of 60 s, which is not enough then.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, NamedTuple

from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.watch.evidence.sample import Fetched, Sample

# Seconds from the first to the last count of a broker's minute, and from one to the next.
_MINUTE: Final = 60.0
COUNTED_EVERY: Final = 10.0
# Seconds by which two clocks may drift apart in a minute.
_DRIFT: Final = 0.1
# Seconds by which a broker seldom counts early or late.
_SELDOM_LATE: Final = 0.2
# Seconds after the reset at which the minute is known, at the latest.
LATEST: Final = 75.0
# The watch knows when the broker counts from two answers that are so many seconds apart, and asks again so
# many seconds before.
_NARROW: Final = 1.0
_BEFORE: Final = 2.0
# Messages of a pull that its consumer sent before it gave the queue up, and seconds after which a message
# that arrives has answered it.
_OPEN_PULL: Final = 32
_ANSWERED: Final = 1.0


class CountSpan(NamedTuple):
    """A time between two others, on the clock of ``Sample.at``."""

    earliest: float
    latest: float


class ClassicMinute:
    """Follows one broker from the classic wait to the end of a minute that begins in it.

    Args:
        targets: target offset of each queue that was reset.
    """

    def __init__(self, broker: str, targets: Mapping[MessageQueue, int]) -> None:
        self._broker = broker
        self._targets = {queue: target for queue, target in targets.items() if queue.broker_name == broker}
        # When a sample first showed every queue given up, and one after it did not.
        self._waits_since: float | None = None
        self._rebalanced_at: float | None = None
        # The ends of the queues after that, and from when on a kept pull of a queue is answered.
        self._ends: dict[MessageQueue, int] = {}
        self._answered_at: dict[MessageQueue, float] = {}
        # When the broker counted: the last time, and the time that is known best.
        self._last: CountSpan | None = None
        self._best: CountSpan | None = None
        # Of the minute that began in the wait.
        self._fetched: int | None = None
        self._open_pulls = 0
        self._left_out: int | None = None

    @property
    def is_counting(self) -> bool:
        """True while a minute that began in the wait lasts."""
        return self._waits_since is not None and self._left_out is None and not self._is_over

    @property
    def ends_within(self) -> CountSpan | None:
        """When a minute that began in the wait ends next; None if this is not known, or it was seen."""
        if self._waits_since is None or self._best is None or self._last is None or self._is_over:
            return None
        not_before = max(self._waits_since + _MINUTE, self._last.earliest + COUNTED_EVERY / 2)
        later = COUNTED_EVERY * math.ceil((not_before - self._best.latest) / COUNTED_EVERY)
        return CountSpan(self._best.earliest + later - _SELDOM_LATE, self._best.latest + later + _SELDOM_LATE)

    def needs_count(self, at: float) -> bool:
        """Return True if the broker's answer at that time may show something."""
        if self._is_over:
            return False
        expected = self.ends_within
        if expected is None or expected.latest - expected.earliest > _NARROW + 2 * _SELDOM_LATE:
            return True
        return at >= expected.earliest - _BEFORE

    def add(self, sample: Sample) -> int | None:
        """Take in a sample; return how many messages may be left out, at most, or None."""
        ends = {queue: sample.queues[queue].max_offset for queue in self._targets}
        if self._fetched is not None:
            # The queues were asked for their ends after the count.
            self._bound(ends)
        is_waiting = not any(sample.queues[queue].live for queue in self._targets)
        self._note_wait(sample.at, ends, is_waiting=is_waiting)
        answer = sample.fetched.get(self._broker)
        if answer is not None and answer.after is not None:
            self._note_answer(answer, CountSpan(answer.after, sample.at))
        return self._left_out

    @property
    def _is_over(self) -> bool:
        """True if the count that ends the minute was seen, or missed."""
        if self._fetched is not None:
            return True
        after, last = self._rebalanced_at, self._last
        return after is not None and last is not None and last.earliest - _MINUTE > after

    def _note_wait(self, at: float, ends: dict[MessageQueue, int], *, is_waiting: bool) -> None:
        if self._waits_since is None:
            if is_waiting:
                # The consumers were asked after the broker, so these ends are too old.
                self._waits_since = at
            return
        if not is_waiting and self._rebalanced_at is None:
            self._rebalanced_at = at
        if not self._ends:
            self._ends = ends
        for queue, end in ends.items():
            if end > self._ends[queue]:
                # What arrives answers a pull that the broker has kept.
                self._answered_at.setdefault(queue, at + _ANSWERED)

    def _note_answer(self, answer: Fetched, counted: CountSpan) -> None:
        """Note the broker's answer if it has a new count, which was made between two times."""
        if self._last is not None and counted.earliest <= self._last.earliest:
            return
        self._last = counted
        self._best = min((self._best or counted, counted), key=_width)
        if not self._is_over:
            self._note_count(answer, counted)

    def _note_count(self, answer: Fetched, counted: CountSpan) -> None:
        """Note the count if its minute began in the wait, and not before it in any case."""
        if self._waits_since is None or answer.seconds is None:
            return
        began = counted.earliest - max(_MINUTE, answer.seconds) - _DRIFT
        if began < self._waits_since:
            return
        self._fetched = answer.messages
        self._open_pulls = sum(self._answered_at.get(queue, math.inf) > began for queue in self._targets)
        ends = answer.ends or {}
        if all(queue.queue_id in ends for queue in self._targets):
            self._bound({queue: ends[queue.queue_id] for queue in self._targets})

    def _bound(self, ends: Mapping[MessageQueue, int]) -> None:
        """Note what may be left out, by the ends of the queues at a time after the minute."""
        if self._left_out is None and self._fetched is not None:
            to_fetch = sum(end - self._targets[queue] for queue, end in ends.items())
            self._left_out = max(1, to_fetch - self._fetched + _OPEN_PULL * self._open_pulls)


def _width(span: CountSpan) -> float:
    return span.latest - span.earliest
