"""BROADCAST: a broadcasting group that has consumed in clustering mode before (docs/spec/reset.md D.6)."""

from __future__ import annotations

from typing import Final

from rewindmq.protocol.files.temporary_folder import TemporaryFolder
from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import Profile
from rewindmq.race.scenario.outcomes import cases, lost
from rewindmq.race.scenario.scenario import KEPT, Loss, Scenario
from rewindmq.race.scenario.steps import caught_up, progress, since_reset
from rewindmq.race.stage.stage import TOPIC, Stage, consumer_process

_OLD: Final = 6
_NEW: Final = 3


async def play(stage: Stage) -> None:
    """The broker accepts the reset because of the old offsets; the consumer's own offsets are in a file."""
    await stage.open(consumers=2)
    before = await caught_up(stage, _OLD)
    await before.stop()
    with TemporaryFolder("race-") as folder:
        # 1. A broadcasting consumer consumes new messages and writes its progress to its file.
        options = {"message_model": "BROADCASTING", "offset_root": str(folder.path)}
        b = await stage.consumer("B", options=options)
        try:
            await _replay(stage)
        finally:
            # The consumer must not write to its file while the directory is deleted.
            await b.kill()


async def _replay(stage: Stage) -> None:
    await stage.until(Point.QUEUE_ADDED, process=consumer_process("B"), topic=TOPIC)
    await stage.send(_NEW)
    await progress(stage, _OLD + _NEW, name="B")
    await stage.until(Point.PERSIST_TICK, process=consumer_process("B"))
    # 2. The reset. After the wait the consumer forgets its offset and reads it from the file again.
    await stage.reset(0)
    await since_reset(stage, Point.RESUMED, process=consumer_process("B"))
    await stage.send(1)
    await progress(stage, _OLD + _NEW + 1, name="B")


SCENARIO: Final = Scenario(
    id="BROADCAST",
    title="a broadcasting consumer reads its own file again",
    section="docs/spec/reset.md D.6",
    versions="4.2.0, 4.9.4",
    closed_by="writing the offset file when a queue is dropped (5.2.0)",
    cases=cases(
        classic={Profile.V42: lost(Loss.L2), Profile.V49: lost(Loss.L2), Profile.V53: KEPT},
    ),
    play=play,
)
