"""S7: an administrator writes an offset while the queue has a mark (docs/spec/races.md E.16)."""

from __future__ import annotations

from typing import Final

from rewindmq.protocol.profile import Profile
from rewindmq.race.scenario.outcomes import ALL_KEPT, all_releases, cases, lost
from rewindmq.race.scenario.scenario import Loss, Scenario
from rewindmq.race.scenario.steps import caught_up
from rewindmq.race.stage.stage import Stage

_OLD: Final = 6


async def play(stage: Stage) -> None:
    """Play S7 of E.16: the broker returns success and does not store the offset."""
    await stage.open()
    a = await caught_up(stage, _OLD)
    # 1. A stops: a pull that waits at the broker would consume the mark.
    await a.stop()
    # 2. A reset to 4. Then the administrator writes offset 1 directly.
    await stage.reset(4)
    await stage.reset(1, is_direct=True)
    # 3. The group starts at 4, and its first pull consumes the mark.
    await stage.consumer("B")
    await stage.send(1)


SCENARIO: Final = Scenario(
    id="S7",
    title="the broker ignores a direct write while the queue has a mark",
    section="docs/spec/races.md E.16",
    versions="5.1 and later, server-side",
    closed_by="an error: in fenced mode the broker returns OFFSET_FENCED (190001) to the direct write",
    cases=cases(
        server=all_releases(lost(Loss.L2), Profile.EPOCH),
        fenced=ALL_KEPT,
    ),
    play=play,
)
