"""S1: the pull that consumes the mark stores the old offset again (docs/spec/races.md E.16)."""

from __future__ import annotations

from typing import Final

from rewindmq.protocol.profile import Profile
from rewindmq.race.proxy.pattern import Form
from rewindmq.race.scenario.outcomes import ALL_KEPT, all_releases, cases, lost
from rewindmq.race.scenario.scenario import Loss, Scenario
from rewindmq.race.scenario.steps import caught_up, pull
from rewindmq.race.stage.stage import Stage

_OLD: Final = 6


async def play(stage: Stage) -> None:
    """Play S1 of E.16. OLD replaces the target for one round trip, or for 10 s with clients before 5.2.0."""
    await stage.open()
    flagged = stage.hold(pull(_OLD + 1, form=Form.REQUEST), consumer="A")
    # 1. A has sent a pull that carries OLD as its commit offset.
    await caught_up(stage, _OLD)
    await stage.send(1)
    await flagged.wait()
    # 2. The reset stores the target and sets the mark.
    await stage.reset(0)
    # 3. The pull consumes the mark, and the broker then stores OLD. The answer sends A to the target.
    flagged.release()


SCENARIO: Final = Scenario(
    id="S1",
    title="the pull that consumes the mark stores the old offset again, until the client commits the target",
    section="docs/spec/races.md E.16",
    versions="5.1 and later, server-side",
    closed_by="an epoch that pulls carry (remedy F12)",
    cases=cases(
        server=all_releases(lost(Loss.L0), Profile.EPOCH),
        fenced=ALL_KEPT,
    ),
    play=play,
)
