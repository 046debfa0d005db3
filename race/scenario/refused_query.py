"""ERR14: a busy broker refuses the offset query once (docs/spec/races.md E.15)."""

from __future__ import annotations

from typing import Final

from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.profile import Profile
from rewindmq.race.proxy.pattern import Form
from rewindmq.race.scenario.outcomes import ALL_KEPT, all_releases, cases, lost
from rewindmq.race.scenario.scenario import KEPT, Loss, Scenario
from rewindmq.race.scenario.steps import caught_up, is_restarted_in_place, query, wait_begun, wait_over
from rewindmq.race.stage.stage import Stage

_OLD: Final = 6


async def play(stage: Stage) -> None:
    """Play ERR14 of E.15: 4.x takes any error for "no offset stored", and then starts at the queue's end."""
    await stage.open()
    answer = stage.hold(query(form=Form.RESPONSE, skip=1), consumer="A")
    await caught_up(stage, _OLD)
    # 1. The reset. A new message ends the pull in flight; otherwise this would be R1.
    await stage.reset(0)
    await wait_begun(stage)
    await stage.send(1)
    if is_restarted_in_place(stage):
        # The consumer sends no offset query.
        await wait_over(stage)
        return
    # 2. A has committed the target and queries the stored offset. The broker refuses once: it is busy.
    await answer.wait()
    answer.refuse(ResponseCode.SYSTEM_BUSY, "[REJECTREQUEST]system busy, start flow control for a while")


SCENARIO: Final = Scenario(
    id="ERR14",
    title="the broker answers the offset query with an error, once",
    section="docs/spec/races.md E.15",
    versions="4.2.0, 4.9.4; 5.3.3 leaves the queue to the next rebalance",
    closed_by="another query after an error (5.x)",
    cases=cases(
        classic={
            Profile.V42: lost(Loss.L2),
            Profile.V49: lost(Loss.L2),
            Profile.V53: KEPT,
            Profile.EPOCH: lost(Loss.L2),
        },
        server={**all_releases(lost(Loss.L0, Loss.L2), Profile.EPOCH), Profile.V53: KEPT},
        fenced=ALL_KEPT,
    ),
    play=play,
)
