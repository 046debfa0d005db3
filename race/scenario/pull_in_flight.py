"""R1: the broker answers a pull in flight after the wait; it happens in idle queues.

Specification: docs/spec/races.md E.4.
"""

from __future__ import annotations

from typing import Final

from rewindmq.client.core.remedy import Remedy
from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.proxy.pattern import Form
from rewindmq.race.scenario.outcomes import ALL_KEPT, KEPT_LATE, all_releases, cases, lost
from rewindmq.race.scenario.scenario import KEPT, Loss, Scenario
from rewindmq.race.scenario.steps import ONE_THREAD, caught_up, pull, replay_begun
from rewindmq.race.stage.stage import TOPIC, ListenerPlan, Stage

_OLD: Final = 10
# Seconds that the listener takes for each message of the replay. With held frames it takes longer: a busy
# machine must not finish the replay before the late answer.
_AGAIN: Final = 2.0
_AGAIN_HELD: Final = 200.0


async def play(stage: Stage) -> None:
    """Play E.4. In real time the broker suspends the pull for 15 to 20 s, which makes the answer late."""
    late = None
    # In server mode that answer carries the reset and leaves at once, so it cannot be late.
    if stage.is_held and stage.mode is not ResetMode.SERVER:
        # The stage holds the answer instead, so the broker need not suspend the pull.
        await stage.open(broker_config={"longPollingEnable": "false"})
        late = stage.hold(pull(_OLD, form=Form.RESPONSE), consumer="A")
    else:
        await stage.open()
    # 1. The group is caught up at OLD; the broker suspends A's pull.
    listener = ListenerPlan(again=_AGAIN_HELD if stage.is_held else _AGAIN)
    await caught_up(stage, _OLD, listener=listener, options=ONE_THREAD)
    await stage.until(Point.PULL_SUSPENDED, topic=TOPIC, queue_id=0, offset=_OLD)
    # 2. The reset: A drops the queue, but does not cancel the pull.
    await stage.reset(0)
    # 3. The wait is over: A commits the target, and a new queue object starts there.
    await replay_begun(stage)
    # 4. Now the broker answers the pull: no new message, next offset OLD. A sets its offset in memory to OLD.
    # 5. The next pull or the 5 s timer commits OLD.
    # 6. The replay continues below OLD.
    if late is not None:
        await late.wait()
        late.release()


SCENARIO: Final = Scenario(
    id="R1",
    title="the broker answers a pull in flight only after the wait",
    section="docs/spec/races.md E.4",
    versions="4.2.0, 4.9.4, 5.3.3 (classic)",
    closed_by="checking dropped before the correction (remedy F1), or cancelling pulls (remedy F3)",
    cases=cases(
        classic={**all_releases(lost(Loss.L1)), Profile.EPOCH: KEPT},
        server=KEPT_LATE,
        fenced=ALL_KEPT,
    ),
    play=play,
    remedies=dict.fromkeys((Remedy.F1, Remedy.F3, Remedy.F8), cases(classic=all_releases(KEPT))),
)
