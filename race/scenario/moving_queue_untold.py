"""R7b: a queue moves to a member that was not told (docs/spec/races.md E.10, which then is E.9)."""

from __future__ import annotations

from typing import Final

from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.proxy.pattern import FramePattern
from rewindmq.race.scenario.outcomes import ALL_KEPT, alike, cases, lost
from rewindmq.race.scenario.scenario import Loss, Scenario
from rewindmq.race.scenario.steps import caught_up, wait_begun, wait_over
from rewindmq.race.stage.stage import TOPIC, Stage, consumer_process

_OLD: Final = 6
_REBALANCED_SECONDS: Final = 2.0


async def play(stage: Stage) -> None:
    """Of two members one is suspended and the other, which the notice did not reach, takes its queue."""
    await stage.open(queues=2, members=2)
    notice = stage.hold(FramePattern(RequestCode.RESET_CONSUMER_CLIENT_OFFSET), member="B")
    await caught_up(stage, _OLD, queues=2)
    # 1. A reader whose name is first takes queue 0 (and leaves it alone), A has queue 1, B none.
    await stage.member("B")
    await stage.until(Point.QUEUE_DROPPED, process=consumer_process("A"), topic=TOPIC, queue_id=1)
    await stage.until(Point.QUEUE_ADDED, process=consumer_process("B"), topic=TOPIC, queue_id=1)
    reader = await stage.reader("0")
    await stage.until(Point.QUEUE_ADDED, process=consumer_process("A"), topic=TOPIC, queue_id=1, count=2)
    await stage.until(Point.QUEUE_DROPPED, process=consumer_process("B"), topic=TOPIC, queue_id=1)
    # A's change is announced, and answered by one more rebalance; met by the reset it would be R4.
    await stage.sleep(_REBALANCED_SECONDS)
    # 2. The reset reaches A alone.
    await stage.reset(0)
    await wait_begun(stage)
    if stage.mode is ResetMode.CLASSIC:
        await notice.wait()
        notice.drop()
    # 3. The reader leaves: queue 0 is A's now, and queue 1 is B's, who takes it at OLD.
    await reader.stop()
    await stage.until(Point.QUEUE_ADDED, process=consumer_process("B"), topic=TOPIC, queue_id=1, count=2)
    # 4. A applies the reset to queue 1, gives it up and finds queue 0 where it was; B commits its own offset.
    await wait_over(stage)
    await stage.send(1, queue=1)


SCENARIO: Final = Scenario(
    id="R7b",
    title="a queue moves to a member that was not told",
    section="docs/spec/races.md E.10",
    versions="all classic",
    closed_by="targets stored at once and fenced",
    cases=cases(
        classic=alike(lost(Loss.L2), Profile.EPOCH),
        fenced=ALL_KEPT,
    ),
    play=play,
)
