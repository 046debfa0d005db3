"""Consumers that filter by SQL92: what reaches the listener, what is asked before, what a refusal does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rewindmq.client import (
    ClientError,
    ConsumeFromWhere,
    LitePullConsumer,
    Message,
    MessageSelector,
    PullStatus,
)
from rewindmq.protocol.errors import ResponseError
from rewindmq.protocol.profile import Profile
from tests.client.client_stage import Cluster, Inbox, play, until

ON: dict[str, Any] = {"enable_property_filter": True}
RELEASES = (Profile.V42, Profile.V49, Profile.V53)


async def sell(cluster: Cluster, count: int) -> None:
    """Messages of prices 0, 1, 2, ..., tagged by what they are."""
    producer = await cluster.producer()
    for price in range(count):
        tag = "even" if price % 2 == 0 else "odd"
        await producer.send(Message("T", b"%d" % price, tag, properties={"price": str(price)}))


@pytest.mark.parametrize("profile", RELEASES)
def test_the_listener_gets_what_passes_and_the_rest_counts_as_consumed(
    tmp_path: Path, profile: Profile
) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic(queues=2)
        inbox = Inbox(cluster.world)
        selector = MessageSelector.by_sql("price BETWEEN 10 AND 19 AND TAGS = 'odd'")
        await cluster.consume(inbox, expression=selector)
        await sell(cluster, 40)
        await until(lambda: len(inbox.messages) == 5)
        assert sorted(inbox.bodies) == [b"11", b"13", b"15", b"17", b"19"]
        # Held pulls, woken by what passes only, have their offset committed all the same.
        await until(lambda: cluster.stored() == {0: 20, 1: 20}, 60)
        assert len(inbox.messages) == 5

    play(scene, tmp_path, profile, queues=2, config=ON)


@pytest.mark.parametrize("profile", RELEASES)
def test_a_start_with_a_bad_condition_fails_and_says_why(tmp_path: Path, profile: Profile) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic()
        consumer = cluster.push_consumer(
            Inbox(cluster.world), expression=MessageSelector.by_sql("price > 'x'")
        )
        with pytest.raises(ResponseError, match=r"CODE: 23  DESC: Invalid MessageSelector.*only numbers can"):
            await consumer.start()
        assert not consumer.is_running

    play(scene, tmp_path, profile, config=ON)


def test_a_start_fails_where_the_broker_does_not_filter(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic()
        consumer = cluster.push_consumer(Inbox(cluster.world), expression=MessageSelector.by_sql("price > 1"))
        with pytest.raises(ResponseError, match="does not support consumer to filter message by SQL92"):
            await consumer.start()

    play(scene, tmp_path)


def test_a_topic_that_nobody_knows_yet_is_checked_by_nobody(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        inbox = Inbox(cluster.world)
        await cluster.consume(inbox, expression=MessageSelector.by_sql("price > 7"))
        await sell(cluster, 10)
        await until(lambda: len(inbox.messages) == 2, 120)

    play(scene, tmp_path, config=ON)


def test_pull_consumers_filter_and_replay_by_condition(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic(queues=1)
        await sell(cluster, 10)
        consumer = await cluster.pull_consumer()
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

    play(scene, tmp_path, queues=1, config=ON)


def test_lite_pull_consumers_poll_what_passes(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic(queues=1)
        await sell(cluster, 10)
        bad = LitePullConsumer("L", cluster.namesrv, runtime=cluster.runtime()[0])
        bad.subscribe("T", MessageSelector.by_sql("price >"))
        with pytest.raises(ResponseError, match="CODE: 23"):
            await bad.start()
        consumer = LitePullConsumer(
            "L",
            cluster.namesrv,
            runtime=cluster.runtime()[0],
            consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        )
        consumer.subscribe("T", MessageSelector.by_sql("price IN ('3', '7')"))
        async with consumer:
            polled: list[bytes] = []
            while len(polled) < 2:
                polled += [message.body for message in await consumer.poll()]
        assert polled == [b"3", b"7"]

    play(scene, tmp_path, queues=1, config=ON)


def test_an_empty_condition_is_refused_at_once(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        with pytest.raises(ClientError, match="SQL92 expression for T is empty"):
            cluster.push_consumer(Inbox(cluster.world), expression=MessageSelector.by_sql(""))

    play(scene, tmp_path, config=ON)
