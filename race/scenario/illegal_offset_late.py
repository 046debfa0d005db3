"""R3a: a pull answered OFFSET_ILLEGAL during the wait (docs/spec/races.md E.6)."""

from __future__ import annotations

from typing import Final

from rewindmq.client.core.remedy import Remedy
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.profile import Profile
from rewindmq.race.proxy.pattern import Form
from rewindmq.race.scenario.outcomes import ALL_KEPT, alike, cases, lost
from rewindmq.race.scenario.scenario import KEPT, Loss, Scenario
from rewindmq.race.scenario.steps import ONE_THREAD, STALE, pull, stale_offset, wait_begun
from rewindmq.race.stage.stage import ListenerPlan, Stage

_COUNT: Final = 10


async def play(stage: Stage) -> None:
    """The steps of E.6."""
    await stage.open(members=2)
    # A consumer starts on an offset that its queue has not reached: the answer to its pull is 21 ...
    await stale_offset(stage, _COUNT)
    # (A broker that knows B's subscription by an older heartbeat refuses the first pull with 25.)
    is_illegal = pull(STALE * _COUNT, form=Form.RESPONSE, response_code=ResponseCode.PULL_OFFSET_MOVED)
    illegal = stage.hold(is_illegal, member="B")
    await stage.member("B", listener=ListenerPlan(seconds=3.0), options=ONE_THREAD)
    # ... and is under way when the reset comes.
    await illegal.wait()
    await stage.reset(0)
    await wait_begun(stage, name="B")
    # It arrives 4 s into the wait. 10 s later, so 4 s after it, a task sets the "corrected" offset, commits
    # it, and takes the queue just rebuilt away; the next rebalance begins there.
    await stage.sleep(4)
    illegal.release()


SCENARIO: Final = Scenario(
    id="R3a",
    title="a pull in flight is answered OFFSET_ILLEGAL; its correction runs 10 s later, after the wait",
    section="docs/spec/races.md E.6",
    versions="up to 5.1.4; 5.3.3 corrects at once, and the wait misses the queue",
    closed_by="cancelled pulls (remedy F3)",
    cases=cases(
        # Before 5.2.0 the replay has begun when it is taken away.
        classic={
            Profile.V42: lost(Loss.L1, Loss.L2),
            Profile.V49: lost(Loss.L1, Loss.L2),
            Profile.V53: lost(Loss.L2),
            Profile.EPOCH: KEPT,
        },
        server=ALL_KEPT,
        fenced=ALL_KEPT,
    ),
    play=play,
    remedies={
        Remedy.F3: cases(classic=alike(KEPT)),
        # 5.3.3 corrects during the wait, which misses the queue: no late update that F8 could ignore.
        Remedy.F8: cases(classic={Profile.V42: KEPT, Profile.V49: KEPT}),
        # 5.3.3 corrects for whichever queue object is registered: the new one, with the new epoch.
        Remedy.F12: cases(fenced={Profile.V53: lost(Loss.L1, Loss.L2)}),
    },
)
