"""R10: a pull that carries an offset arrives during the wait (docs/spec/races.md E.13)."""

from __future__ import annotations

from typing import Final

from rewindmq.protocol.profile import Profile
from rewindmq.race.proxy.pattern import Form
from rewindmq.race.scenario.outcomes import ALL_KEPT, all_releases, cases, lost
from rewindmq.race.scenario.scenario import KEPT, Loss, Scenario
from rewindmq.race.scenario.steps import caught_up, pull, wait_begun
from rewindmq.race.stage.stage import Stage

_OLD: Final = 6


async def play(stage: Stage) -> None:
    """Play E.13, which loses nothing: the broker stores OLD long before the target."""
    await stage.open()
    flagged = stage.hold(pull(_OLD + 1, form=Form.REQUEST), consumer="A")
    # 1. A has sent a pull that carries OLD as its commit offset.
    await caught_up(stage, _OLD)
    await stage.send(1)
    await flagged.wait()
    # 2. It arrives during the wait. A new message ends that pull early; otherwise this would be R1.
    await stage.reset(0)
    await wait_begun(stage)
    flagged.release()
    await stage.send(1)


SCENARIO: Final = Scenario(
    id="R10",
    title="a pull with the commit flag arrives during the wait",
    section="docs/spec/races.md E.13",
    versions="none in classic mode; in server mode this is S1",
    closed_by="the wait itself",
    cases=cases(
        classic=all_releases(KEPT, Profile.EPOCH),
        server=all_releases(lost(Loss.L0), Profile.EPOCH),
        fenced=ALL_KEPT,
    ),
    play=play,
)
