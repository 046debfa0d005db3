"""What the checker says."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rewindmq.race.scenario.scenario import Loss


class JudgeFrom(StrEnum):
    """The moment from which a reset is held to its promise.

    ``acknowledged``: when the administrator is answered (server, fenced, direct). ``applied``: when the
    target is stored for the first time, because the answer promises nothing (classic); a reset that is never
    applied is judged at the end.
    """

    ACKNOWLEDGED = "acknowledged"
    APPLIED = "applied"


class Law(StrEnum):
    """What is promised.

    ``stored``: the stored offset is the target, or everything between the two was delivered by pulls sent
    after the reset took effect, and finished (DESIGN 5). ``redelivered``: every message from the target on
    is delivered at least once. ``one chain``: no queue has two live chains of pulls.
    """

    STORED = "stored"
    REDELIVERED = "redelivered"
    ONE_CHAIN = "one chain"


@dataclass(frozen=True, slots=True)
class Violation:
    """A law that was broken.

    Attributes:
        broker_name, queue_id: where.
        index: of the offending event in the history.
        at: its time.
        text: one sentence.
    """

    law: Law
    loss: Loss
    broker_name: str
    queue_id: int
    index: int
    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """All of it; ``violations`` by index."""

    losses: frozenset[Loss]
    violations: tuple[Violation, ...]


NOTHING_TO_JUDGE: Final = Verdict(frozenset(), ())
