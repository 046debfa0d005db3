"""A plan compared with the deliveries after a real reset of a real cluster."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rewindmq import (
    AdminClient,
    ConsumeConcurrentlyStatus,
    ConsumeFromWhere,
    LocalCluster,
    Message,
    MessageExt,
    MessageQueue,
    Producer,
    PushConsumer,
)
from rewindmq.pipeline.replay.job import replay_plan
from rewindmq.pipeline.replay.plan import Mode, ReplayPlan
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import ResponseError
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.runtime import Runtime, system_runtime
from tests.pipeline.reference import read_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rewindmq.cluster.async_cluster import AsyncLocalCluster

TOPIC, GROUP = "Orders", "rewinders"
MESSAGES = 240
QUEUES = 8
SCALE = 0.05
POLL = 0.02


class Inbox:
    """Counts deliveries by queue."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, int]] = Counter()
        self._more = asyncio.Condition()

    async def __call__(self, messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        async with self._more:
            self.counts.update((message.broker_name, message.queue_id) for message in messages)
            self._more.notify_all()
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    async def holds(self, total: int) -> None:
        """Wait until so many have come."""
        async with self._more:
            await self._more.wait_for(lambda: self.counts.total() >= total)


async def until(is_so: Callable[[], Awaitable[bool]]) -> None:
    """Query repeatedly: there is no event for the tables of another process."""
    while not await is_so():  # noqa: ASYNC110
        await asyncio.sleep(POLL)


def consumer_of(cluster: AsyncLocalCluster, runtime: Runtime, profile: Profile, inbox: Inbox) -> PushConsumer:
    consumer = PushConsumer(
        GROUP,
        cluster.namesrv_address,
        runtime=runtime,
        profile=profile,
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
    )
    consumer.subscribe(TOPIC)
    consumer.register_message_listener(inbox)
    return consumer


async def all_consumed(admin: AdminClient) -> bool:
    try:
        stats = await admin.groups.examine_consume_stats(GROUP, TOPIC)
    except ResponseError as error:
        # The brokers have just created the retry topic; they register it a moment later.
        if error.code != ResponseCode.TOPIC_NOT_EXIST:
            raise
        return False
    mine = [offset for queue, offset in stats.offset_table.items() if queue.topic == TOPIC]
    return len(mine) == QUEUES and all(offset.broker_offset == offset.consumer_offset for offset in mine)


ONE_RELEASE = pytest.mark.slow(full_only="a plan is the same for every release")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("profile", "mode"),
    [
        pytest.param(Profile.V49, Mode.NEAREST, id="v49", marks=ONE_RELEASE),
        pytest.param(Profile.V53, Mode.BOUNDARY, id="v53"),
    ],
)
async def test_a_reset_redelivers_the_planned_messages(
    spark: SparkSession, tmp_path: Path, profile: Profile, mode: Mode
) -> None:
    runtime = system_runtime(time_scale=SCALE)
    async with LocalCluster(brokers=2, directory=tmp_path, time_scale=SCALE, profile=profile) as cluster:
        await _fill_and_consume(cluster, runtime, profile)
        stores = [member.store_path for member in cluster.brokers.values()]
        for name in cluster.brokers:
            await cluster.stop(name)
        times = sorted(m.store_timestamp for store in stores for m in read_log(store) if m.topic == TOPIC)
        assert len(times) == MESSAGES
        timestamp = times[MESSAGES // 3]
        plan = replay_plan(spark, stores, group=GROUP, topic=TOPIC, to=str(timestamp))
        assert 0 < plan.totals[mode].messages < MESSAGES
        for name in cluster.brokers:
            await cluster.restart(name)
        redelivered = await _reset(cluster, runtime, profile, timestamp, targets_of(plan, mode), plan, mode)
        names = list(cluster.brokers)
        assert redelivered == {
            (names[queue.store], queue.queue_id): queue.moves[mode].load.messages
            for queue in plan.queues
            if queue.moves[mode].load.messages
        }
    runtime.workers.close()


async def _fill_and_consume(cluster: AsyncLocalCluster, runtime: Runtime, profile: Profile) -> None:
    inbox = Inbox()
    async with (
        AdminClient(cluster.namesrv_address, runtime=runtime, profile=profile) as admin,
        Producer("P", cluster.namesrv_address, runtime=runtime) as producer,
    ):
        for number in range(MESSAGES):
            await producer.send(Message(TOPIC, b"%d" % number, keys=f"key-{number % 20}"))
        async with consumer_of(cluster, runtime, profile, inbox):
            await until(lambda: all_consumed(admin))
    assert inbox.counts.total() >= MESSAGES


def targets_of(plan: ReplayPlan, mode: Mode) -> dict[MessageQueue, int]:
    names = ("broker-a", "broker-b")
    return {
        MessageQueue(TOPIC, names[queue.store], queue.queue_id): queue.moves[mode].target
        for queue in plan.queues
    }


async def _reset(
    cluster: AsyncLocalCluster,
    runtime: Runtime,
    profile: Profile,
    timestamp: int,
    targets: dict[MessageQueue, int],
    plan: ReplayPlan,
    mode: Mode,
) -> Counter[tuple[str, int]]:
    inbox = Inbox()
    async with (
        AdminClient(cluster.namesrv_address, runtime=runtime, profile=profile) as admin,
        consumer_of(cluster, runtime, profile, inbox) as consumer,
    ):

        async def is_assigned() -> bool:
            return sum(queue.topic == TOPIC for queue in consumer.process_queues) == QUEUES

        await until(is_assigned)
        result = await admin.resets.reset(TOPIC, GROUP, timestamp)
        assert result.offset_table == targets

        await inbox.holds(plan.totals[mode].messages)
        await until(lambda: all_consumed(admin))
    return inbox.counts
