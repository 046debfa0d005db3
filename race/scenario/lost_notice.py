"""R6b: the notice is lost on its way to a member (docs/spec/races.md E.9, variants)."""

from __future__ import annotations

from typing import Final

from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.proxy.pattern import FramePattern
from rewindmq.race.scenario.outcomes import ALL_KEPT, KEPT_LATE, alike, cases, lost
from rewindmq.race.scenario.scenario import Loss, Scenario
from rewindmq.race.scenario.steps import caught_up, wait_over
from rewindmq.race.stage.stage import Stage

_OLD: Final = 6


async def play(stage: Stage) -> None:
    """220 is oneway: a broker only logs what it could not send, and nobody asks what arrived."""
    await stage.open()
    notice = stage.hold(FramePattern(RequestCode.RESET_CONSUMER_CLIENT_OFFSET), member="A")
    await caught_up(stage, _OLD)
    # 1. The reset is acknowledged; its notice to A is lost with the connection it is on.
    await stage.reset(0)
    if stage.mode is ResetMode.CLASSIC:
        await notice.wait()
        notice.drop()
    else:
        await wait_over(stage)
    # 2. A goes on where it was.
    await stage.send(1)


SCENARIO: Final = Scenario(
    id="R6b",
    title="a member never gets the notice",
    section="docs/spec/races.md E.9",
    versions="all classic",
    closed_by="targets stored at once and fenced",
    cases=cases(
        classic=alike(lost(Loss.L2), Profile.EPOCH),
        server=KEPT_LATE,
        fenced=ALL_KEPT,
    ),
    play=play,
)
