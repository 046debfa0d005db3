"""S4: a pull of another consumer consumes the mark (docs/spec/races.md E.16)."""

from __future__ import annotations

from typing import Final

from rewindmq.protocol.profile import Profile
from rewindmq.race.scenario.outcomes import ALL_KEPT, all_releases, cases, lost
from rewindmq.race.scenario.scenario import Loss, Scenario
from rewindmq.race.scenario.steps import caught_up
from rewindmq.race.stage.stage import Stage

_OLD: Final = 6


async def play(stage: Stage) -> None:
    """Play S4 of E.16: a queue has one mark, and the first pull by any consumer of the group consumes it."""
    await stage.open()
    await caught_up(stage, _OLD)
    # 1. A pull consumer of the same group reads the queue.
    reader = await stage.reader("Z")
    # 2. The reset. The pull consumer's pull comes first, and its answer carries the reset.
    await stage.reset(0)
    await reader.pull(_OLD)
    # 3. A continues at its own offset, and the broker accepts its commits.
    await stage.send(1)


SCENARIO: Final = Scenario(
    id="S4",
    title="a pull of another consumer of the group consumes the mark",
    section="docs/spec/races.md E.16",
    versions="5.1 and later, server-side",
    closed_by="an epoch that the broker checks in every pull (remedy F12)",
    cases=cases(
        server=all_releases(lost(Loss.L2), Profile.EPOCH),
        fenced=ALL_KEPT,
    ),
    play=play,
)
