"""Consumers that filter by SQL92: delivered messages, the check at the start, refusals."""

from __future__ import annotations

from typing import Any

import pytest

from rewindmq import (
    ClientError,
    ConsumeFromWhere,
    LitePullConsumer,
    Message,
    MessageSelector,
    PullStatus,
)
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import ResponseError
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.race.sim import World
from tests.client.inbox import Inbox
from tests.client.scripted_broker import ScriptedBroker
from tests.client.scripted_stage import consumer_of, play_scripted
from tests.support.fixtures import played
from tests.support.stage import SimStage

ON: dict[str, Any] = {"enable_property_filter": True}
RELEASES = (Profile.V42, Profile.V49, Profile.V53)


async def sell(stage: SimStage, count: int) -> None:
    """Send messages of prices 0, 1, 2, ..., tagged by their kind."""
    producer = await stage.producer()
    for price in range(count):
        tag = "even" if price % 2 == 0 else "odd"
        await producer.send(Message("T", b"%d" % price, tag, properties={"price": str(price)}))


@pytest.mark.parametrize("profile", RELEASES)
@played(default_topic_queue_nums=2, **ON)
async def test_the_listener_gets_matching_messages_and_the_others_count_as_consumed(
    stage: SimStage, profile: Profile
) -> None:
    await stage.create_topic(queues=2)
    inbox = Inbox(stage.world)
    selector = MessageSelector.by_sql("price BETWEEN 10 AND 19 AND TAGS = 'odd'")
    await stage.consume(inbox, expression=selector)
    await sell(stage, 40)
    await stage.until(lambda: len(inbox.messages) == 5)
    assert sorted(inbox.bodies) == [b"11", b"13", b"15", b"17", b"19"]
    # Only matching messages wake suspended pulls, but the pulls' offset is committed.
    await stage.until(lambda: stage.stored() == {0: 20, 1: 20}, 60)
    assert len(inbox.messages) == 5


@pytest.mark.parametrize("profile", RELEASES)
@played(**ON)
async def test_a_start_with_a_bad_condition_fails_and_says_why(stage: SimStage, profile: Profile) -> None:
    await stage.create_topic()
    consumer = stage.push_consumer(Inbox(stage.world), expression=MessageSelector.by_sql("price > 'x'"))
    with pytest.raises(ResponseError, match=r"CODE: 23  DESC: Invalid MessageSelector.*only numbers can"):
        await consumer.start()
    assert not consumer.is_running


@pytest.mark.parametrize(("timeout", "fails"), [(None, True), (6_000, False)])
def test_a_check_takes_as_long_as_the_option_says(timeout: int | None, fails: bool) -> None:
    """3 s by default, as Java's ``mqClientApiTimeout``; the broker takes 5 s."""

    async def scene(world: World, broker: ScriptedBroker, runtime: Runtime) -> None:
        async def check(connection: Connection, request: RemotingCommand) -> RemotingCommand:
            await world.sleep(5)
            return RemotingCommand(ResponseCode.SUCCESS)

        broker.handlers[RequestCode.CHECK_CLIENT_CONFIG] = check
        options: dict[str, Any] = {} if timeout is None else {"mq_client_api_timeout": timeout}
        consumer = consumer_of(broker, runtime, **options)
        consumer.subscribe("T", MessageSelector.by_sql("price > 1"))
        if fails:
            with pytest.raises(ClientError, match=r"Check client in broker error.*within 3000 ms"):
                await consumer.start()
        else:
            async with consumer:
                assert world.now >= 5

    play_scripted(scene)


def test_mq_client_api_timeout_must_be_positive() -> None:
    with pytest.raises(ClientError, match="mq_client_api_timeout must be at least 1"):
        LitePullConsumer("L", "127.0.0.1:9876", mq_client_api_timeout=0)


@played()
async def test_a_start_fails_where_the_broker_does_not_filter(stage: SimStage) -> None:
    await stage.create_topic()
    consumer = stage.push_consumer(Inbox(stage.world), expression=MessageSelector.by_sql("price > 1"))
    with pytest.raises(ResponseError, match="does not support consumer to filter message by SQL92"):
        await consumer.start()


@played(**ON)
async def test_the_filter_of_an_unknown_topic_is_not_checked(stage: SimStage) -> None:
    inbox = Inbox(stage.world)
    await stage.consume(inbox, expression=MessageSelector.by_sql("price > 7"))
    await sell(stage, 10)
    await stage.until(lambda: len(inbox.messages) == 2, 120)


@played(default_topic_queue_nums=1, **ON)
async def test_pull_consumers_filter_and_replay_by_condition(stage: SimStage) -> None:
    await stage.create_topic(queues=1)
    await sell(stage, 10)
    consumer = await stage.pull_consumer()
    [queue] = await consumer.fetch_subscribe_message_queues("T")
    result = await consumer.pull(queue, MessageSelector.by_sql("price >= 8"), 0, 32)
    assert [message.body for message in result.messages] == [b"8", b"9"]
    result = await consumer.pull(queue, MessageSelector.by_sql("price > 99"), 0, 32)
    assert (result.status, result.next_begin_offset) == (PullStatus.NO_MATCHED_MSG, 10)
    result = await consumer.pull(queue, MessageSelector.by_tag("odd"), 0, 2)
    assert [message.body for message in result.messages] == [b"1", b"3"]
    with pytest.raises(ResponseError, match="CODE: 23"):
        await consumer.pull(queue, MessageSelector.by_sql("price >"), 0, 32)
    replayed = consumer.replay("T", 0, 2**62, MessageSelector.by_sql("price < 2"))
    assert [message.body async for message in replayed] == [b"0", b"1"]


@played(default_topic_queue_nums=1, **ON)
async def test_lite_pull_consumers_poll_matching_messages(stage: SimStage) -> None:
    await stage.create_topic(queues=1)
    await sell(stage, 10)
    bad = LitePullConsumer("L", stage.namesrv, runtime=stage.new_runtime())
    bad.subscribe("T", MessageSelector.by_sql("price >"))
    with pytest.raises(ResponseError, match="CODE: 23"):
        await bad.start()
    consumer = LitePullConsumer(
        "L",
        stage.namesrv,
        runtime=stage.new_runtime(),
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
    )
    consumer.subscribe("T", MessageSelector.by_sql("price IN ('3', '7')"))
    async with consumer:
        polled: list[bytes] = []
        while len(polled) < 2:
            polled += [message.body for message in await consumer.poll()]
    assert polled == [b"3", b"7"]


@played(**ON)
async def test_an_empty_condition_is_refused_at_once(stage: SimStage) -> None:
    with pytest.raises(ClientError, match="SQL92 expression for T is empty"):
        stage.push_consumer(Inbox(stage.world), expression=MessageSelector.by_sql(""))
