"""R4: a rebalance in progress when the reset comes creates a zombie queue (docs/spec/races.md E.7)."""

from __future__ import annotations

from typing import Final

from rewindmq.client.core.remedy import Remedy
from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.proxy.pattern import Form
from rewindmq.race.scenario.outcomes import ALL_KEPT, all_releases, cases, lost
from rewindmq.race.scenario.scenario import KEPT, Loss, Scenario
from rewindmq.race.scenario.steps import committed, progress, query, since_reset, wait_begun, wait_over
from rewindmq.race.stage.stage import TOPIC, ListenerPlan, Stage, consumer_process

_OLD: Final = 6
_END: Final = 12


async def play(stage: Stage) -> None:
    """Play the steps of E.7: slow offset queries stretch both rebalances."""
    await stage.open(consumers=2)
    await stage.send(_END)
    # The queue's owner B has consumed up to OLD and leaves.
    before = await stage.consumer("B", listener=ListenerPlan(blocked=frozenset({_OLD})))
    await progress(stage, _OLD, name="B")
    await before.stop()
    await committed(stage, _OLD)
    answer = stage.hold(query(form=Form.RESPONSE), consumer="A")
    again = None
    if stage.mode is ResetMode.CLASSIC:
        again = stage.hold(query(form=Form.REQUEST, skip=1, count=None), consumer="A")
    # 1. A's rebalance takes over the queue and waits for the answer to its offset query.
    await stage.consumer("A", options={"pull_batch_size": 1})
    await answer.wait()
    # 2. The reset: A does not have the queue yet, so it drops nothing.
    await stage.reset(0)
    await wait_begun(stage)
    # 3. The answer arrives: the rebalance inserts the queue at OLD. Its pulls wait until A resumes.
    answer.release()
    zombie = await stage.until(Point.QUEUE_ADDED, process=consumer_process("A"), topic=TOPIC)
    if again is not None:
        # 4. The apply pass commits the target and removes the queue without dropping it.
        await wait_over(stage)
        await again.wait()
        # 5. Its chain of pulls continues, and commits its progress before A's next offset query.
        if not stage.history.of(Point.QUEUE_DROPPED, chain=zombie.details["chain"], process=zombie.process):
            await since_reset(stage, Point.PULL_SUSPENDED, topic=TOPIC, offset=_END)
        again.release()
        # 6. Now two chains serve the queue.
        await stage.until(Point.QUEUE_ADDED, process=consumer_process("A"), topic=TOPIC, count=2)
        await stage.send(2)


SCENARIO: Final = Scenario(
    id="R4",
    title="a rebalance inserts a queue during the wait: the apply pass removes it, its pulls continue",
    section="docs/spec/races.md E.7",
    versions="4.2.0, 4.9.4, 5.3.3 (classic)",
    closed_by="dropping in the apply pass (remedy F2)",
    cases=cases(
        classic={**all_releases(lost(Loss.L2, Loss.L3)), Profile.EPOCH: KEPT},
        # The queue's first pull carries OLD, which is S1.
        server=all_releases(lost(Loss.L0), Profile.EPOCH),
        fenced=ALL_KEPT,
    ),
    play=play,
    remedies={
        Remedy.F2: cases(classic=all_releases(KEPT)),
        # The zombie queue no longer commits, but it still delivers.
        Remedy.F8: cases(classic=all_releases(lost(Loss.L3))),
    },
)
