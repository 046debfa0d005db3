"""R2: the only callback thread sleeps in the reset (docs/spec/races.md E.5)."""

from __future__ import annotations

from typing import Final

from rewindmq.client.core.remedy import Remedy
from rewindmq.protocol.profile import Profile
from rewindmq.race.scenario.outcomes import ALL_KEPT, KEPT_LATE, all_releases, cases, lost
from rewindmq.race.scenario.scenario import KEPT, Loss, Scenario
from rewindmq.race.scenario.steps import ONE_THREAD, caught_up, wait_begun, wait_over
from rewindmq.race.stage.stage import ListenerPlan, Stage

_OLD: Final = 10


async def play(stage: Stage) -> None:
    """Play E.5: the answer arrives in time, but no callback thread is free to handle it."""
    await stage.open()
    # 1. A subscribes to one tag and has one callback thread, as on a machine with one CPU.
    await caught_up(
        stage,
        _OLD,
        listener=ListenerPlan(again=2.0),
        tags="Wanted",
        tag="Wanted",
        options={**ONE_THREAD, "client_callback_executor_threads": 1},
    )
    # 2. The reset's handler sleeps on that thread.
    await stage.reset(0)
    await wait_begun(stage)
    # 3. A message with another tag: within 5 s the broker answers the pull with NO_MATCHED_MSG and the next
    # offset.
    await stage.send(1, tag="Unwanted")
    # 4. After the wait the thread is free and handles the answers that arrived meanwhile.
    await wait_over(stage)


SCENARIO: Final = Scenario(
    id="R2",
    title="with one callback thread, answers that arrive during the wait are handled after it",
    section="docs/spec/races.md E.5",
    versions="4.2.0, 4.9.4; on hosts with one CPU, or with as many resets at once as threads",
    closed_by="checking dropped before the correction (remedy F1), or cancelling pulls (remedy F3)",
    cases=cases(
        classic={**all_releases(lost(Loss.L1)), Profile.EPOCH: KEPT},
        server=KEPT_LATE,
        fenced=ALL_KEPT,
    ),
    play=play,
    remedies=dict.fromkeys((Remedy.F1, Remedy.F3, Remedy.F8), cases(classic=all_releases(KEPT))),
)
