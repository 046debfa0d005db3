"""PULL: a pull consumer, which ignores resets (docs/spec/races.md E.15, docs/spec/reset.md D.6)."""

from __future__ import annotations

from typing import Final

from rewindmq.protocol.profile import Profile
from rewindmq.race.scenario.outcomes import ALL_KEPT, all_releases, cases, lost
from rewindmq.race.scenario.scenario import Loss, Scenario
from rewindmq.race.scenario.steps import RESET_WAIT, committed
from rewindmq.race.stage.stage import Stage

_OLD: Final = 6


async def play(stage: Stage) -> None:
    """Play PULL of E.15, which is no race: the application keeps the offsets; the reset reports success."""
    await stage.open()
    await stage.send(_OLD)
    reader = await stage.reader("A")
    # 1. The application consumes up to OLD and commits that offset.
    position = await reader.pull(0)
    await reader.commit(position)
    await committed(stage, _OLD)
    # 2. The reset is acknowledged. The consumer ignores the reset notification.
    await stage.reset(0)
    await stage.sleep(RESET_WAIT)
    # 3. The application continues at its own offset.
    await stage.send(1)
    await reader.commit(await reader.pull(position))


SCENARIO: Final = Scenario(
    id="PULL",
    title="a pull consumer ignores the reset notification",
    section="docs/spec/races.md E.15",
    versions="all (classic)",
    closed_by="server-side resets (5.1), which answer its next pull with the target",
    cases=cases(
        classic=all_releases(lost(Loss.L0), Profile.EPOCH),
        server=ALL_KEPT,
        fenced=ALL_KEPT,
    ),
    play=play,
)
