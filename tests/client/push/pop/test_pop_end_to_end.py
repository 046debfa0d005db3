"""Consumers that pop, with real servers under virtual time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewindmq import ConsumeConcurrentlyStatus, Message, MessageExt, PushConsumer
from rewindmq.client.admin.admin_client import AdminClient
from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.profile import Profile
from tests.client.inbox import Inbox
from tests.support.fixtures import RunScenario, played
from tests.support.properties import few_and_all
from tests.support.stage import SimStage

OK = ConsumeConcurrentlyStatus.CONSUME_SUCCESS
LATER = ConsumeConcurrentlyStatus.RECONSUME_LATER


async def pop(stage: SimStage, listener: Any, name: str = "c1", **options: Any) -> PushConsumer:
    return await stage.consume(listener, name=name, request_mode="pop", **options)


async def total_diff(stage: SimStage, group: str = "G") -> int:
    """Return the group's lag, once the broker has taken over the offsets of its POPs."""
    await stage.world.sleep(1)
    admin: AdminClient = await stage.admin()
    return (await admin.groups.examine_consume_stats(group)).total_diff()


@played(profile=Profile.V53, brokers=2)
async def test_consumers_share_all_queues_and_each_message_comes_once(stage: SimStage) -> None:
    await stage.create_topic()
    first, second = Inbox(stage.world), Inbox(stage.world)
    await pop(stage, first)
    await pop(stage, second, "c2")
    await stage.world.sleep(2)
    await stage.fill(100)
    await stage.until(lambda: len(first.messages) + len(second.messages) >= 800)
    # Long enough for messages that were not acknowledged.
    await stage.world.sleep(120)
    assert len(first.messages) + len(second.messages) == 800
    assert (
        len({(each.broker_name, each.queue_id, each.body) for each in first.messages + second.messages})
        == 800
    )
    assert first.messages
    assert second.messages
    assert await total_diff(stage) == 0


@played(profile=Profile.V53)
async def test_messages_of_a_killed_consumer_come_again_at_another(stage: SimStage) -> None:
    await stage.create_topic()

    async def never(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        await stage.world.sleep(1_000_000)
        return OK

    killed = stage.push_consumer(never, name="c1", host="10.0.9.1", request_mode="pop")
    await killed.start()
    await stage.fill(10)
    await stage.world.sleep(2)
    stage.world.kill("10.0.9.1")
    await stage.world.sleep(1)
    other = Inbox(stage.world)
    await pop(stage, other, "c2", host="10.0.9.2")
    await stage.world.sleep(30)
    assert not other.messages
    await stage.until(lambda: len(other.messages) == 40, 120)
    assert {each.reconsume_times for each in other.messages} == {1}
    assert {each.topic for each in other.messages} == {"T"}
    await stage.world.sleep(120)
    assert len(other.messages) == 40
    assert await total_diff(stage) == 0


@played(profile=Profile.V53)
async def test_a_failed_message_comes_again_and_then_stays_away(stage: SimStage) -> None:
    await stage.create_topic()
    came: list[tuple[float, bytes, int]] = []

    async def listener(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        (message,) = messages
        came.append((stage.world.now, message.body, message.reconsume_times))
        return OK if message.body != b"3" or message.reconsume_times == 2 else LATER

    await pop(stage, listener)
    producer = await stage.producer()
    for number in range(5):
        await producer.send(Message("T", b"%d" % number))
    await stage.until(lambda: len(came) == 7, 200)
    attempts = [(at, number) for at, body, number in came if body == b"3"]
    assert [number for _, number in attempts] == [0, 1, 2]
    # The delays are 10 s and 30 s; the revival takes 2 to 4.5 s, the poll of the retry topic some.
    assert 10 < attempts[1][0] - attempts[0][0] < 35
    assert 30 < attempts[2][0] - attempts[1][0] < 55
    await stage.world.sleep(120)
    assert len(came) == 7


@played(profile=Profile.V53)
async def test_a_slow_listener_gets_its_message_once(stage: SimStage) -> None:
    await stage.create_topic(queues=1)
    inbox = Inbox(stage.world)

    async def slow(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        await inbox(messages)
        await stage.world.sleep(40)
        return OK

    await pop(stage, slow, pop_invisible_time=5_000)
    await stage.fill(3)
    await stage.world.sleep(130)
    assert len(inbox.messages) == 3
    assert await total_diff(stage) == 0


@played(profile=Profile.V53)
async def test_a_consumer_that_stops_hands_its_messages_back(stage: SimStage) -> None:
    await stage.create_topic(queues=1)

    async def never(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        await stage.world.sleep(1_000)
        return OK

    stopping = stage.push_consumer(never, name="c1", request_mode="pop")
    await stopping.start()
    await stage.fill(20)
    await stage.world.sleep(2)
    await stopping.shutdown()
    other = Inbox(stage.world)
    await pop(stage, other, "c2")
    await stage.until(lambda: len(other.messages) == 20, 25)
    await stage.world.sleep(120)
    assert len(other.messages) == 20


@played(profile=Profile.V49)
async def test_a_broker_of_4_9_refuses_a_consumer_that_pops(stage: SimStage) -> None:
    await stage.create_topic()
    consumer = stage.push_consumer(Inbox(stage.world), request_mode="pop")
    with pytest.raises(ClientError, match="serves no consumers that pop"):
        await consumer.start()
    await consumer.shutdown()


@played(profile=Profile.V53)
async def test_a_topic_that_is_created_later_is_popped_too(stage: SimStage) -> None:
    inbox = Inbox(stage.world)
    await pop(stage, inbox)
    await stage.world.sleep(5)
    await stage.create_topic()
    await stage.fill(5)
    await stage.until(lambda: len(inbox.messages) == 20, 90)


@played(profile=Profile.V53)
async def test_a_group_that_pops_is_listed_with_its_lag_before_the_first_ack(stage: SimStage) -> None:
    await stage.create_topic()
    admin = await stage.admin()

    async def never(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        await stage.world.sleep(1_000_000)
        return OK

    await pop(stage, never, pop_threshold_for_queue=1, pop_batch_nums=4)
    await stage.fill(10)
    # POP moves the offset when it delivers: what is left is what was never delivered.
    assert await total_diff(stage) in range(30, 37)
    await stage.world.sleep(40)
    assert await admin.groups.consumer_groups() == ["G"]


async def _scene(
    stage: SimStage, consumers: int, queues: int, leaving: Sequence[tuple[int, int]], fails: Collection[int]
) -> None:
    await stage.create_topic(queues=queues)
    done: Counter[bytes] = Counter()

    async def listener(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        (message,) = messages
        if int(message.body) in fails and not message.reconsume_times:
            return LATER
        done[message.body] += 1
        return OK

    members = [await pop(stage, listener, f"c{number}") for number in range(consumers)]
    await stage.fill(10)
    for second, member in sorted(leaving):
        await stage.at(max(stage.world.now, float(second)))
        if member < len(members):
            await members.pop(member).shutdown()
    await pop(stage, listener, "last")
    await stage.until(lambda: done.total() >= 10 * queues, 120)
    await stage.world.sleep(70)
    assert done == {b"%d" % number: queues for number in range(10)}


@pytest.mark.parametrize("examples", few_and_all(2, 10))
def test_any_number_of_consumers_that_come_and_go_consume_each_message_once(
    play: RunScenario, examples: int
) -> None:
    @settings(max_examples=examples)
    @given(
        seed=st.integers(1, 2**32),
        consumers=st.integers(1, 5),
        queues=st.integers(1, 5),
        leaving=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 4)), max_size=4),
        fails=st.frozensets(st.integers(0, 9), max_size=3),
    )
    def holds(
        seed: int, consumers: int, queues: int, leaving: list[tuple[int, int]], fails: frozenset[int]
    ) -> None:
        play(lambda stage: _scene(stage, consumers, queues, leaving, fails), profile=Profile.V53, seed=seed)

    holds()
