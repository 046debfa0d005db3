"""R4: a rebalance in progress when the reset comes (docs/spec/races.md E.7), the zombie queue."""

from __future__ import annotations

from typing import Final

from rewindmq.client.core.remedy import Remedy
from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.proxy.pattern import Form
from rewindmq.race.scenario.outcomes import ALL_KEPT, alike, cases, lost
from rewindmq.race.scenario.scenario import KEPT, Loss, Scenario
from rewindmq.race.scenario.steps import committed, progress, query, since_reset, wait_begun, wait_over
from rewindmq.race.stage.stage import TOPIC, ListenerPlan, Stage, consumer_process

_OLD: Final = 6
_END: Final = 12


async def play(stage: Stage) -> None:
    """The steps of E.7: slow queries (14) stretch both rebalances."""
    await stage.open(members=2)
    await stage.send(_END)
    # The queue's owner has consumed up to OLD and leaves.
    before = await stage.member("B", listener=ListenerPlan(blocked=frozenset({_OLD})))
    await progress(stage, _OLD, name="B")
    await before.stop()
    await committed(stage, _OLD)
    answer = stage.hold(query(form=Form.RESPONSE), member="A")
    again = None
    if stage.mode is ResetMode.CLASSIC:
        again = stage.hold(query(form=Form.REQUEST, skip=1, count=None), member="A")
    # 1. A's rebalance takes the queue over, and is asking where it stands.
    await stage.member("A", options={"pull_batch_size": 1})
    await answer.wait()
    # 2. The reset: A has no such queue yet, so there is nothing to drop.
    await stage.reset(0)
    await wait_begun(stage)
    # 3. The answer comes: the rebalance inserts the queue, at OLD. Its pulls wait for the end of the wait.
    answer.release()
    zombie = await stage.until(Point.QUEUE_ADDED, process=consumer_process("A"), topic=TOPIC)
    if again is not None:
        # 4. The apply pass commits the target and forgets the queue, without dropping it.
        await wait_over(stage)
        await again.wait()
        # 5. Its chain of pulls wakes, and commits its progress before A asks where the queue stands.
        if not stage.history.of(Point.QUEUE_DROPPED, chain=zombie.details["chain"], process=zombie.process):
            await since_reset(stage, Point.PULL_HELD, topic=TOPIC, offset=_END)
        again.release()
        # 6. Two chains serve the queue now.
        await stage.until(Point.QUEUE_ADDED, process=consumer_process("A"), topic=TOPIC, count=2)
        await stage.send(2)


SCENARIO: Final = Scenario(
    id="R4",
    title="a rebalance inserts the queue during the wait: the apply pass forgets it, its pulls go on",
    section="docs/spec/races.md E.7",
    versions="4.2.0, 4.9.4, 5.3.3 classic",
    closed_by="dropping in the apply pass (remedy F2)",
    cases=cases(
        classic={**alike(lost(Loss.L2, Loss.L3)), Profile.EPOCH: KEPT},
        # The queue's first pull carries OLD: S1.
        server=alike(lost(Loss.L0), Profile.EPOCH),
        fenced=ALL_KEPT,
    ),
    play=play,
    remedies={
        Remedy.F2: cases(classic=alike(KEPT)),
        # The zombie's progress counts no longer, but it delivers.
        Remedy.F8: cases(classic=alike(lost(Loss.L3))),
    },
)
