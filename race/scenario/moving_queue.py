"""R7: a queue moving between two notified members (docs/spec/races.md E.10), which cannot happen."""

from __future__ import annotations

from typing import Final

from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import Profile
from rewindmq.race.scenario.outcomes import ALL_KEPT, alike, cases
from rewindmq.race.scenario.scenario import KEPT, Scenario
from rewindmq.race.scenario.steps import caught_up, wait_begun
from rewindmq.race.stage.stage import TOPIC, Stage, consumer_process

_OLD: Final = 6


async def play(stage: Stage) -> None:
    """Both members are suspended: they neither give up queues nor take any, whatever they are told."""
    await stage.open(queues=2, members=2)
    await caught_up(stage, _OLD, queues=2)
    # 1. A and B own a queue each.
    await stage.member("B")
    await stage.until(Point.QUEUE_ADDED, process=consumer_process("B"), topic=TOPIC)
    # 2. The reset reaches both.
    await stage.reset(0)
    await wait_begun(stage, name="A")
    await wait_begun(stage, name="B")
    # 3. Somebody comes and goes, whose name is before theirs: twice they are told to divide the queues anew.
    reader = await stage.reader("0")
    await reader.stop()


SCENARIO: Final = Scenario(
    id="R7",
    title="queues are divided anew while both of their owners are suspended",
    section="docs/spec/races.md E.10",
    versions="none",
    closed_by="no rebalance while suspended, in every release",
    cases=cases(
        classic=alike(KEPT, Profile.EPOCH),
        fenced=ALL_KEPT,
    ),
    play=play,
)
