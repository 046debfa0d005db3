"""getBrokerConfig, updateBrokerConfig and updateTopicPerm: their output, and how producers react."""

from __future__ import annotations

import pytest

from rewindmq import ClientError, Message, Producer
from rewindmq.protocol.errors import ResponseError
from rewindmq.protocol.profile import Profile
from tests.client.admin.support import TOPIC
from tests.support.answers import present
from tests.support.fixtures import played
from tests.support.stage import SimStage

pytestmark = pytest.mark.usefixtures("utc")


@played(brokers=2)
async def test_configuration_commands_address_one_broker_or_all_masters(stage: SimStage) -> None:
    first, second = (broker.address for broker in stage.brokers.values())
    lines = await stage.run(f"getBrokerConfig -b {first}")
    assert lines[0] == f"============{first}============"
    assert f"{'brokerName':<50}=  broker-a" in lines
    lines = await stage.run("updateBrokerConfig -c DefaultCluster -k emulatedBusy -v PC_SYNCHRONIZED")
    assert lines == [f"update broker config success, {address}" for address in (first, second)]
    lines = await stage.run("getBrokerConfig -c DefaultCluster")
    assert f"============Master: {second}============" in lines
    assert lines.count(f"{'emulatedBusy':<50}=  PC_SYNCHRONIZED") == 2
    with pytest.raises(ResponseError, match="brokerName cannot be changed while the broker runs"):
        await stage.run(f"updateBrokerConfig -b {first} -k brokerName -v x")


@pytest.mark.parametrize(
    ("profile", "kind", "goes_elsewhere"),
    [
        (Profile.V42, "PC_SYNCHRONIZED", True),
        (Profile.V49, "PC_SYNCHRONIZED", True),
        (Profile.V49, "REJECTREQUEST", False),
        (Profile.V53, "REJECTREQUEST", True),
        (Profile.V53, "TIMEOUT_CLEAN_QUEUE", True),
    ],
)
@played(brokers=2)
async def test_a_producer_avoids_a_busy_broker_if_its_release_does(
    stage: SimStage, profile: Profile, kind: str, goes_elsewhere: bool
) -> None:
    await stage.create_topic(TOPIC, 2)
    busy = stage.brokers["broker-a"]
    await stage.run(f"updateBrokerConfig -b {busy.address} -k emulatedBusy -v {kind}")
    runtime = stage.world.runtime("10.0.9.2")
    async with Producer("senders", stage.namesrv, runtime=runtime, profile=profile) as producer:
        refused = []
        for number in range(8):
            try:
                result = await producer.send(Message("TopicTest", b"%d" % number))
            except ResponseError as error:
                refused.append(error)
            else:
                assert result.message_queue.broker_name == "broker-b"
        assert bool(refused) is not goes_elsewhere
        assert all("start flow control for a while" in str(error) for error in refused)
        await stage.run(f"updateBrokerConfig -b {busy.address} -k emulatedBusy -v NONE")
        brokers = {
            (await producer.send(Message("TopicTest", b"x"))).message_queue.broker_name for _ in range(8)
        }
        assert brokers == {"broker-a", "broker-b"}


@played(brokers=2)
async def test_producers_leave_a_broker_where_the_topic_is_read_only(stage: SimStage) -> None:
    await stage.create_topic(TOPIC, 2, read=3)
    first, second = (broker.address for broker in stage.brokers.values())
    runtime = stage.world.runtime("10.0.9.2")
    async with Producer("senders", stage.namesrv, runtime=runtime) as producer:
        assert len(await producer.fetch_publish_message_queues("TopicTest")) == 4
        await stage.world.sleep(3)
        assert await stage.run(f"updateTopicPerm -b {first} -t TopicTest -p 4") == [
            f"update topic perm from 6 to 4 in {first} success."
        ]
        # The broker registers the change at once; the producer sees it with its next route look-up.
        await stage.world.sleep(40)
        queues = await producer.fetch_publish_message_queues("TopicTest")
        assert {queue.broker_name for queue in queues} == {"broker-b"}
        config = present(stage.brokers["broker-a"].context.tables.topics.find("TopicTest"))
        assert (config.read_queue_nums, config.write_queue_nums, config.perm) == (3, 2, 4)
    lines = await stage.run("updateTopicPerm -c DefaultCluster -t TopicTest -p 4")
    assert lines == [
        "new perm equals to the old one!",
        f"update topic perm from 6 to 4 in {second} success.",
    ]
    await stage.world.sleep(3)
    async with Producer("senders", stage.namesrv, runtime=runtime) as producer:
        with pytest.raises(ClientError, match="No route info of this topic"):
            await producer.send(Message("TopicTest", b"x"))
    with pytest.raises(ClientError, match="has no master broker at that address"):
        await stage.run("updateTopicPerm -b 10.0.7.7:1 -t TopicTest -p 6")
