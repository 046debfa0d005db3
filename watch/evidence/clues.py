"""Clues: what was seen of a queue until now. Rules look at them, and they tell which races fit a loss."""

from __future__ import annotations

from typing import Final

from rewindmq.watch.evidence.group import GroupSample
from rewindmq.watch.evidence.moment import Case, Moment

# Seconds.
_NOTIFIED: Final = 2.0


class Clues:
    """Gathers the clues.

    Attributes:
        was_stored: the stored offset came to the target; of a rewind, it was between target and old offset.
        had_consumer: a consumer had the queue more than 2 s after the reset.
        has_new_client: the consumer that has the queue joined after the reset.
        has_lost_client: a consumer of before the reset is gone.
        broker_was_away: the broker did not answer at times.
        is_broadcasting, is_pulling: the consumers' message model and type.
        consumer: the consumer that has the queue, by the last sample.
        shared: client ids that several consumers have, by the last sample.
    """

    def __init__(self, case: Case) -> None:
        self._case = case
        self.was_stored = self.had_consumer = False
        self.has_new_client = self.has_lost_client = False
        self.broker_was_away = self.is_broadcasting = self.is_pulling = False
        self.consumer: str | None = None
        self.shared: frozenset[str] = frozenset()
        # Seconds after the reset of the first and the last sample that the broker did not answer.
        self._absent_from = self._absent_to = 0.0
        self._absent = 0

    @property
    def absence(self) -> str:
        """When the broker did not answer, in one sentence."""
        first, last, count = self._absent_from, self._absent_to, self._absent
        when = f"{first:.1f} s" if count == 1 else f"{first:.1f} to {last:.1f} s"
        return f"{self._case.queue.broker_name} did not answer {count} of the samples, {when} after the reset"

    def note_absence(self, seconds: float) -> None:
        """Note that the broker did not answer a sample."""
        if not self.broker_was_away:
            self._absent_from = seconds
        self._absent_to = seconds
        self._absent += 1
        self.broker_was_away = True

    def add(self, moment: Moment) -> None:
        """Take in a moment."""
        self._add_group(moment.group)
        self.shared = moment.group.sample.shared
        live = moment.seen.live
        self.consumer = live[0].client_id if live else None
        # A consumer may have the queue until the notification reaches it.
        self.had_consumer = self.had_consumer or bool(live and moment.seconds > _NOTIFIED)
        if live:
            self.has_new_client = live[-1].client_id not in self._case.clients
        case, stored = self._case, moment.stored
        is_there = case.is_moved(stored) if case.is_rewind else stored >= case.target
        self.was_stored = self.was_stored or is_there

    def _add_group(self, group: GroupSample) -> None:
        self.is_broadcasting = self.is_broadcasting or group.sample.is_broadcasting
        self.is_pulling = self.is_pulling or group.sample.is_pulling
        self.has_lost_client = self.has_lost_client or group.has_lost_client
