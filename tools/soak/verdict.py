"""What the checker finds."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

# Of each law, only so many are told in full; all are counted.
_TOLD: Final = 20


class Law(StrEnum):
    """What a soak must not show."""

    LOST = "an acknowledged message was never delivered"
    INVENTED = "a message was delivered that was not sent, or with other content"
    WRONG_QUEUE = "a message was delivered to a group that does not subscribe to it"
    TWO_IN_ONE_PLACE = "one place of a queue held two messages"
    OUT_OF_ORDER = "an orderly queue was delivered out of order"
    WENT_BACK = "an orderly queue went back behind what was committed, with no reset"
    SENT_IN_ORDER = "messages sent one after another were stored in another order"
    NOT_REPLAYED = "a message behind a fenced reset was not delivered again"
    TOO_EARLY = "a delayed message was delivered early"
    ROLLED_BACK = "a message of a rolled-back transaction was delivered"
    NOT_RETRIED = "a refused message came neither again nor to the dead letters"
    DEAD_LETTER = "the dead letters are not those that they have to be"
    MEMORY = "a process grew by more than it may"
    DIED = "a process ended by itself"
    LOG = "a server logged an error of its own"
    DRAIN = "a group did not come to the end"
    EMPTY = "something was not put to the test at all"


class Violation(NamedTuple):
    law: Law
    text: str


@dataclass
class Verdict:
    """Violations, the first of each law told, and what was counted besides."""

    violations: list[Violation] = field(default_factory=list)
    totals: Counter[Law] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def is_ok(self) -> bool:
        return not self.totals

    def add(self, law: Law, text: str, times: int = 1) -> None:
        """One violation, or ``times`` that one text tells of."""
        if self.totals[law] < _TOLD:
            self.violations.append(Violation(law, text))
        self.totals[law] += times
