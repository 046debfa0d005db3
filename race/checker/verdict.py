"""The verdict of the checker."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rewindmq.race.scenario.scenario import Loss


class JudgeFrom(StrEnum):
    """The moment from which a reset must keep the laws.

    ``acknowledged``: when the administrator gets the answer (server, fenced and direct resets). ``applied``:
    when the target is first stored, because the answer to a classic reset promises nothing. A reset that is
    never applied is judged at the end.
    """

    ACKNOWLEDGED = "acknowledged"
    APPLIED = "applied"


class Law(StrEnum):
    """The laws that a reset must keep.

    ``stored``: the stored offset is the target or a later offset, and every message between them was finished
    after a pull sent since the reset took effect had returned it. ``redelivered``: every message from the
    target on is delivered at least once. ``one chain``: no queue has two live chains of pulls.
    """

    STORED = "stored"
    REDELIVERED = "redelivered"
    ONE_CHAIN = "one chain"


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken law.

    Attributes:
        broker_name, queue_id: the queue.
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
    """The losses and the violations, ordered by index."""

    losses: frozenset[Loss]
    violations: tuple[Violation, ...]


NOTHING_TO_JUDGE: Final = Verdict(frozenset(), ())
