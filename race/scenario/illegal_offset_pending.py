"""R3b: an OFFSET_ILLEGAL from before the reset is corrected during the wait (docs/spec/races.md E.6)."""

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
    """The variant of E.6, with the numbers of its test: answered 3 s before the reset."""
    await stage.open(members=2)
    # 1. A consumer starts on an offset that its queue has not reached, and is told so.
    await stale_offset(stage, _COUNT)
    await stage.member("B")
    await stage.until(
        Point.PULL_CALLBACK, process=consumer_process("B"), topic=TOPIC, status="OFFSET_ILLEGAL"
    )
    # 2. 3 s later the reset. 7 s into its wait the correction takes the queue out of the table: the apply
    # pass does not see it, and nobody commits the target.
    await stage.sleep(3)
    await stage.reset(0)


SCENARIO: Final = Scenario(
    id="R3b",
    title="an OFFSET_ILLEGAL from before the reset is corrected during the wait",
    section="docs/spec/races.md E.6",
    versions="up to 5.1.4; 5.3.3 corrects at once",
    closed_by="a correction at once (5.2.0)",
    cases=cases(
        classic={Profile.V42: lost(Loss.L2), Profile.V49: lost(Loss.L2), Profile.V53: KEPT},
        server=ALL_KEPT,
        fenced=ALL_KEPT,
    ),
    play=play,
)
