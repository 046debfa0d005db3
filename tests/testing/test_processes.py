"""Control of the cluster's processes: kill, restart, pause, and the clean-up after a test."""

import secrets

import pytest

from rewindmq import (
    ConsumeConcurrentlyStatus,
    Message,
    PushConsumer,
    RequestTimeoutError,
    RewindMQError,
)
from rewindmq.testing import KitError, Rmq
from rewindmq.testing.clusters.servers import Servers


async def test_a_broker_that_was_down_serves_again(rmq: Rmq) -> None:
    topic = await rmq.topic("orders", queues=1)
    before = await topic.send(b"before")
    async with rmq.down("broker-a"):
        with pytest.raises(RewindMQError):
            await topic.read()
    after = await topic.send(b"after")
    assert await topic.read() == [before, after]


async def test_a_group_continues_after_its_broker_was_down(rmq: Rmq) -> None:
    topic = await rmq.topic("orders", queues=1)
    async with rmq.push("billing", topic) as billing:
        await topic.send(b"before")
        await billing.caught_up()
        async with rmq.down("broker-a"):
            pass
        await topic.send(b"after")
        await rmq.eventually(lambda: len(billing.received) == 2)
        await billing.caught_up()


async def test_a_paused_broker_answers_after_the_pause(rmq: Rmq) -> None:
    topic = await rmq.topic("orders", queues=1)
    async with rmq.producer() as producer:
        await producer.send(Message(topic.name, b"first"))
        async with rmq.paused("broker-a"):
            with pytest.raises(RequestTimeoutError):
                await producer.send(Message(topic.name, b"x"), timeout=0.2)
        await topic.send(b"y")
    assert b"y" in [message.body for message in await topic.read()]


async def test_the_kit_starts_again_what_a_test_ended(kit_cluster: Servers) -> None:
    async with Rmq(kit_cluster) as first:
        await first.kill("broker-a")
        await first.kill("namesrv")
    async with Rmq(kit_cluster) as second:
        topic = await second.topic("orders")
        await topic.send(b"x")


async def test_a_test_after_a_kill_of_the_name_server_finds_all_brokers(kit_cluster: Servers) -> None:
    async with Rmq(kit_cluster) as first:
        await first.kill("namesrv")
    async with Rmq(kit_cluster) as second:
        await second.topic("orders")


async def test_a_restarted_name_server_knows_the_brokers(rmq: Rmq) -> None:
    async with rmq.down("namesrv"):
        pass
    await rmq.topic("orders")


async def test_the_end_of_a_test_stops_everything_even_if_one_stop_fails(kit_cluster: Servers) -> None:
    async def fail() -> None:
        raise ZeroDivisionError

    first = Rmq(kit_cluster)
    await first.__aenter__()
    topic = await first.topic("orders")
    producer = first.producer()
    await producer.start()
    first.push("billing", topic).stop = fail  # type: ignore[method-assign]
    with pytest.raises(ZeroDivisionError):
        await first.close()
    assert not producer.is_running
    async with Rmq(kit_cluster) as second:
        assert topic.name not in await second.admin.topics.fetch_all_topic_list()


async def test_what_a_test_created_is_gone_after_it(kit_cluster: Servers) -> None:
    async with Rmq(kit_cluster) as first:
        topic = await first.topic("orders")
        async with first.push("billing", topic):
            pass
    async with Rmq(kit_cluster) as second:
        assert [
            name for name in await second.admin.topics.fetch_all_topic_list() if first.name("") in name
        ] == []


async def test_offsets_of_an_application_do_not_reach_the_next_test(kit_cluster: Servers) -> None:
    """With exact names, ``caught_up`` would return before the next test's messages are consumed."""
    name = secrets.token_hex(4)
    for _ in range(2):
        async with Rmq(kit_cluster) as rmq:
            topic = await rmq.topic(name, queues=1, exact=True)
            billing = rmq.group(f"{name}-billing", topic)
            assert await billing.offsets() == {}
            consumer = PushConsumer(
                billing.name, rmq.namesrv_address, consume_from="first", **rmq.client_options
            )
            consumer.subscribe(topic.name)
            consumer.register_message_listener(lambda messages: ConsumeConcurrentlyStatus.CONSUME_SUCCESS)
            await topic.send(b"x")
            async with consumer:
                await billing.caught_up()


async def test_a_cluster_that_runs_elsewhere_cannot_be_killed(rmq: Rmq) -> None:
    async with Rmq(Servers(rmq.namesrv_address, rmq.client_options)) as other:
        topic = await other.topic("orders")
        await topic.send(b"x")
        with pytest.raises(KitError, match="kill needs a cluster of the kit's own"):
            await other.kill("broker-a")
