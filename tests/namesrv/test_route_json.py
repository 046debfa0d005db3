"""How each release writes a topic's route (105) for clients that speak JSON, and that our clients read it."""

from __future__ import annotations

import pytest

from rewindmq import AdminClient
from rewindmq.protocol.body.registration import TopicConfig
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand, SerializeType
from rewindmq.protocol.header.namesrv import GetRouteInfoRequestHeader
from rewindmq.protocol.profile import RELEASES, Profile
from rewindmq.protocol.remoting.client import RemotingClient
from rewindmq.protocol.version import CURRENT_VERSION, MQVersion
from tests.namesrv.connected import connected
from tests.support.answers import body_of
from tests.support.fixtures import RunScenario, simulated
from tests.support.stage import SimStage

UNIT = 1
PLAIN = '{"brokerAddrs":{0:"10.0.0.2:10911"},"brokerName":"broker-a","cluster":"DefaultCluster"}'


async def registered(stage: SimStage) -> None:
    config = TopicConfig(topic_name="T", read_queue_nums=4, write_queue_nums=4, topic_sys_flag=UNIT)
    _, broker, _ = await connected(stage)
    await broker.register(configs=(config,))


async def answered(stage: SimStage, version: int) -> str:
    """Return the body that the name server writes for a client of this version."""
    client = RemotingClient(stage.runtime, serialize_type=SerializeType.JSON)
    header = GetRouteInfoRequestHeader(topic="T", accept_standard_json_only=True)
    request = RemotingCommand(RequestCode.GET_ROUTEINFO_BY_TOPIC, header, version=version)
    answer = (await client.invoke(stage.namesrv, request)).require_success()
    await client.close()
    assert isinstance(answer.body, bytes)
    return answer.body.decode()


@pytest.mark.parametrize("version", [MQVersion.V4_2_0_SNAPSHOT, CURRENT_VERSION])
def test_4_2_0_writes_bare_ids_and_the_old_name_of_the_flag_to_every_client(
    simulate: RunScenario, version: int
) -> None:
    async def scenario(stage: SimStage) -> None:
        await registered(stage)
        assert await answered(stage, version) == (
            '{"brokerDatas":[{"brokerAddrs":{0:"10.0.0.2:10911"},"brokerName":"broker-a",'
            '"cluster":"DefaultCluster"}],"filterServerTable":{},"queueDatas":[{"brokerName":"broker-a",'
            '"perm":6,"readQueueNums":4,"topicSynFlag":1,"writeQueueNums":4}]}'
        )

    simulate(scenario, brokers=0, profile=Profile.V42)


@pytest.mark.parametrize("profile", [Profile.V49, Profile.V53])
@simulated(brokers=0)
async def test_later_releases_write_strict_json_to_clients_that_ask_for_it(
    stage: SimStage, profile: Profile
) -> None:
    await registered(stage)
    text = await answered(stage, CURRENT_VERSION)
    assert '"brokerAddrs":{"0":"10.0.0.2:10911"}' in text
    assert '"topicSysFlag":1' in text


@pytest.mark.parametrize(
    ("profile", "broker"),
    [
        (Profile.V42, PLAIN),
        (Profile.V49, PLAIN),
        (
            Profile.V53,
            f'{PLAIN[:-1]},"enableActingMaster":false}}',
        ),
    ],
)
@simulated(brokers=0)
async def test_the_table_of_the_cluster_has_what_each_release_writes(
    stage: SimStage, profile: Profile, broker: str
) -> None:
    await registered(stage)
    client = RemotingClient(stage.runtime, serialize_type=SerializeType.JSON)
    answer = await client.invoke(stage.namesrv, RemotingCommand(RequestCode.GET_BROKER_CLUSTER_INFO))
    await client.close()
    assert body_of(answer.require_success()).decode() == (
        f'{{"brokerAddrTable":{{"broker-a":{broker}}},"clusterAddrTable":{{"DefaultCluster":["broker-a"]}}}}'
    )


@simulated(brokers=0, profile=Profile.V53)
async def test_5_3_3_writes_enableActingMaster_which_some_clients_require(stage: SimStage) -> None:
    await registered(stage)
    assert await answered(stage, CURRENT_VERSION) == (
        '{"brokerDatas":[{"brokerAddrs":{"0":"10.0.0.2:10911"},"brokerName":"broker-a",'
        '"cluster":"DefaultCluster","enableActingMaster":false}],"filterServerTable":{},"queueDatas":['
        '{"brokerName":"broker-a","perm":6,"readQueueNums":4,"topicSysFlag":1,"writeQueueNums":4}]}'
    )


@pytest.mark.parametrize(
    "serialize_type", [SerializeType.JSON, SerializeType.ROCKETMQ, SerializeType.MSGPACK]
)
@pytest.mark.parametrize("profile", RELEASES)
def test_rewindmq_clients_read_the_routes_of_every_release(
    simulate: RunScenario, profile: Profile, serialize_type: SerializeType
) -> None:
    async def scenario(stage: SimStage) -> None:
        await registered(stage)
        async with AdminClient(stage.namesrv, runtime=stage.runtime, serialize_type=serialize_type) as admin:
            route = await admin.topics.examine_topic_route_info("T")
        assert [queues.topic_sys_flag for queues in route.queue_datas] == [UNIT]
        assert [broker.broker_addrs for broker in route.broker_datas] == [{0: "10.0.0.2:10911"}]

    simulate(scenario, brokers=0, profile=profile)
