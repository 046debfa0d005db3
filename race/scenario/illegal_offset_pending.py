"""R3b: the correction for an earlier OFFSET_ILLEGAL runs during the wait (docs/spec/races.md E.6)."""

from __future__ import annotations

from typing import Final

from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import Profile
from rewindmq.race.scenario.outcomes import ALL_KEPT, cases, lost
from rewindmq.race.scenario.scenario import KEPT, Loss, Scenario
from rewindmq.race.scenario.steps import stale_offset
from rewindmq.race.stage.stage import TOPIC, Stage, consumer_process

_COUNT: Final = 10


async def play(stage: Stage) -> None:
    """Play the variant of E.6 with its figures: the answer arrives 3 s before the reset."""
    await stage.open(consumers=2)
    # 1. B starts at an offset beyond the queue's end, and the broker answers OFFSET_ILLEGAL.
    await stale_offset(stage, _COUNT)
    await stage.consumer("B")
    await stage.until(
        Point.PULL_CALLBACK, process=consumer_process("B"), topic=TOPIC, status="OFFSET_ILLEGAL"
    )
    # 2. The reset follows 3 s later. 7 s into the wait the correction removes the queue from the table.
    # The apply pass does not see the queue, so B never commits the target.
    await stage.sleep(3)
    await stage.reset(0)


SCENARIO: Final = Scenario(
    id="R3b",
    title="the correction for an OFFSET_ILLEGAL before the reset runs during the wait",
    section="docs/spec/races.md E.6",
    versions="up to 5.1.4; 5.3.3 corrects at once",
    closed_by="correcting at once (5.2.0)",
    cases=cases(
        classic={Profile.V42: lost(Loss.L2), Profile.V49: lost(Loss.L2), Profile.V53: KEPT},
        server=ALL_KEPT,
        fenced=ALL_KEPT,
    ),
    play=play,
)
