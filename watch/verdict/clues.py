"""What was seen of a queue beside the findings: it tells which races fit, and why a queue stays unknown."""

from __future__ import annotations

from rewindmq.watch.evidence.group import GroupSample
from rewindmq.watch.evidence.moment import Case, Moment


class Clues:
    """Gathers the clues.

    Attributes:
        was_stored: the stored offset came to the target.
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
        self.had_consumer = self.had_consumer or bool(live and moment.seconds > 2.0)
        if live:
            self.has_new_client = live[-1].client_id not in self._case.clients
        at_target = moment.stored < self._case.old if self._case.is_rewind else True
        self.was_stored = self.was_stored or (self._case.target <= moment.stored and at_target)

    def _add_group(self, group: GroupSample) -> None:
        self.is_broadcasting = self.is_broadcasting or group.sample.is_broadcasting
        self.is_pulling = self.is_pulling or group.sample.is_pulling
        self.has_lost_client = self.has_lost_client or group.has_lost_client
