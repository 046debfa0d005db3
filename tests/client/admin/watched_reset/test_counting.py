"""A redelivery that ends between two samples is proven by counting messages (docs/watched_reset.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from rewindmq import ConsumeConcurrentlyStatus, MessageExt, MessageQueue
from rewindmq.client.admin.watched_reset.counting import RedeliveryCount
from rewindmq.client.admin.watched_reset.positions import Position
from rewindmq.client.admin.watched_reset.sample import QueueSample, Sample
from tests.client.admin.support import GROUP, TOPIC, new_consumer
from tests.support.fixtures import RunScenario
from tests.support.stage import SimStage

Q0, Q1 = MessageQueue(TOPIC, "broker-a", 0), MessageQueue(TOPIC, "broker-a", 1)
LINE = f"resetOffsetByTime -t {TOPIC} -g {GROUP} -s 0 --watch"
IDLE = Position("A", 10, None, dropped=False, last_consume=1_000, last_pull=30_000)
BEFORE = Sample(
    0.0,
    {queue: QueueSample(10, 10, (IDLE,)) for queue in (Q0, Q1)},
    frozenset({"A"}),
    succeeded={"A": 0.0},
)
TARGETS = {Q0: 0, Q1: 0}
# 20 messages in a minute.
ALL = 0.33


def with_rate(rate: float, sample: Sample = BEFORE) -> Sample:
    return replace(sample, succeeded={"A": rate})


def counted(*samples: tuple[float, Sample], before: Sample = BEFORE) -> bool:
    count = RedeliveryCount(before, TARGETS)
    return [count.add(seconds, sample) for seconds, sample in samples][-1]


def test_as_many_messages_as_the_redelivery_has_are_all_of_them() -> None:
    assert counted((20.0, with_rate(ALL)), (61.0, with_rate(ALL)))
    assert not counted((20.0, with_rate(ALL)), (59.0, with_rate(ALL)))
    # 19 messages.
    assert not counted((20.0, with_rate(0.32)), (61.0, with_rate(0.32)))
    assert not counted((20.0, with_rate(ALL)), (81.0, with_rate(ALL)))


def test_a_consumer_that_has_counted_for_less_than_a_minute_proves_nothing() -> None:
    """17 messages in 50 s have the rate of 20 messages in a minute; after 20 s, their rate was higher."""
    assert not counted((30.0, with_rate(0.85)), (61.0, with_rate(0.34)))


def other_queue(queue: QueueSample) -> Sample:
    return replace(BEFORE, queues={Q0: QueueSample(10, 10, (IDLE,)), Q1: queue})


@pytest.mark.parametrize(
    "disturbed",
    [
        replace(BEFORE, clients=frozenset({"A", "B"})),
        replace(BEFORE, is_complete=False),
        replace(BEFORE, has_failures=True),
        replace(BEFORE, succeeded={}),
        other_queue(QueueSample(10, 11, (IDLE,))),
        other_queue(QueueSample(None, 0, (IDLE,))),
        other_queue(QueueSample(10, 10, (replace(IDLE, client_id="B"),))),
    ],
    ids=["joined", "silent", "failed", "no rates", "new message", "broker away", "other owner"],
)
def test_nothing_is_counted_once_something_else_may_have_been_consumed(disturbed: Sample) -> None:
    assert not counted((20.0, disturbed), (61.0, with_rate(ALL)))


def test_a_queue_that_was_taken_over_twice_proves_nothing() -> None:
    gap = other_queue(QueueSample(10, 10, (replace(IDLE, dropped=True),)))
    assert counted((2.0, gap), (61.0, with_rate(ALL)))
    assert not counted((2.0, gap), (12.0, with_rate(ALL)), (14.0, gap), (61.0, with_rate(ALL)))


@pytest.mark.parametrize(
    "before",
    [
        with_rate(0.1),
        other_queue(QueueSample(9, 10, (IDLE,))),
        other_queue(QueueSample(10, 10, (replace(IDLE, last_consume=25_000),))),
        other_queue(QueueSample(10, 10)),
    ],
    ids=["consumed", "lag", "consumed just now", "no owner"],
)
def test_a_group_that_was_not_idle_before_the_reset_proves_nothing(before: Sample) -> None:
    assert not counted((61.0, with_rate(ALL)), before=before)


async def watch(stage: SimStage) -> tuple[str, list[str]]:
    """Reset an idle group with a fast listener; return the verdict and the states."""
    await stage.create_topic(TOPIC, 2)
    await stage.send(10, TOPIC)
    async with new_consumer(stage):
        await stage.world.sleep(150)
        printed = await stage.printed(LINE.split())
    return printed[-1].data["verdict"], [item["state"] for item in printed[-1].data["queues"]]


def test_the_fast_redelivery_of_an_idle_group_is_proven(play: RunScenario) -> None:
    async def scenario(stage: SimStage) -> None:
        assert await watch(stage) == ("proven", ["proven", "proven"])

    play(scenario)


def test_a_group_that_fails_messages_is_not_proven_by_counting(play: RunScenario) -> None:
    async def scenario(stage: SimStage) -> None:
        async def listener(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
            return (
                ConsumeConcurrentlyStatus.RECONSUME_LATER
                if stage.world.now > 100
                else ConsumeConcurrentlyStatus.CONSUME_SUCCESS
            )

        await stage.create_topic(TOPIC, 1)
        await stage.send(5, TOPIC)
        async with new_consumer(stage, listener=listener):
            await stage.world.sleep(150)
            printed = await stage.printed(LINE.split())
        assert printed[-1].data["verdict"] == "unknown"

    play(scenario)
