"""S7: an administrator's direct write while a mark is pending (docs/spec/races.md E.16)."""

from __future__ import annotations

from typing import Final

from rewindmq.protocol.profile import Profile
from rewindmq.race.scenario.outcomes import ALL_KEPT, alike, cases, lost
from rewindmq.race.scenario.scenario import Loss, Scenario
from rewindmq.race.scenario.steps import caught_up
from rewindmq.race.stage.stage import Stage

_OLD: Final = 6


async def play(stage: Stage) -> None:
    """Success, and nothing is stored."""
    await stage.open()
    await caught_up(stage, _OLD)
    # 1. A reset to 4, and a second thought: to 1, written past the consumers.
    await stage.reset(4)
    await stage.reset(1, is_direct=True)
    # 2. The mark is collected, and the group begins at 4.
    await stage.send(1)


SCENARIO: Final = Scenario(
    id="S7",
    title="a direct write is swallowed while a mark is pending",
    section="docs/spec/races.md E.16",
    versions="5.1 and later, server-side",
    closed_by="a refusal: in fenced mode the write is answered with a code of its own",
    cases=cases(
        server=alike(lost(Loss.L2), Profile.EPOCH),
        fenced=ALL_KEPT,
    ),
    play=play,
)
