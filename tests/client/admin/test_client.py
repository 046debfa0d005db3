"""AdminClient's other methods, and what each refuses."""

from __future__ import annotations

import pytest

from rewindmq import AdminClient, Message, MessageQueue, Producer
from rewindmq.protocol.errors import ClientError, ConnectError, ResponseError
from rewindmq.race.sim import World
from tests.client.admin.members import member
from tests.support.answers import present
from tests.support.fixtures import RunScenario
from tests.support.stage import SimStage

TOPIC = "TopicTest"
Q0 = MessageQueue(TOPIC, "broker-a", 0)


def test_offsets_of_a_queue_and_a_message_by_its_id(play: RunScenario) -> None:
    async def scenario(stage: SimStage) -> None:
        await stage.create_topic(TOPIC, 1)
        await stage.send(3, TOPIC)
        admin = await stage.admin()
        assert (await admin.min_offset(Q0), await admin.max_offset(Q0)) == (0, 3)
        store = stage.brokers["broker-a"].context.store
        assert await admin.search_offset(Q0, store.store_time(TOPIC, 0, 1)) == 1
        runtime = stage.world.runtime("10.0.9.2")
        async with Producer("senders", stage.namesrv, runtime=runtime) as producer:
            sent = await producer.send(Message(TOPIC, b"look at me", "TagB"))
        message = await admin.view_message(sent.offset_msg_id)
        assert (message.body, message.tags, message.queue_offset) == (b"look at me", "TagB", 3)

    play(scenario)


# The last one is a producer's: its bytes make a port that there cannot be.
@pytest.mark.parametrize("text", ["", "xyz", "AB" * 15, "AB" * 17, "7F00000160F96990A55D6C90BCB40004"])
def test_a_text_that_is_no_offset_id_is_refused_without_asking_anybody(play: RunScenario, text: str) -> None:
    async def scenario(stage: SimStage) -> None:
        with pytest.raises(ResponseError, match="is not an offset message id"):
            await (await stage.admin()).view_message(text)

    play(scenario)


def test_a_queue_of_a_broker_that_does_not_serve_the_topic(play: RunScenario) -> None:
    async def scenario(stage: SimStage) -> None:
        await stage.create_topic(TOPIC, 2)
        with pytest.raises(ClientError, match="broker 'broker-z' does not serve topic 'TopicTest'"):
            await (await stage.admin()).max_offset(MessageQueue(TOPIC, "broker-z", 0))

    play(scenario)


def test_statistics_of_an_unknown_topic_are_17(play: RunScenario) -> None:
    async def scenario(stage: SimStage) -> None:
        with pytest.raises(ResponseError) as refused:
            await (await stage.admin()).examine_topic_stats("nowhere")
        assert refused.value.code == 17

    play(scenario)


def test_progress_of_a_group_that_never_connected_is_17_and_without_offsets_206(play: RunScenario) -> None:
    async def scenario(stage: SimStage) -> None:
        await stage.create_topic(TOPIC, 2)
        admin = await stage.admin()
        with pytest.raises(ResponseError) as refused:
            await admin.examine_consume_stats("strangers")
        assert refused.value.code == 17
        async with member(stage):
            await stage.world.sleep(1)
            assert stage.brokers["broker-a"].context.offsets.topics_of("rewinders") == []
            with pytest.raises(ResponseError) as refused:
                await admin.examine_consume_stats("rewinders")
        assert refused.value.code == 206
        assert "offset table" in refused.value.remark

    play(scenario)


def test_the_members_of_a_group_that_has_left_are_206(play: RunScenario) -> None:
    async def scenario(stage: SimStage) -> None:
        await stage.create_topic(TOPIC, 2)
        async with member(stage):
            await stage.world.sleep(1)
        await stage.world.sleep(1)
        with pytest.raises(ResponseError) as refused:
            await (await stage.admin()).examine_consumer_connection_info("rewinders")
        assert refused.value.code == 206

    play(scenario)


def test_members_are_found_at_whichever_broker_knows_them(play: RunScenario) -> None:
    async def scenario(stage: SimStage) -> None:
        await stage.create_topic(TOPIC, 2)
        async with member(stage) as consumer:
            await stage.world.sleep(1)
            consumers = stage.brokers["broker-a"].context.consumers
            for channel in list(present(consumers.find("rewinders")).channels.values()):
                consumers.unregister("rewinders", channel.connection, notify=False)
            found = await (await stage.admin()).examine_consumer_connection_info("rewinders")
            assert [client.client_id for client in found.connection_set] == [consumer.client_id]

    play(scenario, brokers=2)


@pytest.mark.parametrize("topic", ["../../x", "a b", "x" * 200, "TBW102"])
def test_a_topic_name_the_broker_refuses_is_its_own_code_and_words(play: RunScenario, topic: str) -> None:
    async def scenario(stage: SimStage) -> None:
        with pytest.raises(ResponseError) as refused:
            await stage.run_arguments(["updateTopic", "-c", "DefaultCluster", "-t", topic])
        assert refused.value.code == 1
        assert refused.value.remark
        assert topic == "TBW102" or topic not in await (await stage.admin()).fetch_all_topic_list()

    play(scenario)


def test_an_unknown_cluster_has_no_master(play: RunScenario) -> None:
    async def scenario(stage: SimStage) -> None:
        with pytest.raises(ClientError, match="no master of a cluster named 'Nowhere'"):
            await stage.run("updateTopic -c Nowhere -t T")

    play(scenario)


def test_the_second_name_server_is_asked_when_the_first_is_away(play: RunScenario) -> None:
    async def scenario(stage: SimStage) -> None:
        await stage.create_topic(TOPIC, 2)
        addresses = f"10.0.0.77:9876;{stage.namesrv}"
        async with AdminClient(addresses, runtime=stage.world.runtime("10.0.9.1")) as admin:
            assert "TopicTest" in await admin.fetch_all_topic_list()

    play(scenario)


def test_a_name_server_that_is_not_there() -> None:
    world = World()

    async def main() -> None:
        async with AdminClient("10.0.0.1:9876", runtime=world.runtime("10.0.9.1")) as admin:
            with pytest.raises(ConnectError, match=r"10\.0\.0\.1:9876"):
                await admin.examine_topic_route_info("T")

    world.run(main())


def test_without_a_name_server_there_is_no_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)
    with pytest.raises(ClientError, match="name server"):
        AdminClient()
