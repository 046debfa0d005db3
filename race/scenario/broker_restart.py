"""R11: the broker restarts at the end of the wait (docs/spec/races.md E.14)."""

from __future__ import annotations

from typing import Final

from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import Profile
from rewindmq.race.scenario.outcomes import ALL_KEPT, all_releases, cases, lost
from rewindmq.race.scenario.scenario import Loss, Scenario
from rewindmq.race.scenario.steps import caught_up, wait_begun, wait_over
from rewindmq.race.stage.stage import Stage

_OLD: Final = 6


async def play(stage: Stage) -> None:
    """Play E.14 with its figures: the broker is down from 9 s to 11 s after the reset."""
    await stage.open()
    await caught_up(stage, _OLD)
    # 1. The group's offset is on the broker's disk.
    await stage.until(Point.OFFSETS_FLUSHED)
    await stage.reset(0)
    await wait_begun(stage)
    await stage.sleep(9)
    await stage.kill_broker()
    # 2. The apply pass cannot send its commit. A logs that, and forgets the queue's offset all the same.
    await wait_over(stage)
    await stage.sleep(1)
    await stage.start_broker()
    # 3. A finds the broker again 30 s after its last heartbeat. The broker returns the offset on its disk.


SCENARIO: Final = Scenario(
    id="R11",
    title="the broker restarts at the end of the wait",
    section="docs/spec/races.md E.14",
    versions="all (classic)",
    closed_by="storing the targets on disk before the reset is acknowledged, as fenced mode does",
    cases=cases(
        classic=all_releases(lost(Loss.L2), Profile.EPOCH),
        # No pull has consumed the mark by then: S3. RewindMQ's broker answers the suspended pull of a client
        # since 5.2.0 at once, and RocketMQ's does not, so v53 has no outcome here.
        server=dict.fromkeys((Profile.V42, Profile.V49, Profile.EPOCH), lost(Loss.L2)),
        fenced=ALL_KEPT,
    ),
    play=play,
)
