"""How much the consumers consumed since the reset, at most: too little for a redelivery shows a loss.

Shows: by their rates of a minute, the consumers that may have had the queue consumed fewer messages than the
redelivery has.
Cannot see: what a consumer consumed that has left, does not answer, or leaves messages out of its rates;
which queue the messages are from.
"""

from __future__ import annotations

from typing import Final

from rewindmq.watch.evidence.moment import Case, Moment
from rewindmq.watch.evidence.position import low_of
from rewindmq.watch.rules.leaps import FAR

# Seconds after the reset. The rates of consumers cover a minute that ended up to 10 s ago. In the first
# interval, they cover every moment since the reset. In the second, which is for queues that were dropped
# during the classic wait, they cover every moment since the wait, except up to 1 s at its end. Then they
# cover none before the reset.
_RATES: Final = (55.0, 60.0)
_RATES_AFTER_WAIT: Final = (60.0, 71.0)
_WAIT: Final = (3.0, 9.0)
# Two rates overlap if one is at most so much later: they cover a minute, and are up to 10 s old.
_OVERLAP: Final = 50.0
# The last moment at which rates are looked at.
RATES_END: Final = 80.0


class Consumption:
    """An upper bound of what the consumers consumed since the redelivery can have begun.

    Attributes:
        most: the bound at the last moment that had one; None if there was none yet.
        needed: the messages of the redelivery that were not seen to be consumed, at the same moment.
        is_filtered: a subscription leaves messages out.
        has_lost_worker: a consumer that had the queue has left.
        mute_worker: a consumer that had the queue, and does not tell how much it consumed.
    """

    def __init__(self, case: Case) -> None:
        self._case = case
        self.most: float | None = None
        self.needed = 0
        self.is_filtered = self.has_lost_worker = False
        self.mute_worker: str | None = None
        # Time and consumed messages of the last sample before the rates cover enough.
        self._early: tuple[float, float] | None = None
        self._holders: set[str] = set()
        # Consumers that the reset has not reached yet, and when they were last seen so: client id to seconds.
        self._unreached: dict[str, float] = {}
        # Those that had the queue when it may have been redelivered already.
        self._workers: set[str] = set()
        # A consumer that was not listed may have had the queue.
        self._had_short_list = self._worked_in_wait = False

    @property
    def may_be_all(self) -> bool:
        """True if what was consumed may include the redelivery, at the last moment that had a bound."""
        is_unknown = self.has_lost_worker or self.mute_worker is not None or self.is_filtered
        return self.most is not None and (is_unknown or self.most >= self.needed)

    def add(self, moment: Moment) -> None:
        """Take in a moment."""
        group, seconds = moment.group, moment.seconds
        self._had_short_list = self._had_short_list or group.is_short
        self.is_filtered = self.is_filtered or group.sample.is_filtered
        self._note_holders(moment)
        if seconds >= _WAIT[0]:
            self._workers |= {position.client_id for position in moment.seen.live} | group.mute
        self._worked_in_wait = self._worked_in_wait or bool(
            moment.seen.live and _WAIT[0] <= seconds <= _WAIT[1]
        )

    def excludes(self, moment: Moment, progress: int) -> bool:
        """Return True if the consumers consumed too little for the redelivery from ``progress`` on.

        Called after ``add``.
        """
        consumed = self._since_reset(moment)
        if consumed is None:
            return False
        sample = moment.group.sample
        # A consumer that has left no longer tells how much it consumed, and some never do.
        workers = moment.group.known if self._had_short_list else self._workers
        silent = workers - sample.consumed.keys()
        self.has_lost_worker = not silent <= sample.clients
        self.mute_worker = min(silent, default=None)
        self.most, self.needed = consumed, self._case.old - progress
        return not self.may_be_all

    def _note_holders(self, moment: Moment) -> None:
        """Note who may have redelivered the queue.

        Not a consumer that right after the reset still has the queue as before, and has given it up by the
        next sample: the classic notification has reached it in between. It may redeliver other queues later.
        """
        seconds, live = moment.seconds, moment.seen.live
        clients = {position.client_id for position in live}
        for client_id, last in [*self._unreached.items()]:
            if client_id in clients or moment.group.sample.is_complete or seconds - last > FAR:
                del self._unreached[client_id]
            if seconds - last > FAR:
                self._holders.add(client_id)
        for position in live:
            is_as_before = low_of(position) >= self._case.old and self._case.is_untouched_by(position)
            if seconds <= FAR and is_as_before:
                self._unreached[position.client_id] = seconds
            else:
                self._holders.add(position.client_id)

    def _since_reset(self, moment: Moment) -> float | None:
        """Return the messages consumed since the redelivery can have begun, at most.

        None: the rates of this sample do not cover that time, or cover the time before the reset, too.
        """
        seconds, rates = moment.seconds, moment.group.sample.consumed
        consumed = (
            moment.group.consumed
            if self._had_short_list
            else sum(rates.get(client_id, 0.0) for client_id in self._holders)
        )
        first, last = _RATES if self._worked_in_wait else _RATES_AFTER_WAIT
        if seconds < first:
            self._early = seconds, consumed
            return None
        if seconds <= last:
            return consumed
        # No sample came in time. The last one before, and this one, cover it together if they overlap.
        if self._early is None or seconds > min(RATES_END, self._early[0] + _OVERLAP):
            return None
        return self._early[1] + consumed
