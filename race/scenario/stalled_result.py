"""STALL: a thread stalls between the last check and the update (docs/spec/races.md E.3, the residual)."""

from __future__ import annotations

from typing import Final

from rewindmq.client.core.remedy import Remedy
from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import Profile
from rewindmq.race.scenario.outcomes import KEPT_LATE, all_releases, cases, lost
from rewindmq.race.scenario.scenario import KEPT, Loss, Scenario
from rewindmq.race.scenario.steps import (
    begun_again,
    caught_up,
    is_restarted_in_place,
    since_reset,
    wait_begun,
)
from rewindmq.race.stage.stage import TOPIC, ListenerPlan, Stage, consumer_process

_OLD: Final = 10


async def play(stage: Stage) -> None:
    """Play the first case of RocketMQ's issue 4742."""
    await stage.open()
    stalled = stage.hold_stall(Point.RESULT_ACCEPTED, consumer="A", offset=_OLD + 1)
    a = await caught_up(stage, _OLD, listener=ListenerPlan(again=2.0), options={"consume_thread_max": 2})
    # 1. The message at OLD is consumed and its queue is not dropped. Then the thread stalls.
    await stage.send(1)
    await stalled.wait()
    # 2. The reset drops the queue. A new message ends the pull in flight; otherwise this would be R1.
    await stage.reset(0)
    await wait_begun(stage)
    await stage.send(1)
    await begun_again(stage, a)
    if is_restarted_in_place(stage):
        # The restart takes no time. A pull sent in the same moment would make the outcome random.
        await since_reset(
            stage, Point.OFFSET_UPDATED, process=consumer_process("A"), topic=TOPIC, queue_id=0, offset=1
        )
    # 3. The thread continues and updates the offset, which now belongs to another queue object.
    stalled.release()


SCENARIO: Final = Scenario(
    id="STALL",
    title="a thread stalls between the check of dropped and the update of the offset",
    section="docs/spec/races.md E.3",
    versions="all; needs a stall of more than 10 s",
    closed_by="an offset cell per queue object (remedy F8)",
    cases=cases(
        classic={**all_releases(lost(Loss.L1)), Profile.EPOCH: KEPT},
        # A client before 5.2.0 needs 10 s to apply the reset, and commits OLD again meanwhile (S1).
        server={
            Profile.V42: lost(Loss.L0, Loss.L1),
            Profile.V49: lost(Loss.L0, Loss.L1),
            Profile.V53: lost(Loss.L1),
            Profile.EPOCH: lost(Loss.L0),
        },
        fenced={**all_releases(lost(Loss.L1)), Profile.EPOCH: KEPT},
    ),
    play=play,
    remedies={
        Remedy.F8: cases(classic=all_releases(KEPT), server=KEPT_LATE, fenced=all_releases(KEPT)),
        # The late value has an older epoch than the next progress, which replaces it.
        Remedy.F12: cases(fenced=all_releases(KEPT)),
    },
)
