"""Which laws a run broke, by the checker of all histories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rewindmq.race.checker import judge
from rewindmq.race.checker.resets import issued_resets
from rewindmq.race.history import Event
from rewindmq.race.scenario.scenario import Loss

# A broker that was started again knows a member only after its next heartbeat (30 s), and the others hear of
# it at their next rebalance (20 s); until then two of them may pull one queue.
_HANDOVER_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Broken:
    """A law that was broken.

    Attributes:
        law: ``stored``, ``redelivered``, ``one chain``.
        text: one sentence.
    """

    law: str
    text: str


def judge_run(events: Sequence[Event], *, is_at_rest: bool) -> tuple[Broken, ...]:
    """The laws a run broke for good; what was set right by itself does not count.

    Each acknowledged reset is judged up to the beginning of the next, because nobody knows when that took
    effect if its answer did not come.
    """
    resets = issued_resets(events)
    ends = [*(reset.started for reset in resets[1:]), len(events)]
    broken = []
    for reset, end in zip(resets, ends, strict=True):
        if reset.acknowledged is None or reset.acknowledged >= end:
            continue
        verdict = judge(
            events[:end],
            is_at_rest=is_at_rest and end == len(events),
            handover_seconds=_HANDOVER_SECONDS,
        )
        broken += [
            Broken(str(violation.law), violation.text)
            for violation in verdict.violations
            if violation.loss is not Loss.L0
        ]
    return tuple(broken)
