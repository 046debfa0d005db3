"""Watches resets as at RocketMQ's brokers, which tell no rewinds."""

from __future__ import annotations

from rewindmq import MessageQueue
from rewindmq.client.admin.admin_client import AdminClient
from rewindmq.client.admin.watched_reset.brokers import Brokers
from rewindmq.client.admin.watched_reset.follow import PATIENCE, follow
from rewindmq.client.admin.watched_reset.take_sample import take_sample
from rewindmq.watch.verdict.reset_watch import ResetWatch
from rewindmq.watch.verdict.states import State
from tests.client.admin.support import GROUP, TOPIC
from tests.support.stage import SimStage


async def watch_as_at_rocketmq(
    stage: SimStage, queues: int, seconds: float = 30.0, patience: float = PATIENCE
) -> list[State]:
    """Reset the group to the start, and watch it without the rewinds of RewindMQ's brokers.

    Args:
        seconds: after the reset by which the state of every queue must be known.
        patience: see ``follow``.
    """
    admin = AdminClient(stage.namesrv, runtime=stage.new_runtime())
    watched = [MessageQueue(TOPIC, "broker-a", number) for number in range(queues)]
    async with admin:
        brokers = Brokers(admin, asks_rewinds=False)
        before = await take_sample(admin, TOPIC, GROUP, watched, brokers)
        began = admin.runtime.clock.monotonic()
        result = await admin.resets.reset(TOPIC, GROUP, 0)
        watch = ResetWatch(before, result.offset_table, began)
        async for change in follow(admin, TOPIC, GROUP, watch, brokers=brokers, patience=patience):
            assert change.seconds < seconds
    return [queue.state for queue in watch.queues]


async def send_steadily(stage: SimStage) -> None:
    """Send 50 messages a second, until it is cancelled."""
    while True:
        await stage.send(5, TOPIC)
        await stage.world.sleep(0.1)
