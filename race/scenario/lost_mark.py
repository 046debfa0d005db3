"""S3: the broker restarts before a pull consumes the mark (docs/spec/races.md E.16)."""

from __future__ import annotations

from typing import Final

from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import Profile
from rewindmq.race.proxy.pattern import Form
from rewindmq.race.scenario.outcomes import ALL_KEPT, all_releases, cases, lost
from rewindmq.race.scenario.scenario import Loss, Scenario
from rewindmq.race.scenario.steps import caught_up, pull, since_reset
from rewindmq.race.stage.stage import Stage

_OLD: Final = 6


async def play(stage: Stage) -> None:
    """Play S3 of E.16: the broker keeps marks in memory only."""
    await stage.open()
    answer = stage.hold(pull(_OLD, form=Form.RESPONSE), consumer="A")
    await caught_up(stage, _OLD)
    # 1. The target is on the broker's disk; A does not know of it yet.
    await stage.reset(0)
    await since_reset(stage, Point.OFFSETS_FLUSHED)
    # 2. The broker restarts. It still has the target, but not the mark.
    await stage.kill_broker()
    answer.drop()
    await stage.start_broker()
    # 3. A's next commit or pull carries OLD.


SCENARIO: Final = Scenario(
    id="S3",
    title="the broker restarts before a pull consumes the mark",
    section="docs/spec/races.md E.16",
    versions="5.1 and later, server-side",
    closed_by="an epoch stored with the offset (remedy F12)",
    cases=cases(
        server=all_releases(lost(Loss.L2), Profile.EPOCH),
        fenced=ALL_KEPT,
    ),
    play=play,
)
