"""Judges each reset of an explored run with the checker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from rewindmq.race.checker import Verdict, judge
from rewindmq.race.checker.resets import issued_resets
from rewindmq.race.history import Event
from rewindmq.race.scenario.scenario import Loss

# A restarted broker learns of a consumer at its next heartbeat (30 s), and the other consumers at their next
# rebalance (20 s). Until then two consumers may pull one queue.
_HANDOVER_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Broken:
    """A broken law.

    Attributes:
        law: ``stored``, ``redelivered`` or ``one chain``.
        text: one sentence.
    """

    law: str
    text: str


class Judged(NamedTuple):
    """The verdict on a reset, and the events that it judges: those up to the start of the next reset."""

    events: Sequence[Event]
    verdict: Verdict

    @property
    def broken(self) -> list[Broken]:
        """The laws that stay broken; a violation that a later commit repaired does not count."""
        return [
            Broken(str(violation.law), violation.text)
            for violation in self.verdict.violations
            if violation.loss is not Loss.L0
        ]


def judge_run(events: Sequence[Event], *, is_at_rest: bool) -> tuple[Broken, ...]:
    """Return the laws that a run broke, except violations that a later commit repaired."""
    return tuple(broken for judged in judge_resets(events, is_at_rest=is_at_rest) for broken in judged.broken)


def judge_resets(events: Sequence[Event], *, is_at_rest: bool) -> list[Judged]:
    """Return a verdict for each acknowledged reset, by the events up to the start of the next reset.

    A later reset whose response is lost may take effect at any time after its start.
    """
    resets = issued_resets(events)
    ends = [*(reset.started for reset in resets[1:]), len(events)]
    return [
        Judged(
            events[:end],
            judge(
                events[:end],
                is_at_rest=is_at_rest and end == len(events),
                handover_seconds=_HANDOVER_SECONDS,
            ),
        )
        for reset, end in zip(resets, ends, strict=True)
        if reset.acknowledged is not None and reset.acknowledged < end
    ]
