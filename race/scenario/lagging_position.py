"""S6: a lite pull consumer commits the polled position although a reset has moved its pulls.

Specification: docs/spec/races.md E.16.
"""

from __future__ import annotations

from typing import Final

from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.scenario.outcomes import ALL_KEPT, all_releases, cases, lost
from rewindmq.race.scenario.scenario import Loss, Scenario
from rewindmq.race.scenario.steps import PERSIST_PERIOD, committed, progress, since_reset
from rewindmq.race.stage.stage import TOPIC, Stage, reader_process

_OLD: Final = 6


async def play(stage: Stage) -> None:
    """Play S6 of E.16: the answer that carries the reset moves the pulls, not the polled position."""
    await stage.open()
    await stage.send(_OLD)
    # 1. The application has polled every message and committed that position.
    application = await stage.application("A")
    await application.poll(_OLD)
    await application.commit()
    await committed(stage, _OLD)
    # 2. The reset. The next pull starts at the target and returns the messages again.
    await stage.reset(0)
    await since_reset(stage, Point.PULL_SENT, process=reader_process("A"), topic=TOPIC, offset=0)
    # 3. The application is busy and does not poll. The timer commits the position polled before the reset.
    if stage.mode is ResetMode.SERVER:
        known = len(stage.history.of(Point.COMMIT_RECEIVED, topic=TOPIC, queue_id=0, offset=_OLD))
        await stage.until(Point.COMMIT_RECEIVED, topic=TOPIC, queue_id=0, offset=_OLD, count=known + 1)
    else:
        await stage.sleep(2 * PERSIST_PERIOD)
    # 4. The application ends. The next consumer starts at the stored offset.
    await application.stop()
    await stage.consumer("B")
    await stage.send(1)
    await progress(stage, _OLD + 1, name="B")


SCENARIO: Final = Scenario(
    id="S6",
    title="a lite pull consumer keeps committing the position it had polled",
    section="docs/spec/races.md E.16",
    versions="5.1 and later, server-side",
    closed_by="an epoch in every commit (remedy F12): the consumer starts the queue again",
    cases=cases(
        server=all_releases(lost(Loss.L1, Loss.L2), Profile.EPOCH),
        fenced=ALL_KEPT,
    ),
    play=play,
)
