"""S4: somebody else collects the mark (docs/spec/races.md E.16)."""

from __future__ import annotations

from typing import Final

from rewindmq.protocol.profile import Profile
from rewindmq.race.scenario.outcomes import ALL_KEPT, alike, cases, lost
from rewindmq.race.scenario.scenario import Loss, Scenario
from rewindmq.race.scenario.steps import caught_up
from rewindmq.race.stage.stage import Stage

_OLD: Final = 6


async def play(stage: Stage) -> None:
    """The mark is per queue, and the first pull of the group takes it, whoever sends that."""
    await stage.open()
    await caught_up(stage, _OLD)
    # 1. Somebody looks at the queue with a pull consumer of the same group.
    reader = await stage.reader("Z")
    # 2. The reset. That one's pull comes first, and is told of it.
    await stage.reset(0)
    await reader.pull(_OLD)
    # 3. A goes on where it was, and what it commits is accepted.
    await stage.send(1)


SCENARIO: Final = Scenario(
    id="S4",
    title="another member of the group collects the mark",
    section="docs/spec/races.md E.16",
    versions="5.1 and later, server-side",
    closed_by="an epoch, which every pull is compared with (remedy F12)",
    cases=cases(
        server=alike(lost(Loss.L2), Profile.EPOCH),
        fenced=ALL_KEPT,
    ),
    play=play,
)
