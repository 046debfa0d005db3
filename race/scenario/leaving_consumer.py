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
    """Play the steps of E.11."""
    await stage.open(consumers=2)
    a = await caught_up(stage, _OLD)
    await stage.reset(0)
    await wait_begun(stage)
    # A shuts down 4 s into the wait. It commits OLD and clears its table. If the shutdown does not wait for
    # the reset, the apply pass finds no queue.
    await stage.sleep(4)
    await a.stop()
    # The next consumer starts at the stored offset.
    await stage.consumer("B")


SCENARIO: Final = Scenario(
    id="R8",
    title="a consumer is shut down during the wait",
    section="docs/spec/races.md E.11",
    versions="up to 4.8.0; a shutdown waits for the reset since 4.9.0",
    closed_by="a shutdown that waits for the reset (4.9.0), or storing the targets at once",
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
