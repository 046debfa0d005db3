"""R3a: the broker answers a pull with OFFSET_ILLEGAL during the wait (docs/spec/races.md E.6)."""

from __future__ import annotations

from typing import Final

from rewindmq.client.core.remedy import Remedy
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.profile import Profile
from rewindmq.race.proxy.pattern import Form
from rewindmq.race.scenario.outcomes import ALL_KEPT, all_releases, cases, lost
from rewindmq.race.scenario.scenario import KEPT, Loss, Scenario
from rewindmq.race.scenario.steps import ONE_THREAD, STALE, pull, stale_offset, wait_begun
from rewindmq.race.stage.stage import ListenerPlan, Stage

_COUNT: Final = 10


async def play(stage: Stage) -> None:
    """Play the steps of E.6."""
    await stage.open(consumers=2)
    # B starts at an offset beyond the queue's end. The broker answers its pull with PULL_OFFSET_MOVED (21).
    await stale_offset(stage, _COUNT)
    # A broker that knows an older heartbeat of B refuses the first pull with SUBSCRIPTION_NOT_LATEST (25).
    is_illegal = pull(STALE * _COUNT, form=Form.RESPONSE, response_code=ResponseCode.PULL_OFFSET_MOVED)
    illegal = stage.hold(is_illegal, consumer="B")
    await stage.consumer("B", listener=ListenerPlan(seconds=3.0), options=ONE_THREAD)
    # That answer is in flight when the reset comes.
    await illegal.wait()
    await stage.reset(0)
    await wait_begun(stage, name="B")
    # It arrives 4 s into the wait. Its delayed task runs 10 s later, 4 s after the wait: it sets and commits
    # the "corrected" offset and removes the rebuilt queue. The next rebalance starts at that offset.
    await stage.sleep(4)
    illegal.release()


SCENARIO: Final = Scenario(
    id="R3a",
    title="OFFSET_ILLEGAL answers a pull in flight; the client corrects 10 s later, after the wait",
    section="docs/spec/races.md E.6",
    versions="up to 5.1.4; 5.3.3 corrects at once, and the apply pass misses the queue",
    closed_by="cancelled pulls (remedy F3)",
    cases=cases(
        # Before 5.2.0 the replay has begun when the task removes the queue.
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
        Remedy.F3: cases(classic=all_releases(KEPT)),
        # 5.3.3 corrects during the wait, and the apply pass misses the queue. There is no late update for F8.
        Remedy.F8: cases(classic={Profile.V42: KEPT, Profile.V49: KEPT}),
        # The correction of 5.3.3 applies to the queue object that is registered when it runs: the new one,
        # which has the new epoch.
        Remedy.F12: cases(fenced={Profile.V53: lost(Loss.L1, Loss.L2)}),
    },
)
