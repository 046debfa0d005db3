"""PULL: a pull consumer, which no reset reaches (docs/spec/races.md E.15, docs/spec/reset.md D.6)."""

from __future__ import annotations

from typing import Final

from rewindmq.protocol.profile import Profile
from rewindmq.race.scenario.outcomes import ALL_KEPT, alike, cases, lost
from rewindmq.race.scenario.scenario import Loss, Scenario
from rewindmq.race.scenario.steps import RESET_WAIT, committed
from rewindmq.race.stage.stage import Stage

_OLD: Final = 6


async def play(stage: Stage) -> None:
    """Not a race: its offsets are the application's, and success is reported all the same."""
    await stage.open()
    await stage.send(_OLD)
    reader = await stage.reader("A")
    # 1. The application consumes up to OLD, and stores that.
    position = await reader.pull(0)
    await reader.commit(position)
    await committed(stage, _OLD)
    # 2. The reset is acknowledged. Nobody heeds the notice.
    await stage.reset(0)
    await stage.sleep(RESET_WAIT)
    # 3. The application goes on where it was.
    await stage.send(1)
    await reader.commit(await reader.pull(position))


SCENARIO: Final = Scenario(
    id="PULL",
    title="a pull consumer ignores the notice",
    section="docs/spec/races.md E.15",
    versions="all classic",
    closed_by="server-side resets (5.1), by the answer to its next pull",
    cases=cases(
        classic=alike(lost(Loss.L0), Profile.EPOCH),
        server=ALL_KEPT,
        fenced=ALL_KEPT,
    ),
    play=play,
)
