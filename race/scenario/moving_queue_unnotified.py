"""R7b: a queue moves to a consumer that got no reset notification (docs/spec/races.md E.10 and E.9)."""

from __future__ import annotations

from typing import Final

from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.proxy.pattern import FramePattern
from rewindmq.race.scenario.outcomes import ALL_KEPT, all_releases, cases, lost
from rewindmq.race.scenario.scenario import Loss, Scenario
from rewindmq.race.scenario.steps import caught_up, wait_begun, wait_over
from rewindmq.race.stage.stage import TOPIC, Stage, consumer_process

_OLD: Final = 6
_REBALANCED_SECONDS: Final = 2.0


async def play(stage: Stage) -> None:
    """Play R7b: of two consumers one is suspended, and the other, not notified, takes over its queue."""
    await stage.open(queues=2, consumers=2)
    notification = stage.hold(FramePattern(RequestCode.RESET_CONSUMER_CLIENT_OFFSET), consumer="B")
    await caught_up(stage, _OLD, queues=2)
    # 1. A reader whose name sorts first takes queue 0 and does not pull it. A has queue 1, B has none.
    await stage.consumer("B")
    await stage.until(Point.QUEUE_DROPPED, process=consumer_process("A"), topic=TOPIC, queue_id=1)
    await stage.until(Point.QUEUE_ADDED, process=consumer_process("B"), topic=TOPIC, queue_id=1)
    reader = await stage.reader("0")
    await stage.until(Point.QUEUE_ADDED, process=consumer_process("A"), topic=TOPIC, queue_id=1, count=2)
    await stage.until(Point.QUEUE_DROPPED, process=consumer_process("B"), topic=TOPIC, queue_id=1)
    # A has a new queue, so it sends a heartbeat with a newer subscription. The broker then asks the group to
    # rebalance once more. A reset during that rebalance would be R4.
    await stage.sleep(_REBALANCED_SECONDS)
    # 2. The reset notification reaches only A.
    await stage.reset(0)
    await wait_begun(stage)
    if stage.mode is ResetMode.CLASSIC:
        await notification.wait()
        notification.drop()
    # 3. The reader leaves. Queue 0 now belongs to A, and queue 1 to B, which takes it over at OLD.
    await reader.stop()
    await stage.until(Point.QUEUE_ADDED, process=consumer_process("B"), topic=TOPIC, queue_id=1, count=2)
    # 4. A applies the reset to queue 1 and drops it, and takes over queue 0 at its stored offset. B commits
    # its own offset of queue 1.
    await wait_over(stage)
    await stage.send(1, queue=1)


SCENARIO: Final = Scenario(
    id="R7b",
    title="a queue moves to a consumer that got no reset notification",
    section="docs/spec/races.md E.10",
    versions="all (classic)",
    closed_by="storing and fencing the targets at once",
    cases=cases(
        classic=all_releases(lost(Loss.L2), Profile.EPOCH),
        fenced=ALL_KEPT,
    ),
    play=play,
)
