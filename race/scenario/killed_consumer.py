"""R8-KILL: a consumer dies during the wait (docs/spec/races.md E.11)."""

from __future__ import annotations

from typing import Final

from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.scenario.outcomes import ALL_KEPT, all_releases, cases, lost
from rewindmq.race.scenario.scenario import Loss, Scenario
from rewindmq.race.scenario.steps import caught_up, commit, wait_begun
from rewindmq.race.stage.stage import Stage

_OLD: Final = 6
_TARGET: Final = 0


async def play(stage: Stage) -> None:
    """Play E.11's kill: the consumer dies before it has applied anything."""
    await stage.open(consumers=2)
    # On a busy machine the kill may be late, but the target must not reach the broker before it.
    is_held = stage.is_held and stage.mode is ResetMode.CLASSIC
    target = stage.hold(commit(_TARGET), consumer="A") if is_held else None
    a = await caught_up(stage, _OLD)
    await stage.reset(_TARGET)
    await wait_begun(stage)
    # A dies 4 s into the wait. No other process knows the target.
    await stage.sleep(4)
    await a.kill()
    if target is not None:
        target.drop()
    await stage.consumer("B")


SCENARIO: Final = Scenario(
    id="R8-KILL",
    title="a consumer is killed during the wait",
    section="docs/spec/races.md E.11",
    versions="all (classic)",
    closed_by="storing the targets at once: server-side and fenced resets",
    cases=cases(
        classic=all_releases(lost(Loss.L2), Profile.EPOCH),
        server=ALL_KEPT,
        fenced=ALL_KEPT,
    ),
    play=play,
)
