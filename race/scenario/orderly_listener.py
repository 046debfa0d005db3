"""ORDERLY: the slow listener of an orderly consumer (docs/spec/races.md E.15), which loses nothing either."""

from __future__ import annotations

from typing import Final

from rewindmq.protocol.points import Point
from rewindmq.race.scenario.outcomes import ALL_KEPT, KEPT_LATE, cases
from rewindmq.race.scenario.scenario import Scenario
from rewindmq.race.scenario.steps import begun_again, caught_up, wait_begun
from rewindmq.race.stage.stage import ListenerPlan, Stage, consumer_process

_OLD: Final = 10
# The listener returns 15 s after the reset, 4 s after A has started the queue again.
_TOO_LATE: Final = 4.0


async def play(stage: Stage) -> None:
    """Play the steps of E.15 with its figures."""
    await stage.open()
    # 1. The group has consumed up to OLD. A's listener gets the message at OLD and takes long.
    plan = ListenerPlan(blocked=frozenset({_OLD}), again=2.0)
    a = await caught_up(stage, _OLD, listener=plan, options={"orderly": True})
    await stage.send(1)
    await stage.until(Point.LISTENER_CALLED, process=consumer_process("A"), offset=_OLD)
    # 2. The reset. A new message ends A's pull in flight; otherwise this would be race R1.
    await stage.reset(0)
    await wait_begun(stage)
    await stage.send(1)
    # 3. The wait is over and the target is stored. A waits 1 s for the listener and starts the queue again.
    await begun_again(stage, a)
    # 4. The listener returns. Its ProcessQueue is empty, so its result changes nothing. The replay begins.
    await stage.sleep(_TOO_LATE)
    await a.release(_OLD)


SCENARIO: Final = Scenario(
    id="ORDERLY",
    title="an orderly listener returns after the wait",
    section="docs/spec/races.md E.15",
    versions="none",
    closed_by="a cleared ProcessQueue has no offset to commit, and a dropped one is not committed",
    cases=cases(
        classic=ALL_KEPT,
        server=KEPT_LATE,
        fenced=ALL_KEPT,
    ),
    play=play,
)
