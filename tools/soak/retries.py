"""The law of retries: a refused message comes again until it is accepted or is a dead letter."""

from __future__ import annotations

from tools.soak.journal import REFUSED, Delivery
from tools.soak.message import MessageId, is_doomed
from tools.soak.verdict import Law, Verdict


class Retries:
    """The refused messages of one group.

    Args:
        limit: after so many redeliveries a refused message is a dead letter.
    """

    def __init__(self, group: str, limit: int, verdict: Verdict) -> None:
        self._group = group
        self._limit = limit
        self._verdict = verdict
        # Refused and not accepted since, to how often it had been redelivered then.
        self._open: dict[MessageId, int] = {}
        self._dead: set[MessageId] = set()

    def delivered(self, message: MessageId, delivery: Delivery) -> None:
        if delivery.verdict == REFUSED:
            self._open[message] = delivery.reconsume_times
        else:
            self._open.pop(message, None)

    def dead_letter(self, message: MessageId) -> None:
        """It is in the group's dead letter queue."""
        self._dead.add(message)
        if not is_doomed(message, self._limit):
            self._verdict.add(
                Law.DEAD_LETTER,
                f"{self._group}: {message} is a dead letter; its listener would have taken it",
            )

    def finish(self) -> None:
        for message, times in self._open.items():
            if message not in self._dead:
                self._verdict.add(
                    Law.NOT_RETRIED,
                    f"{self._group}: {message}, refused at redelivery {times}, came neither again nor to the"
                    " dead letters",
                )
        self._verdict.counts[f"{self._group}: dead letters"] = len(self._dead)
