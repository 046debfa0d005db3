"""R6: a consumer joins during the wait (docs/spec/races.md E.9)."""

from __future__ import annotations

from typing import Final

from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import Profile
from rewindmq.race.scenario.outcomes import ALL_KEPT, KEPT_LATE, all_releases, cases, lost
from rewindmq.race.scenario.scenario import Loss, Scenario
from rewindmq.race.scenario.steps import caught_up, wait_begun, wait_over
from rewindmq.race.stage.stage import TOPIC, Stage, consumer_process

_OLD: Final = 6


async def play(stage: Stage) -> None:
    """Play the steps of E.9."""
    await stage.open(queues=2, consumers=2)
    await caught_up(stage, _OLD, queues=2)
    # 1. The reset. B joins after the reset notifications were sent; A is suspended and does not rebalance.
    await stage.reset(0)
    await wait_begun(stage)
    await stage.consumer("B")
    # 2. B's own rebalance takes a queue over at OLD.
    taken = await stage.until(Point.QUEUE_ADDED, process=consumer_process("B"), topic=TOPIC)
    # 3. A commits the target for both queues, and keeps the other one.
    await wait_over(stage)
    # 4. B's next pull or commit carries its own offset.
    await stage.send(1, queue=taken.details["queue_id"])


SCENARIO: Final = Scenario(
    id="R6",
    title="a consumer that joins during the wait takes over a queue at the old offset",
    section="docs/spec/races.md E.9",
    versions="all (classic)",
    closed_by="storing and fencing the targets at once",
    cases=cases(
        classic=all_releases(lost(Loss.L2), Profile.EPOCH),
        server=KEPT_LATE,
        fenced=ALL_KEPT,
    ),
    play=play,
)
