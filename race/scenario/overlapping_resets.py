"""R5: two resets less than 10 s apart (docs/spec/races.md E.8)."""

from __future__ import annotations

from typing import Any, Final

from rewindmq.client.core.remedy import Remedy
from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.scenario.outcomes import ALL_KEPT, KEPT_LATE, cases, lost
from rewindmq.race.scenario.scenario import KEPT, Loss, Scenario
from rewindmq.race.scenario.steps import RESET_WAIT, caught_up, wait_begun
from rewindmq.race.stage.stage import TOPIC, Stage, consumer_process

_OLD: Final = 10
_LATER: Final = 5


async def play(stage: Stage) -> None:
    """Play RocketMQ's issue 2449: the second reset comes 3 s after the first."""
    await stage.open()
    await caught_up(stage, _OLD)
    # 1. A reset to 1, and 3 s later a reset to 5.
    await stage.reset(1)
    await wait_begun(stage)
    await stage.sleep(3)
    await stage.reset(_LATER)
    # A new message ends the pull in flight; otherwise this would be R1.
    await stage.send(1)
    # 2. Unserialised resets: the second apply pass meets the queue that the first one has rebuilt, and
    # removes it without dropping it. Serialised resets: the second one begins when the first one is over.
    if stage.mode is ResetMode.CLASSIC:
        place: dict[str, Any] = {"process": consumer_process("A"), "topic": TOPIC}
        last = await stage.until(Point.QUEUE_ADDED, **place, offset=_LATER)
        await stage.until(Point.LISTENER_RETURNED, **place, chain=last.details["chain"], offset=_OLD)
    else:
        await stage.sleep(RESET_WAIT)
    # 3. Every chain of pulls delivers the new messages.
    await stage.send(2)


SCENARIO: Final = Scenario(
    id="R5",
    title="two resets overlap",
    section="docs/spec/races.md E.8",
    versions="4.2.0 to 4.8.0; serialised since 4.9.0",
    closed_by="serialised resets (4.9.0), or dropping in the apply pass (remedy F2)",
    cases=cases(
        classic={
            Profile.V42: lost(Loss.L3),
            Profile.V49: KEPT,
            Profile.V53: KEPT,
            Profile.EPOCH: KEPT,
        },
        server=KEPT_LATE,
        fenced=ALL_KEPT,
    ),
    play=play,
    remedies={Remedy.F2: cases(classic={Profile.V42: KEPT})},
)
