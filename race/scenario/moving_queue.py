"""R7: a rebalance while both owners are suspended, which moves no queue (docs/spec/races.md E.10)."""

from __future__ import annotations

from typing import Final

from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import Profile
from rewindmq.race.scenario.outcomes import ALL_KEPT, all_releases, cases
from rewindmq.race.scenario.scenario import KEPT, Scenario
from rewindmq.race.scenario.steps import caught_up, wait_begun
from rewindmq.race.stage.stage import TOPIC, Stage, consumer_process

_OLD: Final = 6


async def play(stage: Stage) -> None:
    """Play E.10: suspended consumers neither give up nor take over queues, though the group changes."""
    await stage.open(queues=2, consumers=2)
    await caught_up(stage, _OLD, queues=2)
    # 1. A and B own a queue each.
    await stage.consumer("B")
    await stage.until(Point.QUEUE_ADDED, process=consumer_process("B"), topic=TOPIC)
    # 2. The reset reaches both.
    await stage.reset(0)
    await wait_begun(stage, name="A")
    await wait_begun(stage, name="B")
    # 3. A reader whose name sorts before A joins and leaves. Both times the broker announces a change of the
    # group, which asks A and B to rebalance.
    reader = await stage.reader("0")
    await reader.stop()


SCENARIO: Final = Scenario(
    id="R7",
    title="the group changes while both owners of its queues are suspended",
    section="docs/spec/races.md E.10",
    versions="none",
    closed_by="no rebalance while suspended, in every release",
    cases=cases(
        classic=all_releases(KEPT, Profile.EPOCH),
        fenced=ALL_KEPT,
    ),
    play=play,
)
