"""A rewind's old offset is stored again, or still, and nothing can have been redelivered.

Shows: the consumers have had the queue since before the reset; or none has had it since; or they consumed too
little (``Consumption``).
Cannot see: a redelivery by a consumer that took the queue and gave it up between two samples.
"""

from __future__ import annotations

from rewindmq.watch.evidence.clues import Clues
from rewindmq.watch.evidence.moment import SETTLED, Case, Moment
from rewindmq.watch.finding import Finding
from rewindmq.watch.rules.consumption import Consumption
from rewindmq.watch.rules.redelivery import Redelivery


class Untouched:
    """Waits until nothing was redelivered for long enough.

    Attributes:
        is_same_queue_object: the consumers have had the queue since before the reset, and consumed nothing.
    """

    def __init__(self, case: Case, clues: Clues, redelivery: Redelivery, consumption: Consumption) -> None:
        self._case = case
        self._clues = clues
        self._redelivery = redelivery
        self._consumption = consumption
        self._since: float | None = None
        self.is_same_queue_object = False

    def add(self, moment: Moment) -> Finding | None:
        """Take in a moment, after the others have; find ``UNTOUCHED``."""
        seen, sample, redelivery = moment.seen, moment.group.sample, self._redelivery
        is_old = moment.stored >= self._case.old and not redelivery.is_working and not redelivery.is_finished
        if not is_old or not sample.is_complete or (seen.positions and not seen.live):
            self._since = None
            return None
        if self._since is None:
            self._since = moment.seconds
        if moment.seconds < SETTLED or moment.seconds - self._since < SETTLED / 2:
            return None
        return Finding.UNTOUCHED if self._is_shown(moment) else None

    def _is_shown(self, moment: Moment) -> bool:
        live, clues = moment.seen.live, self._clues
        if not live and not clues.had_consumer:
            # A consumer that pulls itself may report no queue. Then it may have redelivered what was stored.
            return not (clues.is_pulling and clues.was_stored)
        if live and all(map(self._case.is_untouched_by, live)):
            self.is_same_queue_object = True
            return True
        return self._consumption.excludes(moment, self._redelivery.progress)
