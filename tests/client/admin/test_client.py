"""AdminClient's other methods, and their errors."""

from __future__ import annotations

import asyncio

import pytest

from rewindmq import AdminClient, Message, MessageQueue, Producer
from rewindmq.protocol.errors import ClientError, ConnectError, ResponseError
from rewindmq.race.sim import World
from tests.client.admin.support import new_consumer
from tests.support.answers import present
from tests.support.fixtures import played
from tests.support.stage import SimStage

TOPIC = "TopicTest"
Q0 = MessageQueue(TOPIC, "broker-a", 0)


@played()
async def test_offsets_of_a_queue_and_a_message_by_its_id(stage: SimStage) -> None:
    await stage.create_topic(TOPIC, 1)
    await stage.send(3, TOPIC)
    admin = await stage.admin()
    assert (await admin.messages.min_offset(Q0), await admin.messages.max_offset(Q0)) == (0, 3)
    store = stage.brokers["broker-a"].context.store
    assert await admin.messages.search_offset(Q0, store.store_time(TOPIC, 0, 1)) == 1
    runtime = stage.world.runtime("10.0.9.2")
    async with Producer("senders", stage.namesrv, runtime=runtime) as producer:
        sent = await producer.send(Message(TOPIC, b"look at me", "TagB"))
    message = await admin.messages.view_message(sent.offset_msg_id)
    assert (message.body, message.tags, message.queue_offset) == (b"look at me", "TagB", 3)


# The last id is a producer's unique id: read as an offset id, its port is out of range.
@pytest.mark.parametrize("text", ["", "xyz", "AB" * 15, "AB" * 17, "7F00000160F96990A55D6C90BCB40004"])
@played()
async def test_an_invalid_offset_id_is_refused_without_a_request(stage: SimStage, text: str) -> None:
    with pytest.raises(ResponseError, match="is not an offset message id"):
        await (await stage.admin()).messages.view_message(text)


@played()
async def test_a_queue_at_a_broker_without_the_topic_is_refused(stage: SimStage) -> None:
    await stage.create_topic(TOPIC, 2)
    with pytest.raises(ClientError, match="broker 'broker-z' does not serve topic 'TopicTest'"):
        await (await stage.admin()).messages.max_offset(MessageQueue(TOPIC, "broker-z", 0))


@played()
async def test_statistics_of_an_unknown_topic_fail_with_17(stage: SimStage) -> None:
    with pytest.raises(ResponseError) as refused:
        await (await stage.admin()).topics.examine_topic_stats("nowhere")
    assert refused.value.code == 17


@played()
async def test_consume_stats_fail_with_17_if_the_group_never_connected_and_206_without_offsets(
    stage: SimStage,
) -> None:
    await stage.create_topic(TOPIC, 2)
    admin = await stage.admin()
    with pytest.raises(ResponseError) as refused:
        await admin.groups.examine_consume_stats("strangers")
    assert refused.value.code == 17
    async with new_consumer(stage):
        await stage.world.sleep(1)
        assert stage.brokers["broker-a"].context.offsets.table.topics_of("rewinders") == []
        with pytest.raises(ResponseError) as refused:
            await admin.groups.examine_consume_stats("rewinders")
    assert refused.value.code == 206
    assert "offset table" in refused.value.remark


@played()
async def test_the_connection_list_of_an_offline_group_fails_with_206(stage: SimStage) -> None:
    await stage.create_topic(TOPIC, 2)
    async with new_consumer(stage):
        await stage.world.sleep(1)
    await stage.world.sleep(1)
    with pytest.raises(ResponseError) as refused:
        await (await stage.admin()).groups.examine_consumer_connection_info("rewinders")
    assert refused.value.code == 206


@played(brokers=2)
async def test_consumers_are_found_even_if_only_one_broker_knows_them(stage: SimStage) -> None:
    await stage.create_topic(TOPIC, 2)
    async with new_consumer(stage) as consumer:
        await stage.world.sleep(1)
        consumers = stage.brokers["broker-a"].context.clients.consumers
        for channel in list(present(consumers.find("rewinders")).channels.values()):
            consumers.unregister("rewinders", channel.connection, notify=False)
        found = await (await stage.admin()).groups.examine_consumer_connection_info("rewinders")
        assert [client.client_id for client in found.connection_set] == [consumer.client_id]


@pytest.mark.parametrize("topic", ["../../x", "a b", "x" * 200, "TBW102"])
@played()
async def test_a_refused_topic_name_raises_the_brokers_code_and_remark(stage: SimStage, topic: str) -> None:
    with pytest.raises(ResponseError) as refused:
        await stage.run_arguments(["updateTopic", "-c", "DefaultCluster", "-t", topic])
    assert refused.value.code == 1
    assert refused.value.remark
    assert topic == "TBW102" or topic not in await (await stage.admin()).topics.fetch_all_topic_list()


@played()
async def test_an_unknown_cluster_is_refused(stage: SimStage) -> None:
    with pytest.raises(ClientError, match="no master of a cluster named 'Nowhere'"):
        await stage.run("updateTopic -c Nowhere -t T")


@played()
async def test_the_second_name_server_is_asked_if_the_first_is_unreachable(stage: SimStage) -> None:
    await stage.create_topic(TOPIC, 2)
    addresses = f"10.0.0.77:9876;{stage.namesrv}"
    async with AdminClient(addresses, runtime=stage.world.runtime("10.0.9.1")) as admin:
        assert "TopicTest" in await admin.topics.fetch_all_topic_list()


def test_an_unreachable_name_server_is_named_in_the_error() -> None:
    world = World()

    async def main() -> None:
        async with AdminClient("10.0.0.1:9876", runtime=world.runtime("10.0.9.1")) as admin:
            with pytest.raises(ConnectError, match=r"10\.0\.0\.1:9876"):
                await admin.topics.examine_topic_route_info("T")

    world.run(main())


def test_a_client_without_a_name_server_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)
    with pytest.raises(ClientError, match="name server"):
        AdminClient()


def test_an_admin_client_used_on_another_loop_says_so() -> None:
    """Its connections belong to the loop that started it; it would wait for ever."""
    client = AdminClient("127.0.0.1:1")
    first = asyncio.new_event_loop()
    try:
        first.run_until_complete(client.start())
        with pytest.raises(ClientError, match=r"was started on another event loop.*or use rewindmq\.sync"):
            asyncio.run(client.topics.examine_topic_route_info("T"))
        first.run_until_complete(client.shutdown())
    finally:
        first.close()
