"""A consumer was seen at work on the redelivery.

Shows: a consumer holds messages from the target on, which the reset has given it.
Cannot see: a redelivery that begins and ends between two samples; messages that a consumer leaves out between
two samples, if it is as fast as it was seen to be (``Leaps``).
"""

from __future__ import annotations

from dataclasses import dataclass

from rewindmq.watch.evidence.moment import Case, Moment
from rewindmq.watch.evidence.position import Position, low_of
from rewindmq.watch.finding import Finding
from rewindmq.watch.rules.leaps import FAR, Leaps


@dataclass(frozen=True, slots=True)
class _Work:
    """A consumer's work on the redelivery: the lowest offset that it has not consumed."""

    seconds: float
    client_id: str
    low: int

    def until(self, low: int, seconds: float) -> tuple[int, float]:
        """Return the messages that the consumer consumed since, and the seconds."""
        return low - self.low, seconds - self.seconds


class Redelivery:
    """The work of consumers on a rewind's redelivery.

    Attributes:
        since: seconds after the reset since when it goes on without a contradiction; None: it does not.
        progress: the lowest offset that no consumer is known to have consumed.
        is_finished: the consumer that was seen at work has come to the old offset.
        is_working: a consumer is between target and old offset, in the last moment.
        holding: the consumer that holds messages from there, in the last moment.
        leaps: where the redelivery may have a gap.
    """

    def __init__(self, case: Case) -> None:
        self._case = case
        self.since: float | None = None
        self.progress = case.target
        self.is_finished = self.is_working = False
        self.holding: Position | None = None
        self.leaps = Leaps(case.target)
        self._last: _Work | None = None
        # Where the consumer was in the first of the samples that show its work without a gap.
        self._run: _Work | None = None
        # The fastest redelivery between two samples, in messages per second.
        self._fastest = 0.0
        # Of consumers whose work is older than the reset: client id to the lowest offset not consumed.
        lows = {position.client_id: low_of(position) for position in case.before.live}
        self._earlier = {client: low for client, low in lows.items() if case.target < low < case.old}

    def add(self, moment: Moment) -> Finding | None:
        """Take in a moment; find ``REDELIVERY``."""
        if moment.is_after_gap:
            # What happened while the broker did not answer is unknown.
            self.since = self._last = None
            self.is_finished = False
        self._forget_earlier_work(moment)
        case, seen = self._case, moment.seen
        working = [position for position in seen.live if case.target <= low_of(position) < case.old]
        holding = [position for position in working if position.first is not None]
        redelivered = [position for position in holding if position.client_id not in self._earlier]
        self.is_working = bool(working)
        self.holding = holding[0] if holding else None
        self.leaps.note_below(low_of(position) for position in seen.live if position.first is not None)
        if redelivered:
            self._note_work(moment, redelivered[0])
        elif self.since is not None and not working:
            self._note_end(moment)
        self._forget_left_work(moment)
        return Finding.REDELIVERY if redelivered else None

    def _forget_earlier_work(self, moment: Moment) -> None:
        """Note which consumers gave the queue up, or went back: what they hold later is redelivered."""
        lows = {position.client_id: low_of(position) for position in moment.seen.live}
        for client_id, low in [*self._earlier.items()]:
            if client_id not in lows and not moment.group.sample.is_complete:
                continue
            if lows.get(client_id, -1) < low:
                del self._earlier[client_id]
            else:
                self._earlier[client_id] = lows[client_id]

    def _note_work(self, moment: Moment, holding: Position) -> None:
        """Note that a consumer holds a message to be redelivered."""
        seconds, low, last = moment.seconds, low_of(holding), self._last
        is_same = last is not None and last.client_id == holding.client_id
        is_next = is_same and last is not None and last.low <= low
        is_adjacent = last is not None and moment.last <= last.seconds < seconds <= last.seconds + FAR
        if self.since is None or not is_next:
            self.since = seconds
            self._fastest = 0.0
        if is_next and is_adjacent and last is not None and self._run is not None:
            step, run = last.until(low, seconds), self._run.until(low, seconds)
            self._fastest = max(self._fastest, step[0] / step[1])
            self.leaps.go_on(holding.client_id, low, step, run)
        else:
            self.leaps.begin(holding.client_id, low, seconds - moment.last, moment.stored, is_same=is_same)
            self._run = _Work(seconds, holding.client_id, low)
        self.is_finished = False
        self._last = _Work(seconds, holding.client_id, low)
        self.progress = max(self.progress, low)

    def _note_end(self, moment: Moment) -> None:
        """Note that no consumer is below the old offset any more: it has come there, or has been moved there.

        The rest of the redelivery must be as fast as the part that was seen. Otherwise the consumer may have
        taken the queue over again at the old offset, between two samples.
        """
        last = self._last
        if self.is_finished or last is None:
            return
        rest = self._case.old - last.low
        self.is_finished = any(
            position.client_id == last.client_id for position in moment.seen.live
        ) and rest <= 2 * self._fastest * (moment.seconds - last.seconds)
        if not self.is_finished:
            self.since = None

    def _forget_left_work(self, moment: Moment) -> None:
        """Forget where a consumer was if it has given the queue up: it may take it again elsewhere."""
        clients = {position.client_id for position in moment.seen.live}
        is_complete = moment.group.sample.is_complete
        if self._last is not None and is_complete and self._last.client_id not in clients:
            self._last = None
