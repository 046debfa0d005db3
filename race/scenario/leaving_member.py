"""R8: a consumer is shut down during the wait (docs/spec/races.md E.11)."""

from __future__ import annotations

from typing import Final

from rewindmq.protocol.profile import Profile
from rewindmq.race.scenario.outcomes import ALL_KEPT, cases, lost
from rewindmq.race.scenario.scenario import KEPT, Loss, Scenario
from rewindmq.race.scenario.steps import caught_up, wait_begun
from rewindmq.race.stage.stage import Stage

_OLD: Final = 6


async def play(stage: Stage) -> None:
    """The steps of E.11, in order."""
    await stage.open(members=2)
    a = await caught_up(stage, _OLD)
    await stage.reset(0)
    await wait_begun(stage)
    # 4 s into the wait A is shut down. It commits OLD and clears its table; where that does not wait for the
    # reset, the apply pass finds nothing.
    await stage.sleep(4)
    await a.stop()
    # Whoever comes next begins where the group stands.
    await stage.member("B")


SCENARIO: Final = Scenario(
    id="R8",
    title="a consumer is shut down during the wait",
    section="docs/spec/races.md E.11",
    versions="up to 4.8.0; a shutdown waits for the reset since 4.9.0",
    closed_by="a shutdown that waits (4.9.0), or targets stored at once",
    cases=cases(
        classic={
            Profile.V42: lost(Loss.L2),
            Profile.V49: KEPT,
            Profile.V53: KEPT,
            Profile.EPOCH: KEPT,
        },
        server=ALL_KEPT,
        fenced=ALL_KEPT,
    ),
    play=play,
)
