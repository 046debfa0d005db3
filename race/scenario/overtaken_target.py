"""S5: after S1, the offset query overtakes the commit of the target (docs/spec/races.md E.16)."""

from __future__ import annotations

from typing import Final

from rewindmq.protocol.profile import Profile
from rewindmq.race.proxy.pattern import Form
from rewindmq.race.scenario.outcomes import ALL_KEPT, all_releases, cases, lost
from rewindmq.race.scenario.scenario import Loss, Scenario
from rewindmq.race.scenario.steps import begun_again, caught_up, commit, pull
from rewindmq.race.stage.stage import Stage

_OLD: Final = 6


async def play(stage: Stage) -> None:
    """Play S1 to its end, and delay the oneway commit of the target."""
    await stage.open()
    flagged = stage.hold(pull(_OLD + 1, form=Form.REQUEST), consumer="A")
    target = stage.hold(commit(0, count=None), consumer="A")
    a = await caught_up(stage, _OLD)
    await stage.send(1)
    await flagged.wait()
    # 1. The pull consumes the mark and stores OLD.
    await stage.reset(0)
    flagged.release()
    # 2. A commits the target and rebuilds the queue. Its offset query is handled before the commit.
    await begun_again(stage, a)
    target.release()


SCENARIO: Final = Scenario(
    id="S5",
    title="after S1, the offset query overtakes the commit of the target",
    section="docs/spec/races.md E.16",
    versions="5.1 and later, server-side",
    closed_by="an epoch (remedy F12)",
    cases=cases(
        server=all_releases(lost(Loss.L0, Loss.L2), Profile.EPOCH),
        fenced=ALL_KEPT,
    ),
    play=play,
)
