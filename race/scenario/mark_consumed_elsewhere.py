"""S4: a pull of another consumer consumes the mark (docs/spec/races.md E.16)."""

from __future__ import annotations

from typing import Final

from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import Profile
from rewindmq.race.scenario.outcomes import ALL_KEPT, all_releases, cases, lost
from rewindmq.race.scenario.scenario import Loss, Scenario
from rewindmq.race.scenario.steps import caught_up
from rewindmq.race.stage.stage import ListenerPlan, Stage, consumer_process

_OLD: Final = 6


async def play(stage: Stage) -> None:
    """Play S4 of E.16: a queue has one mark, and the first pull by any consumer of the group consumes it."""
    await stage.open()
    # 1. A's listener is busy, and A does not pull while it caches more than one message.
    plan = ListenerPlan(blocked=frozenset({_OLD, _OLD + 1}))
    a = await caught_up(stage, _OLD, listener=plan, options={"pull_threshold_for_queue": 1})
    await stage.send(2)
    await stage.until(Point.LISTENER_CALLED, process=consumer_process("A"), offset=_OLD + 1)
    # 2. A pull consumer of the same group reads the queue.
    reader = await stage.reader("Z")
    # 3. The reset. The pull consumer's pull comes first, and its answer carries the reset.
    await stage.reset(0)
    await reader.pull(_OLD)
    # 4. A continues at its own offset, and the broker accepts its commits.
    await a.release(_OLD)
    await a.release(_OLD + 1)
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
