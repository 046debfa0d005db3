"""UNASSIGNED: a queue that no consumer pulls during the reset (docs/spec/races.md E.15)."""

from __future__ import annotations

from typing import Final

from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import Profile
from rewindmq.race.scenario.outcomes import ALL_KEPT, KEPT_LATE, all_releases, cases, lost
from rewindmq.race.scenario.scenario import Loss, Scenario
from rewindmq.race.scenario.steps import caught_up, wait_over
from rewindmq.race.stage.stage import TOPIC, Stage, consumer_process

_OLD: Final = 6


async def play(stage: Stage) -> None:
    """Play UNASSIGNED of E.15: no consumer applies the reset to the queue, but the reset reports success."""
    await stage.open(queues=2)
    await caught_up(stage, _OLD, queues=2)
    # 1. A pull consumer whose name sorts first joins. It is assigned queue 0 but does not pull it.
    reader = await stage.reader("0")
    await stage.until(Point.QUEUE_DROPPED, process=consumer_process("A"), topic=TOPIC, queue_id=0)
    # 2. The reset. A applies it to queue 1.
    await stage.reset(0)
    await wait_over(stage)
    # 3. A takes over queue 0 again at the old stored offset.
    await reader.stop()
    await stage.until(Point.QUEUE_ADDED, process=consumer_process("A"), topic=TOPIC, queue_id=0, count=2)
    await stage.send(1)


SCENARIO: Final = Scenario(
    id="UNASSIGNED",
    title="no consumer pulls a queue during the reset",
    section="docs/spec/races.md E.15",
    versions="all (classic)",
    closed_by="storing the targets at once: server-side and fenced resets",
    cases=cases(
        classic=all_releases(lost(Loss.L2), Profile.EPOCH),
        server=KEPT_LATE,
        fenced=ALL_KEPT,
    ),
    play=play,
)
