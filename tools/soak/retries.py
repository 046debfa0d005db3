"""Checks retries: a refused message is delivered again until it is accepted or becomes a dead letter."""

from __future__ import annotations

from tools.soak.journal import REFUSED, Delivered
from tools.soak.message import MessageId, is_doomed
from tools.soak.verdict import SoakVerdict, ViolationKind


class Retries:
    """The refused messages of one group.

    Args:
        limit: after so many redeliveries a refused message is a dead letter.
    """

    def __init__(self, group: str, limit: int, verdict: SoakVerdict) -> None:
        self._group = group
        self._limit = limit
        self._verdict = verdict
        # Messages that were refused and not accepted since, to their redelivery count at that time.
        self._open: dict[MessageId, int] = {}
        self._dead: set[MessageId] = set()

    def delivered(self, message: MessageId, delivery: Delivered) -> None:
        if delivery.verdict == REFUSED:
            self._open[message] = delivery.reconsume_times
        else:
            self._open.pop(message, None)

    def dead_letter(self, message: MessageId) -> None:
        """Record a message of the group's dead letter queue."""
        self._dead.add(message)
        if not is_doomed(message, self._limit):
            self._verdict.add(
                ViolationKind.DEAD_LETTER,
                f"{self._group}: {message} is a dead letter, but its listener would have accepted it",
            )

    def finish(self) -> None:
        for message, times in self._open.items():
            if message not in self._dead:
                self._verdict.add(
                    ViolationKind.NOT_RETRIED,
                    f"{self._group}: {message}, refused at redelivery {times}, was neither delivered again"
                    " nor is it a dead letter",
                )
        self._verdict.counts[f"{self._group}: dead letters"] = len(self._dead)
