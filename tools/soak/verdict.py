"""The verdict of the checker: violations and counters."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

# Violations of each kind that are reported in full; all are counted.
_MAX_REPORTED: Final = 20


class ViolationKind(StrEnum):
    """A kind of violation, with its text for the report."""

    LOST = "an acknowledged message was never delivered"
    INVENTED = "a message was delivered that was never sent, or its content was changed"
    WRONG_QUEUE = "a message was delivered to a group that does not subscribe to it"
    TWO_IN_ONE_PLACE = "one offset of a queue had two messages"
    OUT_OF_ORDER = "an orderly queue was delivered out of order"
    WENT_BACK = "an orderly queue went back before its committed offset without a reset"
    SENT_IN_ORDER = "messages sent one after another were stored in another order"
    NOT_REPLAYED = "a message after the target of a fenced reset was not delivered again"
    TOO_EARLY = "a delayed message was delivered early"
    ROLLED_BACK = "a message of a rolled-back transaction was delivered"
    NOT_RETRIED = "a refused message was neither delivered again nor became a dead letter"
    DEAD_LETTER = "a message became a dead letter that should not have"
    MEMORY = "a process's memory grew too much"
    DIED = "a process ended by itself"
    LOG = "a server logged an error of its own"
    DRAIN = "a group did not consume all messages"
    EMPTY = "the soak did not test a promise"


class SoakViolation(NamedTuple):
    """One broken promise."""

    kind: ViolationKind
    text: str


@dataclass
class SoakVerdict:
    """All counts, and the first violations of each kind in full."""

    violations: list[SoakViolation] = field(default_factory=list)
    totals: Counter[ViolationKind] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def is_ok(self) -> bool:
        return not self.totals

    def add(self, kind: ViolationKind, text: str, times: int = 1) -> None:
        """Add one violation, or ``times`` violations that share a text."""
        if self.totals[kind] < _MAX_REPORTED:
            self.violations.append(SoakViolation(kind, text))
        self.totals[kind] += times
