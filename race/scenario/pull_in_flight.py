"""R1: the pull in flight when the reset comes, the hole that idle queues fall into.

Specification: docs/spec/races.md E.4.
"""

from __future__ import annotations

from typing import Final

from rewindmq.client.core.remedy import Remedy
from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.proxy.pattern import Form
from rewindmq.race.scenario.outcomes import ALL_KEPT, KEPT_LATE, alike, cases, lost
from rewindmq.race.scenario.scenario import KEPT, Loss, Scenario
from rewindmq.race.scenario.steps import ONE_THREAD, caught_up, pull, replay_begun
from rewindmq.race.stage.stage import TOPIC, ListenerPlan, Stage

_OLD: Final = 10
# Seconds of the listener for each message of the replay. Time says little where frames are held: a busy
# machine must not come to the end of the replay before the late answer.
_AGAIN: Final = 2.0
_AGAIN_HELD: Final = 200.0


async def play(stage: Stage) -> None:
    """The steps of E.4. In natural time the broker's hold of 15 to 20 s makes the answer late enough."""
    late = None
    # In server mode that answer is the notice: it leaves at once, and is nothing to be late.
    if stage.is_held and stage.mode is not ResetMode.SERVER:
        # Held by hand instead, so the broker need not.
        await stage.open(broker_config={"longPollingEnable": "false"})
        late = stage.hold(pull(_OLD, form=Form.RESPONSE), member="A")
    else:
        await stage.open()
    # 1. The group is caught up at OLD; the broker holds A's pull.
    listener = ListenerPlan(again=_AGAIN_HELD if stage.is_held else _AGAIN)
    await caught_up(stage, _OLD, listener=listener, options=ONE_THREAD)
    await stage.until(Point.PULL_HELD, topic=TOPIC, queue_id=0, offset=_OLD)
    # 2. The reset: A drops the queue, but neither cancels nor remembers the pull.
    await stage.reset(0)
    # 3. The wait is over: the target is committed, a new queue object begins there.
    await replay_begun(stage)
    # 4. Only now the pull is answered: no new message, go on at OLD. In memory the offset is OLD again, and
    # 5. the next pull or the 5 s timer carries it to the broker,
    # 6. while the replay goes on below it.
    if late is not None:
        await late.wait()
        late.release()


SCENARIO: Final = Scenario(
    id="R1",
    title="a pull in flight at the reset is answered after the wait",
    section="docs/spec/races.md E.4",
    versions="4.2.0, 4.9.4, 5.3.3 classic",
    closed_by="a check of dropped before the correction (remedy F1), or cancelled pulls (remedy F3)",
    cases=cases(
        classic={**alike(lost(Loss.L1)), Profile.EPOCH: KEPT},
        server=KEPT_LATE,
        fenced=ALL_KEPT,
    ),
    play=play,
    remedies=dict.fromkeys((Remedy.F1, Remedy.F3, Remedy.F8), cases(classic=alike(KEPT))),
)
