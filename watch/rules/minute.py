"""How many messages of a redelivery may be left out, although new messages arrive all the time.

Shows: in a classic reset, the consumers give up every queue for 10 s. Then they fetch a queue from its target
to its end, or from its old offset if the reset is lost there. Brokers count what a group fetches every 10 s,
and tell the sum of a minute. The minute that begins with a count in the wait has all that was fetched since.
What it lacks between targets and ends is left out.
Cannot see: which messages; those that arrive in some 1 s may be among them. Messages that a broken connection
lost on the way, which are fetched twice. A group that fetches again before the next count; whatever happens
after the minute.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.watch.evidence.sample import Fetched, Sample

# Seconds from the first to the last count of a broker's minute.
_MINUTE: Final = 60.0
# Seconds by which a busy broker may count early or late.
_LATE: Final = 1.0
# Seconds after the reset at which the minute is known, at the latest.
LATEST: Final = 75.0
# Seconds between two answers in which a broker counts once at most.
_CLOSE: Final = 5.0
# Messages of a pull that its consumer sent before it gave the queue up.
_UNTAKEN: Final = 32


class ClassicMinute:
    """Follows one broker from the classic wait to the end of the minute that begins in it.

    Args:
        targets: target offset of each queue that was reset.
    """

    def __init__(self, broker: str, targets: Mapping[MessageQueue, int]) -> None:
        self._broker = broker
        self._targets = {queue: target for queue, target in targets.items() if queue.broker_name == broker}
        self._told: Fetched | None = None
        # When a sample first showed every queue given up, and the ends of the queues by the next one.
        self._waits_since: float | None = None
        self._ends: dict[MessageQueue, int] = {}
        # Between these times, the broker counted while nobody fetched.
        self._began: tuple[float, float] | None = None
        # Queues with a pull that may be answered later.
        self._untaken = 0
        # Of the minute that began then.
        self._fetched: int | None = None
        self._left_out: int | None = None

    @property
    def is_counting(self) -> bool:
        """True while the minute lasts."""
        return self._began is not None and self._left_out is None

    def add(self, sample: Sample) -> int | None:
        """Take in a sample; return how many messages may be left out, at most, or None."""
        ends = {queue: sample.queues[queue].max_offset for queue in self._targets}
        if self._fetched is not None and self._left_out is None:
            # The queues were asked for their ends after the count.
            to_fetch = sum(end - self._targets[queue] for queue, end in ends.items())
            self._left_out = max(1, to_fetch - self._fetched + _UNTAKEN * self._untaken)
        counted = self._counted(sample)
        if self._began is None:
            is_waiting = not any(sample.queues[queue].live for queue in self._targets)
            self._note_wait(sample, counted, ends, is_waiting=is_waiting)
        elif self._told is not None and counted is not None:
            earliest, latest = self._began
            first, last = counted
            if first <= latest + _MINUTE + _LATE and last >= earliest + _MINUTE - _LATE:
                self._fetched = self._told.messages
        return self._left_out

    def _counted(self, sample: Sample) -> tuple[float, float] | None:
        """Return between which times the broker counted, if it tells another sum than before."""
        told = sample.fetched.get(self._broker)
        if told is None:
            return None
        before, self._told = self._told, told
        if before is None or before.messages == told.messages or sample.at - before.asked > _CLOSE:
            return None
        return before.asked, sample.at

    def _note_wait(
        self,
        sample: Sample,
        counted: tuple[float, float] | None,
        ends: dict[MessageQueue, int],
        *,
        is_waiting: bool,
    ) -> None:
        if not is_waiting:
            self._waits_since = None
        elif self._waits_since is None:
            # The consumers were asked after the broker.
            self._waits_since, self._ends = sample.at, {}
        elif not self._ends:
            self._ends = ends
        elif counted is not None and counted[0] >= self._waits_since:
            self._began = counted
            # What arrives answers a pull that the broker has kept.
            self._untaken = sum(end == self._ends[queue] for queue, end in ends.items())
