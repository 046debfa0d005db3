"""PERSIST: the 5 s timer commits the old offset during the wait (docs/spec/races.md E.15)."""

from __future__ import annotations

from typing import Final

from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import Profile
from rewindmq.race.scenario.outcomes import ALL_KEPT, KEPT_LATE, all_releases, cases
from rewindmq.race.scenario.scenario import KEPT, Scenario
from rewindmq.race.scenario.steps import caught_up, since_reset, wait_begun, wait_over
from rewindmq.race.stage.stage import Stage, consumer_process

_OLD: Final = 6


async def play(stage: Stage) -> None:
    """Play PERSIST of E.15: the dropped queue is still in the table, so the timer commits its offset."""
    await stage.open()
    await caught_up(stage, _OLD)
    await stage.reset(0)
    await wait_begun(stage)
    # The broker already stores OLD, so storing it again does no harm.
    await since_reset(stage, Point.PERSIST_TICK, process=consumer_process("A"))
    await wait_over(stage)


SCENARIO: Final = Scenario(
    id="PERSIST",
    title="the 5 s timer commits the old offset during the wait",
    section="docs/spec/races.md E.15",
    versions="none",
    closed_by="the wait itself",
    cases=cases(
        classic=all_releases(KEPT, Profile.EPOCH),
        server=KEPT_LATE,
        fenced=ALL_KEPT,
    ),
    play=play,
)
