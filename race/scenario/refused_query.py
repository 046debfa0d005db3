"""ERR14: the broker is busy when asked where the queue stands (docs/spec/races.md E.15)."""

from __future__ import annotations

from typing import Final

from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.profile import Profile
from rewindmq.race.proxy.pattern import Form
from rewindmq.race.scenario.outcomes import ALL_KEPT, alike, cases, lost
from rewindmq.race.scenario.scenario import KEPT, Loss, Scenario
from rewindmq.race.scenario.steps import caught_up, is_restarted_in_place, query, wait_begun, wait_over
from rewindmq.race.stage.stage import Stage

_OLD: Final = 6


async def play(stage: Stage) -> None:
    """4.x takes any refusal for "no offset stored", and a group without one begins at the end."""
    await stage.open()
    answer = stage.hold(query(form=Form.RESPONSE, skip=1), member="A")
    await caught_up(stage, _OLD)
    # 1. The reset. Another message brings the pull in flight back: this is not R1.
    await stage.reset(0)
    await wait_begun(stage)
    await stage.send(1)
    if is_restarted_in_place(stage):
        # Nobody asks.
        await wait_over(stage)
        return
    # 2. The target is committed. A asks where the queue stands, and the broker is busy, once.
    await answer.wait()
    answer.refuse(ResponseCode.SYSTEM_BUSY, "[REJECTREQUEST]system busy, start flow control for a while")


SCENARIO: Final = Scenario(
    id="ERR14",
    title="the question where the queue stands is answered with an error, once",
    section="docs/spec/races.md E.15",
    versions="4.2.0, 4.9.4; 5.3.3 leaves the queue for the next rebalance",
    closed_by="asking again after an error (5.x)",
    cases=cases(
        classic={
            Profile.V42: lost(Loss.L2),
            Profile.V49: lost(Loss.L2),
            Profile.V53: KEPT,
            Profile.EPOCH: lost(Loss.L2),
        },
        server={**alike(lost(Loss.L0, Loss.L2), Profile.EPOCH), Profile.V53: KEPT},
        fenced=ALL_KEPT,
    ),
    play=play,
)
