"""S2: a consumer that does not pull (docs/spec/races.md E.16)."""

from __future__ import annotations

from typing import Final

from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import Profile
from rewindmq.race.scenario.outcomes import ALL_KEPT, all_releases, cases, lost
from rewindmq.race.scenario.scenario import Loss, Scenario
from rewindmq.race.scenario.steps import PERSIST_PERIOD, caught_up, since_reset
from rewindmq.race.stage.stage import ListenerPlan, Stage, consumer_process

_OLD: Final = 6


async def play(stage: Stage) -> None:
    """Play S2 of E.16: the stored offset is the target, but the consumer does not know of the reset."""
    await stage.open()
    # 1. A's listener blocks on two messages, and A stops pulling when it caches more than one message.
    plan = ListenerPlan(blocked=frozenset({_OLD, _OLD + 1}))
    a = await caught_up(stage, _OLD, listener=plan, options={"pull_threshold_for_queue": 1})
    await stage.send(2)
    await stage.until(Point.LISTENER_CALLED, process=consumer_process("A"), offset=_OLD + 1)
    # 2. The reset. No pull comes to consume the mark; the broker ignores commits and returns success.
    await stage.reset(0)
    await since_reset(stage, Point.PERSIST_TICK, process=consumer_process("A"))
    await stage.sleep(PERSIST_PERIOD)
    # 3. The listener returns, A makes progress, and its next pull consumes the mark.
    await a.release(_OLD)
    await a.release(_OLD + 1)


SCENARIO: Final = Scenario(
    id="S2",
    title="a consumer that does not pull does not learn of the reset",
    section="docs/spec/races.md E.16",
    versions="5.1 and later, server-side",
    closed_by="an epoch that commits carry too (remedy F12)",
    cases=cases(
        server=all_releases(lost(Loss.L0), Profile.EPOCH),
        fenced=ALL_KEPT,
    ),
    play=play,
)
