"""The fast redelivery of an idle group is proven by counting fetched messages (docs/watched_reset.md)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from rewindmq import ConsumeConcurrentlyStatus, MessageExt, MessageQueue
from rewindmq.client.core.broker_api import BrokerApi
from rewindmq.watch.evidence.position import Position
from rewindmq.watch.evidence.sample import Fetched, QueueSample, Sample
from rewindmq.watch.rules.fetched import FetchCount
from rewindmq.watch.verdict.reset_watch import ResetWatch
from rewindmq.watch.verdict.states import State
from tests.client.admin.support import GROUP, TOPIC, new_consumer
from tests.client.admin.watched_reset.as_at_rocketmq import send_steadily, watch_as_at_rocketmq
from tests.support.fixtures import played
from tests.support.stage import SimStage

Q0, Q1 = MessageQueue(TOPIC, "broker-a", 0), MessageQueue(TOPIC, "broker-a", 1)
QB = MessageQueue(TOPIC, "broker-b", 0)
LINE = f"resetOffsetByTime -t {TOPIC} -g {GROUP} -s 0 --watch"
IDLE = Position("A", 10, None, dropped=False, last_consume=1_000, last_pull=30_000)
BEFORE = Sample(
    0.0,
    {queue: QueueSample(10, 10, (IDLE,)) for queue in (Q0, Q1, QB)},
    frozenset({"A"}),
    fetched={"broker-a": Fetched(0.0, 0), "broker-b": Fetched(0.0, 0)},
)
TARGETS = {Q0: 0, Q1: 5, QB: 0}
BOTH = {"broker-a", "broker-b"}


def fetched(at_a: int, at_b: int = 0, sample: Sample = BEFORE) -> Sample:
    return replace(sample, fetched={"broker-a": Fetched(0.0, at_a), "broker-b": Fetched(0.0, at_b)})


def counted(*samples: tuple[float, Sample], before: Sample = BEFORE) -> set[str]:
    count = FetchCount(before, TARGETS)
    return set([count.add(seconds, sample) for seconds, sample in samples][-1])


def test_as_many_messages_as_the_redelivery_has_are_all_of_them() -> None:
    assert counted((20.0, fetched(15))) == {"broker-a"}
    assert counted((20.0, fetched(15, 10))) == BOTH
    assert counted((20.0, fetched(10)), (30.0, fetched(15))) == {"broker-a"}
    for other in (14, 16):
        assert not counted((20.0, fetched(other)))


def test_a_count_that_goes_back_to_before_the_reset_proves_nothing() -> None:
    assert not counted((56.0, fetched(15)))


def other_queue(queue: QueueSample, sample: Sample = BEFORE) -> Sample:
    return replace(sample, queues={**sample.queues, Q1: queue})


@pytest.mark.parametrize(
    ("disturbed", "left"),
    [
        (replace(BEFORE, clients=frozenset({"A", "B"})), set()),
        (replace(BEFORE, is_complete=False), set()),
        (other_queue(QueueSample(10, 11, (IDLE,))), {"broker-b"}),
        (other_queue(QueueSample(None, 0, (IDLE,))), {"broker-b"}),
        (other_queue(QueueSample(10, 10, (replace(IDLE, client_id="B"),))), {"broker-b"}),
    ],
    ids=["joined", "silent", "new message", "broker away", "other owner"],
)
def test_nothing_is_counted_once_something_else_may_have_been_fetched(
    disturbed: Sample, left: set[str]
) -> None:
    assert counted((15.0, disturbed), (20.0, fetched(15, 10))) == left


def test_a_queue_that_was_taken_over_twice_proves_nothing() -> None:
    gap = other_queue(QueueSample(10, 10, (replace(IDLE, dropped=True),)))
    assert counted((2.0, gap), (20.0, fetched(15, 10))) == BOTH
    assert counted((2.0, gap), (12.0, BEFORE), (14.0, gap), (20.0, fetched(15, 10))) == {"broker-b"}


@pytest.mark.parametrize(
    ("before", "left"),
    [
        (fetched(1), {"broker-b"}),
        (replace(BEFORE, fetched={"broker-b": Fetched(0.0, 0)}), {"broker-b"}),
        (other_queue(QueueSample(9, 10, (IDLE,))), {"broker-b"}),
        (other_queue(QueueSample(10, 10, (replace(IDLE, last_consume=25_000),))), {"broker-b"}),
        (other_queue(QueueSample(10, 10)), {"broker-b"}),
        (replace(BEFORE, is_broadcasting=True), set()),
    ],
    ids=["fetched", "not told", "lag", "consumed just now", "no owner", "broadcasting"],
)
def test_a_group_that_was_not_idle_before_the_reset_proves_nothing(before: Sample, left: set[str]) -> None:
    assert counted((20.0, fetched(15, 10)), before=before) == left


def one_queue(*seen: tuple[float, QueueSample]) -> State:
    """Watch Q1 while its group fetches the five messages of its redelivery; return the state."""
    before = replace(BEFORE, queues={Q1: QueueSample(10, 10, (IDLE,))})
    watch = ResetWatch(before, {Q1: 5}, 0.0)
    for at, queue in seen:
        watch.add(replace(fetched(5 if at > 11 else 0), at=at, queues={Q1: queue}))
    return watch.queues[0].state


def test_a_queue_that_its_consumer_gave_up_and_took_again_was_reset_although_no_sample_saw_its_offset() -> (
    None
):
    """Seen at RocketMQ: a consumer may store what it has consumed milliseconds after the target."""
    through = QueueSample(10, 10, (IDLE,))
    given_up = QueueSample(10, 10, (replace(IDLE, dropped=True),))
    assert one_queue((5.0, given_up), (12.0, through)) is State.PROVEN
    assert one_queue((5.0, through), (12.0, through)) is not State.PROVEN
    assert one_queue((5.0, given_up), (12.0, given_up)) is not State.PROVEN


@pytest.mark.parametrize("count", [1, 500])
@played()
async def test_the_fast_redelivery_of_an_idle_group_is_proven_at_rocketmq_within_30_s(
    stage: SimStage, count: int
) -> None:
    await stage.create_topic(TOPIC, 2)
    await stage.send(2 * count, TOPIC)
    async with new_consumer(stage):
        await stage.world.sleep(150)
        assert await watch_as_at_rocketmq(stage, 2) == [State.PROVEN] * 2


@played()
async def test_a_kept_reset_of_a_group_under_traffic_is_proven_at_rocketmq(stage: SimStage) -> None:
    await stage.create_topic(TOPIC, 2)
    async with new_consumer(stage):
        sending = asyncio.create_task(send_steadily(stage))
        await stage.world.sleep(95)
        assert await watch_as_at_rocketmq(stage, 2, 75) == [State.PROVEN] * 2
        sending.cancel()


@played()
async def test_a_queue_whose_target_is_never_stored_is_not_proven_under_traffic_at_rocketmq(
    stage: SimStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit of the target gets lost on its way, so the consumer goes on where it was."""
    commit = BrokerApi.update_consumer_offset

    async def commit_past_start(
        api: BrokerApi, address: str, group: str, queue: MessageQueue, offset: int
    ) -> None:
        if queue != Q0 or offset > 0:
            await commit(api, address, group, queue, offset)

    await stage.create_topic(TOPIC, 2)
    async with new_consumer(stage):
        sending = asyncio.create_task(send_steadily(stage))
        await stage.world.sleep(40)
        monkeypatch.setattr(BrokerApi, "update_consumer_offset", commit_past_start)
        states = await watch_as_at_rocketmq(stage, 2, 77, patience=76)
        sending.cancel()
    assert [stage.consumed.count((queue, 10)) for queue in (Q0, Q1)] == [1, 2]
    # The count lacks as many messages as each of the queues has to redeliver.
    assert states == [State.UNKNOWN] * 2


async def watch(stage: SimStage) -> tuple[str, list[str]]:
    """Reset an idle group with a fast listener; return the verdict and the states."""
    await stage.create_topic(TOPIC, 2)
    await stage.send(10, TOPIC)
    async with new_consumer(stage):
        await stage.world.sleep(150)
        printed = await stage.printed(LINE.split())
    return printed[-1].data["verdict"], [item["state"] for item in printed[-1].data["queues"]]


@played()
async def test_the_fast_redelivery_of_an_idle_group_is_proven(stage: SimStage) -> None:
    assert await watch(stage) == ("proven", ["proven", "proven"])


@played()
async def test_a_group_that_fails_every_message_is_proven_without_counting(stage: SimStage) -> None:
    """The broker saw them handed out again, and failed messages leave the queue for the retry topic."""

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
    assert (printed[-1].data["verdict"], printed[-1].data["queues"][0]["seconds"] < 15) == (
        "proven",
        True,
    )
