"""Plays a race with a watcher beside it, which sees only what an administrator can see."""

from __future__ import annotations

import asyncio
import gc
import itertools
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rewindmq.client.admin.admin_client import AdminClient
from rewindmq.client.admin.watched_reset.brokers import Brokers
from rewindmq.client.admin.watched_reset.follow import follow
from rewindmq.client.admin.watched_reset.take_sample import take_sample
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.race.checker import Verdict, judge
from rewindmq.race.checker.verdict import NOTHING_TO_JUDGE
from rewindmq.race.history import Lab
from rewindmq.race.play.run import Plan
from rewindmq.race.sim.world import World
from rewindmq.race.stage.settle import settle
from rewindmq.race.stage.simulated import SimulatedStage
from rewindmq.race.stage.stage import BROKER, GROUP, TOPIC
from rewindmq.watch.verdict.queue_watch import QueueWatch
from rewindmq.watch.verdict.reset_watch import ResetWatch

_HOST = "10.0.0.2"
# A play leaves about 1 MB of cycles.
_COLLECT_EVERY = 25
_PLAYS = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Watched:
    """The verdict of the judge, who sees everything, and the last states of the watcher."""

    verdict: Verdict
    error: str | None
    queues: list[QueueWatch]


class WatchedStage(SimulatedStage):
    """A simulated stage on which the latest reset is watched.

    Attributes:
        idle: seconds without new messages before each reset, so that the watcher may count the redelivery.
        asks_rewinds: False watches as at RocketMQ's brokers.
    """

    idle = 0.0
    asks_rewinds = True
    watch: ResetWatch | None = None
    _task: asyncio.Task[None] | None = None

    async def reset(
        self,
        offset: int,
        *,
        queue: int = 0,
        broker: str = BROKER,
        wait: bool = True,
        is_direct: bool = False,
    ) -> None:
        await self.sleep(self.idle)
        admin = AdminClient(self._namesrv, runtime=self._world.runtime(_HOST), profile=self.profile.release)
        await admin.start()
        brokers = Brokers(admin, asks_rewinds=self.asks_rewinds)
        queues = (await brokers.routes.shape_of(TOPIC)).queues
        before = await take_sample(admin, TOPIC, GROUP, queues, brokers)
        began = admin.runtime.clock.monotonic()
        earlier = len(self.history.of(Lab.RESET_ACKNOWLEDGED))
        await super().reset(offset, queue=queue, broker=broker, wait=wait, is_direct=is_direct)

        async def watch() -> None:
            try:
                answer = await self.until(Lab.RESET_ACKNOWLEDGED, count=earlier + 1)
                targets = {
                    MessageQueue(TOPIC, name, queue_id): target
                    for name, queue_id, target in answer.details["targets"]
                }
                self.watch = ResetWatch(before, targets, began)
                async for _ in follow(admin, TOPIC, GROUP, self.watch, brokers=brokers):
                    pass
            finally:
                await admin.shutdown()

        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._task = asyncio.get_running_loop().create_task(watch())

    async def watched(self) -> list[QueueWatch]:
        """Wait until the watcher is done; return its queues."""
        assert self._task is not None
        await self._task
        assert self.watch is not None
        return self.watch.queues


@contextmanager
def _without_collection() -> Iterator[None]:
    """Run without Python's garbage collector, which takes a sixth of the time; collect now and then."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if next(_PLAYS) % _COLLECT_EVERY == 0:
            gc.collect()
        if was_enabled:
            gc.enable()


def play_watched(plan: Plan, seed: int, idle: float = 0.0, *, asks_rewinds: bool = True) -> Watched:
    """Play one run under virtual time, and watch its last reset; see ``WatchedStage``."""
    world = World(seed)
    stage = WatchedStage(world, plan.profile, plan.mode, plan.remedy)
    stage.idle, stage.asks_rewinds = idle, asks_rewinds

    async def main() -> tuple[str | None, list[QueueWatch]]:
        async with stage:
            try:
                await plan.scenario.play(stage)
                await settle(stage)
            except RewindMQError as error:
                return str(error), []
            return None, await stage.watched()

    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with _without_collection():
            error, queues = world.run(main())
    finally:
        logging.disable(level)
    return Watched(NOTHING_TO_JUDGE if error else judge(stage.history), error, queues)
