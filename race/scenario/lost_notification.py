"""R6b: a consumer never receives the reset notification (docs/spec/races.md E.9, variants)."""

from __future__ import annotations

from typing import Final

from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.proxy.pattern import FramePattern
from rewindmq.race.scenario.outcomes import ALL_KEPT, KEPT_LATE, all_releases, cases, lost
from rewindmq.race.scenario.scenario import Loss, Scenario
from rewindmq.race.scenario.steps import caught_up, wait_over
from rewindmq.race.stage.stage import Stage

_OLD: Final = 6


async def play(stage: Stage) -> None:
    """Play E.9's variant: RESET_CONSUMER_CLIENT_OFFSET (220) is oneway, so the broker misses no reply."""
    await stage.open()
    notification = stage.hold(FramePattern(RequestCode.RESET_CONSUMER_CLIENT_OFFSET), consumer="A")
    await caught_up(stage, _OLD)
    # 1. The reset is acknowledged. Its notification to A is lost together with the connection.
    await stage.reset(0)
    if stage.mode is ResetMode.CLASSIC:
        await notification.wait()
        notification.drop()
    else:
        await wait_over(stage)
    # 2. A continues at its own offset.
    await stage.send(1)


SCENARIO: Final = Scenario(
    id="R6b",
    title="a consumer never receives the reset notification",
    section="docs/spec/races.md E.9",
    versions="all (classic)",
    closed_by="storing and fencing the targets at once",
    cases=cases(
        classic=all_releases(lost(Loss.L2), Profile.EPOCH),
        server=KEPT_LATE,
        fenced=ALL_KEPT,
    ),
    play=play,
)
