"""R9: the broker executes two commits in the wrong order (docs/spec/races.md E.12)."""

from __future__ import annotations

from typing import Final

from rewindmq.protocol.profile import Profile
from rewindmq.race.proxy.pattern import Form
from rewindmq.race.scenario.outcomes import ALL_KEPT, all_releases, cases, lost
from rewindmq.race.scenario.scenario import Loss, Scenario
from rewindmq.race.scenario.steps import (
    caught_up,
    commit,
    is_restarted_in_place,
    query,
    wait_begun,
    wait_over,
)
from rewindmq.race.stage.stage import Stage

_OLD: Final = 6


async def play(stage: Stage) -> None:
    """Play E.12: the timer's oneway commit of OLD is stored after the oneway commit of the target."""
    await stage.open()
    timer = stage.hold(commit(_OLD, count=None), consumer="A")
    ask = stage.hold(query(form=Form.REQUEST, skip=1, count=None), consumer="A")
    await caught_up(stage, _OLD)
    # 1. The 5 s timer has sent OLD. A broker thread has taken the request and is preempted.
    await timer.wait()
    # 2. The reset. A new message ends the pull in flight; otherwise this would be R1.
    await stage.reset(0)
    await wait_begun(stage)
    await stage.send(1)
    # 3. The apply pass commits the target, and A sends the offset query.
    if is_restarted_in_place(stage):
        await wait_over(stage)
    else:
        await ask.wait()
    # 4. The broker thread continues in between: it stores OLD after the target, and the query returns OLD.
    timer.release()
    ask.release()


SCENARIO: Final = Scenario(
    id="R9",
    title="the broker executes the timer's commit of the old offset after the commit of the target",
    section="docs/spec/races.md E.12",
    versions="all",
    closed_by="an epoch that commits carry (remedy F12)",
    cases=cases(
        classic=all_releases(lost(Loss.L2), Profile.EPOCH),
        server=all_releases(lost(Loss.L2), Profile.EPOCH),
        fenced=ALL_KEPT,
    ),
    play=play,
)
