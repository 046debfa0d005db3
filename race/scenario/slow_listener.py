"""SEED: the slow listener (docs/spec/races.md E.3), which loses nothing in any release."""

from __future__ import annotations

from typing import Final

from rewindmq.client.core.remedy import Remedy
from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import Profile
from rewindmq.race.scenario.outcomes import ALL_KEPT, KEPT_LATE, all_releases, cases, lost
from rewindmq.race.scenario.scenario import KEPT, Loss, Scenario
from rewindmq.race.scenario.steps import begun_again, caught_up, wait_begun
from rewindmq.race.stage.stage import ListenerPlan, Stage, consumer_process

_OLD: Final = 10
# The listener returns 14 s after the reset, 4 s after the wait.
_TOO_LATE: Final = 4.0


async def play(stage: Stage) -> None:
    """Play the steps of E.3 with its figures."""
    await stage.open()
    # 1. The group has consumed up to OLD. A's listener gets the message at OLD and takes long.
    plan = ListenerPlan(blocked=frozenset({_OLD}), again=2.0)
    a = await caught_up(stage, _OLD, listener=plan, options={"consume_thread_max": 2})
    await stage.send(1)
    await stage.until(Point.LISTENER_CALLED, process=consumer_process("A"), offset=_OLD)
    # 2. The reset. A new message ends A's pull in flight; otherwise this would be race R1.
    await stage.reset(0)
    await wait_begun(stage)
    await stage.send(1)
    # 3. The wait is over, the target is stored, and the replay runs.
    await begun_again(stage, a)
    # 4. The listener returns. A client without any check would count that as progress.
    await stage.sleep(_TOO_LATE)
    await a.release(_OLD)


SCENARIO: Final = Scenario(
    id="SEED",
    title="a listener slower than the wait returns after it",
    section="docs/spec/races.md E.3",
    versions="none: only a client without the checks of dropped queues",
    closed_by="discarding the results of a dropped queue, in every release",
    cases=cases(
        classic={**all_releases(KEPT, Profile.EPOCH), Profile.UNGUARDED: lost(Loss.L1)},
        server={**KEPT_LATE, Profile.UNGUARDED: lost(Loss.L0, Loss.L1)},
        fenced={**ALL_KEPT, Profile.UNGUARDED: lost(Loss.L1)},
    ),
    play=play,
    remedies={
        Remedy.F8: cases(
            classic={Profile.UNGUARDED: KEPT},
            server={Profile.UNGUARDED: lost(Loss.L0)},
            fenced={Profile.UNGUARDED: KEPT},
        ),
        Remedy.F12: cases(fenced={Profile.UNGUARDED: KEPT}),
    },
)
