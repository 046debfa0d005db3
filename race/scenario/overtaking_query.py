"""R9b: the question where the queue stands overtakes the commit of the target (docs/spec/races.md E.12)."""

from __future__ import annotations

from typing import Final

from rewindmq.protocol.profile import Profile
from rewindmq.race.scenario.outcomes import ALL_KEPT, alike, cases, lost
from rewindmq.race.scenario.scenario import KEPT, Loss, Scenario
from rewindmq.race.scenario.steps import begun_again, caught_up, commit, wait_begun
from rewindmq.race.stage.stage import Stage

_OLD: Final = 6


async def play(stage: Stage) -> None:
    """14 and 15 share a pool of 32 threads at the broker, and 15 is oneway."""
    await stage.open()
    target = stage.hold(commit(0, count=None), member="A")
    a = await caught_up(stage, _OLD)
    # 1. The reset. Another message brings the pull in flight back: this is not R1.
    await stage.reset(0)
    await wait_begun(stage)
    await stage.send(1)
    # 2. The commit of the target is still on its way when A asks where the queue stands: at OLD.
    await begun_again(stage, a)
    # 3. It arrives, too late.
    target.release()


SCENARIO: Final = Scenario(
    id="R9b",
    title="the question where the queue stands overtakes the commit of the target",
    section="docs/spec/races.md E.12",
    versions="all",
    closed_by="an acknowledged commit, or an epoch (remedy F12)",
    cases=cases(
        classic=alike(lost(Loss.L2), Profile.EPOCH),
        # 5.3.3 obeys at once: the broker still holds the target.
        server={**alike(lost(Loss.L0, Loss.L2), Profile.EPOCH), Profile.V53: KEPT},
        fenced=ALL_KEPT,
    ),
    play=play,
)
