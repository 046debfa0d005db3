"""UNASSIGNED: a queue that nobody consumes at the moment (docs/spec/races.md E.15)."""

from __future__ import annotations

from typing import Final

from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import Profile
from rewindmq.race.scenario.outcomes import ALL_KEPT, KEPT_LATE, alike, cases, lost
from rewindmq.race.scenario.scenario import Loss, Scenario
from rewindmq.race.scenario.steps import caught_up, wait_over
from rewindmq.race.stage.stage import TOPIC, Stage, consumer_process

_OLD: Final = 6


async def play(stage: Stage) -> None:
    """Nobody applies the reset to it; success is reported all the same."""
    await stage.open(queues=2)
    await caught_up(stage, _OLD, queues=2)
    # 1. A pull consumer whose name is first joins: queue 0 is its, and its application leaves it alone.
    reader = await stage.reader("0")
    await stage.until(Point.QUEUE_DROPPED, process=consumer_process("A"), topic=TOPIC, queue_id=0)
    # 2. The reset. A applies it to its own queue.
    await stage.reset(0)
    await wait_over(stage)
    # 3. A has queue 0 back, where the group stood in it.
    await reader.stop()
    await stage.until(Point.QUEUE_ADDED, process=consumer_process("A"), topic=TOPIC, queue_id=0, count=2)
    await stage.send(1)


SCENARIO: Final = Scenario(
    id="UNASSIGNED",
    title="a queue is nobody's while the reset goes on",
    section="docs/spec/races.md E.15",
    versions="all classic",
    closed_by="targets stored at once, so server-side and fenced resets",
    cases=cases(
        classic=alike(lost(Loss.L2), Profile.EPOCH),
        server=KEPT_LATE,
        fenced=ALL_KEPT,
    ),
    play=play,
)
