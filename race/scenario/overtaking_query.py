"""R9b: the offset query overtakes the commit of the target (docs/spec/races.md E.12)."""

from __future__ import annotations

from typing import Final

from rewindmq.protocol.profile import Profile
from rewindmq.race.scenario.outcomes import ALL_KEPT, all_releases, cases, lost
from rewindmq.race.scenario.scenario import KEPT, Loss, Scenario
from rewindmq.race.scenario.steps import begun_again, caught_up, commit, wait_begun
from rewindmq.race.stage.stage import Stage

_OLD: Final = 6


async def play(stage: Stage) -> None:
    """Play E.12's variant: offset queries and oneway commits share 32 threads at the broker."""
    await stage.open()
    target = stage.hold(commit(0, count=None), consumer="A")
    a = await caught_up(stage, _OLD)
    # 1. The reset. A new message ends the pull in flight; otherwise this would be R1.
    await stage.reset(0)
    await wait_begun(stage)
    await stage.send(1)
    # 2. The commit of the target is still in flight when A queries the stored offset, which is OLD.
    await begun_again(stage, a)
    # 3. The commit arrives too late.
    target.release()


SCENARIO: Final = Scenario(
    id="R9b",
    title="the offset query overtakes the commit of the target",
    section="docs/spec/races.md E.12",
    versions="all",
    closed_by="an acknowledged commit, or an epoch (remedy F12)",
    cases=cases(
        classic=all_releases(lost(Loss.L2), Profile.EPOCH),
        # 5.3.3 applies the reset at once, while the broker still stores the target.
        server={**all_releases(lost(Loss.L0, Loss.L2), Profile.EPOCH), Profile.V53: KEPT},
        fenced=ALL_KEPT,
    ),
    play=play,
)
