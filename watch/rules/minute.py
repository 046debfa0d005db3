"""How many messages of a redelivery may be left out, although new messages arrive all the time.

Shows: in a classic reset, the consumers give up every queue for 10 s. Then they fetch a queue from its target
to its end, or from its old offset if the reset is lost there. Brokers count what a group fetches every 10 s,
and tell the sum of a minute. The minute that begins with a count in the wait has all that was fetched since.
What it lacks between targets and ends is left out.
Cannot see: which messages; those that arrive in some 3 s may be among them. Messages that a broken connection
lost on the way, which are fetched twice. A group that fetches again before the next count; whatever happens
after the minute.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.watch.evidence.sample import QueueSample, Sample

# Seconds from the first to the last count of a broker's minute, and from one count to the next.
_MINUTE: Final = 60.0
_BETWEEN_COUNTS: Final = 10.0
# A busy broker counts later.
_LATE: Final = 1.0
# Seconds after the reset at which the minute is known, at the latest.
LATEST: Final = 75.0
# Messages of a pull that its consumer had asked for before it gave the queue up, and did not take.
_UNTAKEN: Final = 32


class _Told(NamedTuple):
    """What a broker told, and when it was asked."""

    asked: float
    fetched: int


class ClassicMinute:
    """Follows one broker from the classic wait to the end of the minute that begins in it.

    Args:
        targets: target offset of each queue of the broker.
    """

    def __init__(self, targets: Mapping[MessageQueue, int]) -> None:
        self._targets = targets
        # Since when a sample shows every queue given up.
        self._waits_since: float | None = None
        self._last_at = 0.0
        self._told: _Told | None = None
        # Between these times, the broker counted while nobody fetched.
        self._began: tuple[float, float] | None = None
        # Messages from the targets to the ends, at the end of the minute or later.
        self._to_fetch: int | None = None
        self._fetched: int | None = None

    def add(self, sample: Sample, broker: str) -> int | None:
        """Take in a sample; return how many messages may be left out, at most, or None."""
        queues = {queue: sample.queues[queue] for queue in self._targets}
        asked, fetched = sample.counted_at.get(broker), sample.fetched.get(broker)
        told = None if asked is None or fetched is None else _Told(asked, fetched)
        if self._began is None:
            self._note_wait(sample, told, is_waiting=not any(seen.live for seen in queues.values()))
        else:
            self._note_end(sample, told, queues, *self._began)
        self._last_at = sample.at
        if self._to_fetch is None or self._fetched is None:
            return None
        return max(1, self._to_fetch - self._fetched + _UNTAKEN * len(queues))

    def _note_wait(self, sample: Sample, told: _Told | None, *, is_waiting: bool) -> None:
        """Look for a count in the wait: the broker tells another sum than before."""
        if not is_waiting:
            self._waits_since = self._told = None
            return
        if self._waits_since is None:
            # The consumers were asked after the broker.
            self._waits_since = sample.at
        elif told is not None and told.asked >= self._waits_since:
            if self._told is not None and told.fetched != self._told.fetched:
                self._began = self._told.asked, sample.at
            self._told = told

    def _note_end(
        self,
        sample: Sample,
        told: _Told | None,
        queues: Mapping[MessageQueue, QueueSample],
        earliest: float,
        latest: float,
    ) -> None:
        ended = latest + _MINUTE + _LATE
        if self._to_fetch is None and self._last_at >= ended:
            self._to_fetch = sum(seen.max_offset - self._targets[queue] for queue, seen in queues.items())
        next_count = earliest + _MINUTE + _BETWEEN_COUNTS - _LATE
        if told is not None and ended <= told.asked and sample.at <= next_count:
            self._fetched = told.fetched
