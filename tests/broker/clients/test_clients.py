"""Heartbeats and registries: B22, B24, and the requests that read them."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from rewindmq.broker.clients import memberships
from rewindmq.broker.limits import MAX_GROUPS_PER_CONNECTION
from rewindmq.broker.store.tables.config_file import ConfigFile
from rewindmq.broker.tables import subscription_group, topic_config
from rewindmq.protocol.body.connection import ConsumerConnection
from rewindmq.protocol.body.group import GetConsumerListByGroupResponseBody
from rewindmq.protocol.body.heartbeat import ConsumerData, HeartbeatData, MessageModel, ProducerData
from rewindmq.protocol.body.stats import ConsumeStats, TopicStatsTable
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import RemotingCommand, SerializeType
from rewindmq.protocol.errors import ConnectError
from rewindmq.protocol.header.admin import (
    GetConsumerConnectionListRequestHeader,
    GetConsumeStatsRequestHeader,
    GetTopicStatsInfoRequestHeader,
)
from rewindmq.protocol.header.client import (
    TIME_SCALE,
    GetConsumerListByGroupRequestHeader,
    NotifyConsumerIdsChangedRequestHeader,
    UnregisterClientRequestHeader,
)
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.runtime import TcpNetwork
from rewindmq.race.sim.world import EPOCH_MS
from tests.support.answers import present, remark_of
from tests.support.fixtures import RunScenario, simulated
from tests.support.peer import Peer
from tests.support.stage import ServerStage, SimStage

PROFILES = (Profile.V42, Profile.V49, Profile.V53)


async def members(peer: Peer, group: str = "G") -> list[str]:
    header = GetConsumerListByGroupRequestHeader(group)
    response = await peer.ask(RequestCode.GET_CONSUMER_LIST_BY_GROUP, header)
    return decode_body(response.require_success(), GetConsumerListByGroupResponseBody).consumer_id_list


@pytest.mark.scenario("B22", "v42", "v49", "v53")
@pytest.mark.parametrize("profile", PROFILES)
@simulated()
async def test_B22_a_silent_channel_goes_at_the_first_scan_with_age_over_120(
    stage: SimStage, profile: Profile
) -> None:
    silent, other = stage.peer("c1"), stage.peer("c2")
    await silent.create_topic()
    await silent.heartbeat()
    await stage.at(5.0)
    await other.heartbeat()
    heard = other.count(40)
    for second in range(10, 120, 10):
        await stage.at(second + 0.5)
        await silent.pull(0)
        await other.heartbeat()
    await stage.at(129.9)
    await other.heartbeat()
    assert await members(other) == ["c1", "c2"]
    await stage.at(130.1)
    assert await members(other) == ["c2"]
    assert other.count(40) == heard


@pytest.mark.scenario("B24", "v42", "v49", "v53")
@pytest.mark.parametrize("profile", PROFILES)
@simulated()
async def test_B24_a_new_consumer_is_announced_to_all(stage: SimStage, profile: Profile) -> None:
    first, second = stage.peer("c1"), stage.peer("c2")
    await first.heartbeat()
    await stage.at(1.0)
    heard = first.count(40)
    await second.heartbeat()
    await stage.at(2.0)
    assert (first.count(40) - heard, second.count(40)) == (1, 1)
    notice = second.received[0][1].decode_header(NotifyConsumerIdsChangedRequestHeader)
    assert notice.consumer_group == "G"
    await second.heartbeat()
    await stage.at(3.0)
    assert second.count(40) == 1
    await second.heartbeat(topics=("T", "T2"), sub_version=2)
    await second.heartbeat(topics=("T",), sub_version=3)
    await stage.at(4.0)
    assert second.count(40) == 3


@simulated(notify_consumer_ids_changed_enable=False)
async def test_B24_no_client_is_notified_where_notifications_are_off(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.heartbeat()
    await stage.at(1.0)
    assert peer.received == []


@pytest.mark.parametrize(
    ("profile", "model", "told"),
    [
        (Profile.V49, MessageModel.CLUSTERING, 1),
        (Profile.V49, MessageModel.BROADCASTING, 1),
        (Profile.V53, MessageModel.CLUSTERING, 1),
        (Profile.V53, MessageModel.BROADCASTING, 0),
    ],
)
@simulated()
async def test_B3_a_closed_connection_is_announced(
    stage: SimStage, profile: Profile, model: MessageModel, told: int
) -> None:
    leaver, other = stage.peer("c1"), stage.peer("c2")
    await leaver.heartbeat(model=model)
    await other.heartbeat(model=model)
    heard = other.count(40)
    await leaver.client.close()
    await stage.at(1.0)
    assert other.count(40) - heard == told
    assert await members(other) == ["c2"]


@simulated()
async def test_unregister(stage: SimStage) -> None:
    leaver, other = stage.peer("c1"), stage.peer("c2")
    await leaver.heartbeat(producers=["PG"])
    await other.heartbeat(producers=["PG"])
    heard = other.count(40)
    header = UnregisterClientRequestHeader("c1", "PG", "G")
    (await leaver.ask(RequestCode.UNREGISTER_CLIENT, header)).require_success()
    await stage.at(1.0)
    assert await members(other) == ["c2"]
    assert other.count(40) == heard + 1
    assert [channel.client_id for channel in stage.broker.context.clients.producers.channels("PG")] == ["c2"]
    unknown = UnregisterClientRequestHeader("c1", "Nope", "Nope")
    (await leaver.ask(RequestCode.UNREGISTER_CLIENT, unknown)).require_success()
    header = UnregisterClientRequestHeader("c2", None, "G")
    (await other.ask(RequestCode.UNREGISTER_CLIENT, header)).require_success()
    gone = await other.ask(RequestCode.GET_CONSUMER_LIST_BY_GROUP, GetConsumerListByGroupRequestHeader("G"))
    assert (gone.code, gone.remark) == (1, "no consumer for this group, G")


@simulated(brokers=0)
async def test_unregister_notifies_no_client_where_the_group_disables_it(stage: SimStage) -> None:
    config = stage.root / "broker-a" / "config" / "subscriptionGroup.json"
    config.parent.mkdir(parents=True)
    config.write_text(
        '{"subscriptionGroupTable":{"G":{"groupName":"G","notifyConsumerIdsChangedEnable":false}}}'
    )
    await stage.start_broker()
    leaver, other = stage.peer("c1"), stage.peer("c2")
    await leaver.heartbeat()
    await other.heartbeat()
    header = UnregisterClientRequestHeader("c1", None, "G")
    (await leaver.ask(RequestCode.UNREGISTER_CLIENT, header)).require_success()
    await stage.at(1.0)
    assert await members(other) == ["c2"]
    assert (leaver.count(40), other.count(40)) == (0, 0)


@simulated()
async def test_first_heartbeat_makes_group_and_retry_topic(stage: SimStage) -> None:
    await stage.peer().heartbeat("Fresh")
    topic = present(stage.broker.context.tables.topics.find("%RETRY%Fresh"))
    assert (topic.read_queue_nums, topic.write_queue_nums, topic.perm) == (1, 1, 6)
    text = (stage.root / "broker-a/config/subscriptionGroup.json").read_text()
    assert '"Fresh":{' in text


def test_a_heartbeat_of_many_new_groups_writes_each_table_once(
    simulate: RunScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes: list[str] = []
    save = ConfigFile.save

    def counting(file: ConfigFile, value: object) -> None:
        writes.append(file.path.name)
        save(file, value)

    async def scenario(stage: SimStage) -> None:
        consumers = [ConsumerData(f"G{number}") for number in range(MAX_GROUPS_PER_CONNECTION)]
        peer = stage.peer()
        beat = HeartbeatData(peer.client_id, [], consumers)
        (await peer.ask(RequestCode.HEART_BEAT, body=beat)).require_success()
        assert len(await members(peer, consumers[-1].group_name)) == 1

    monkeypatch.setattr(ConfigFile, "save", counting)
    simulate(scenario)
    assert writes.count("subscriptionGroup.json") <= 2
    assert writes.count("topics.json") <= 2


@pytest.mark.parametrize("group", ["../../x", "", "a@b", "x" * 256])
@simulated()
async def test_bad_group_names_register_nothing(stage: SimStage, group: str) -> None:
    peer = stage.peer()
    for data in (
        HeartbeatData("c1", [], [ConsumerData("Good"), ConsumerData(group)]),
        HeartbeatData("c1", [ProducerData(group)], [ConsumerData("Good")]),
    ):
        response = await peer.ask(RequestCode.HEART_BEAT, body=data)
        assert response.code == ResponseCode.SYSTEM_ERROR
        assert "group" in remark_of(response)
        assert stage.broker.context.clients.consumers.find("Good") is None
        assert not stage.broker.context.clients.producers.channels(group)
        assert list((stage.root / "broker-a/config").iterdir()) == []


@pytest.mark.parametrize(("group", "what"), [("", "producer"), ("Second", "consumer")])
def test_one_group_too_many_is_refused(
    simulate: RunScenario, monkeypatch: pytest.MonkeyPatch, group: str, what: str
) -> None:
    monkeypatch.setattr(memberships, "MAX_GROUPS", 1)

    async def scenario(stage: SimStage) -> None:
        peer = stage.peer()
        for _ in range(2):
            (await peer.heartbeat("First", producers=["First"])).require_success()
        refused = await peer.heartbeat(group, producers=["Second"])
        assert (refused.code, refused.remark) == (1, f"there are 1 {what} groups already")
        assert (await members(peer, "First")) == ["c1"]

    simulate(scenario)


@simulated()
async def test_no_more_topics_and_groups_than_the_tables_hold(
    stage: SimStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer, context = stage.peer(), stage.broker.context
    await peer.create_topic()
    monkeypatch.setattr(topic_config, "MAX_TOPICS", len(context.tables.topics.wrapper().topic_config_table))
    assert (await peer.send("Another")).code == ResponseCode.SYSTEM_ERROR
    await peer.create_topic(write=2)
    assert context.tables.topics.find("Another") is None
    monkeypatch.setattr(subscription_group, "MAX_GROUPS", 0)
    refused = await peer.pull(0, group="Another")
    assert refused.code == ResponseCode.SYSTEM_ERROR
    assert remark_of(refused).endswith("consumer groups already")


@simulated()
async def test_garbage_instead_of_a_heartbeat(stage: SimStage) -> None:
    for body in (None, b"", b"\xc1", b"{}", b"\x80"):
        response = await stage.peer().ask(RequestCode.HEART_BEAT, body=body)
        assert response.code == ResponseCode.SYSTEM_ERROR


@simulated()
async def test_latest_heartbeat_decides_for_the_group(stage: SimStage) -> None:
    first, second = stage.peer("c1"), stage.peer("c2", version=253)
    await first.heartbeat(expression="TagA", sub_version=2)
    await second.heartbeat(model=MessageModel.BROADCASTING, expression="TagB", sub_version=2)
    header = GetConsumerConnectionListRequestHeader("G")
    response = await first.ask(RequestCode.GET_CONSUMER_CONNECTION_LIST, header)
    body = decode_body(response.require_success(), ConsumerConnection)
    assert body.message_model is MessageModel.BROADCASTING
    assert body.subscription_table["T"].sub_string == "TagA"
    assert [(c.client_id, c.language, c.version) for c in body.connection_set] == [
        ("c1", "JAVA", 401),
        ("c2", "JAVA", 253),
    ]
    absent = await first.ask(
        RequestCode.GET_CONSUMER_CONNECTION_LIST, GetConsumerConnectionListRequestHeader("Nope")
    )
    assert (absent.code, absent.remark) == (206, "the consumer group[Nope] not online")


@simulated()
async def test_heartbeat_without_subscriptions_keeps_them(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.heartbeat()
    data = HeartbeatData("c1", [], [ConsumerData("G")], without_sub=True)
    (await peer.ask(RequestCode.HEART_BEAT, body=data)).require_success()
    assert list(present(stage.broker.context.clients.consumers.find("G")).subscriptions) == ["T"]


async def test_a_peer_gets_requests_in_the_serialization_type_of_its_heartbeat(stage: ServerStage) -> None:
    await stage.start_broker()
    for serialize_type in SerializeType:
        peer = stage.peer(f"c{serialize_type}", serialize_type=serialize_type)
        (await peer.heartbeat(f"G{serialize_type}")).require_success()
        assert (await peer.hear(40)).serialize_type == serialize_type


@simulated()
async def test_only_a_client_that_sends_its_time_scale_gets_the_brokers(stage: SimStage) -> None:
    for serialize_type in SerializeType:
        peer = stage.peer(f"c{serialize_type}", serialize_type=serialize_type)
        beat = RemotingCommand(RequestCode.HEART_BEAT, body=HeartbeatData(f"c{serialize_type}"))
        plain = await peer.client.invoke(stage.broker.address, beat)
        assert TIME_SCALE not in plain.require_success().ext
        beat = RemotingCommand(RequestCode.HEART_BEAT, body=HeartbeatData(f"c{serialize_type}"))
        beat.set_ext(TIME_SCALE, "0.5")
        told = await peer.client.invoke(stage.broker.address, beat)
        assert told.require_success().ext[TIME_SCALE] == "1.0"


@simulated(brokers=0)
async def test_port_minus_2_serves_clients_of_4_2(stage: SimStage) -> None:
    broker = await stage.start_broker(listen_port=10_911)
    host, port = broker.address.split(":")
    assert port == "10911"
    peer = stage.peer(address=f"{host}:10909")
    (await peer.send()).require_success()
    await peer.heartbeat()
    await peer.client.close()
    await stage.at(1.0)
    assert broker.context.clients.consumers.find("G") is None


async def test_beside_a_free_port_there_is_a_vip_port_too(stage: ServerStage) -> None:
    broker = await stage.start_broker()
    host, port = broker.address.split(":")
    (await stage.peer(address=f"{host}:{int(port) - 2}").send()).require_success()


def taken(monkeypatch: pytest.MonkeyPatch, times: int) -> list[int]:
    """Refuse the first binds of each port requested by number; return the refused ports."""
    refused: list[int] = []
    listen = TcpNetwork.listen

    async def mostly_listen(self: TcpNetwork, factory: Any, host: str, port: int) -> Any:
        if port and len(refused) < times:
            refused.append(port)
            raise OSError(errno.EADDRINUSE, "taken")
        return await listen(self, factory, host, port)

    monkeypatch.setattr(TcpNetwork, "listen", mostly_listen)
    return refused


async def test_port_0_passes_over_ports_whose_vip_port_is_taken(
    stage: ServerStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = taken(monkeypatch, 3)
    broker = await stage.start_broker()
    host, port = broker.address.split(":")
    assert len(refused) == 3
    assert int(port) - 2 not in refused
    (await stage.peer(address=f"{host}:{int(port) - 2}").send()).require_success()
    for vip_port in refused:
        with pytest.raises(ConnectError):
            await stage.peer(address=f"{host}:{vip_port + 2}").send()


async def test_no_vip_port_anywhere_keeps_no_broker_from_starting(
    stage: ServerStage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    taken(monkeypatch, 1_000)
    await stage.start_broker()
    (await stage.peer().send()).require_success()
    (warning,) = [record.getMessage() for record in caplog.records if "VIP" in record.getMessage()]
    assert warning.startswith("no VIP channel for clients before 4.5: cannot listen on 127.0.0.1:")
    assert warning.endswith(": Address already in use")


@simulated()
async def test_topic_stats(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic(write=2, read=4)
    await stage.at(1.0)
    await peer.fill(3)
    header = GetTopicStatsInfoRequestHeader("T")
    response = await peer.ask(RequestCode.GET_TOPIC_STATS_INFO, header)
    table = decode_body(response.require_success(), TopicStatsTable).offset_table
    assert {
        queue.queue_id: (entry.min_offset, entry.max_offset, entry.last_update_timestamp)
        for queue, entry in table.items()
    } == {0: (0, 3, EPOCH_MS + 1_000), 1: (0, 0, 0)}
    unknown = await peer.ask(RequestCode.GET_TOPIC_STATS_INFO, GetTopicStatsInfoRequestHeader("Nope"))
    assert (unknown.code, unknown.remark) == (17, "topic[Nope] not exist")


@simulated()
async def test_consume_stats_cover_the_read_queues_of_consumed_topics(stage: SimStage) -> None:
    peer = stage.peer()
    await peer.create_topic(write=1, read=2)
    await peer.create_topic("Old")
    for second in (0.5, 1.0, 1.5):
        await stage.at(second)
        await peer.fill(1)
    await peer.commit(2)
    await peer.commit(0, "Old")
    await peer.commit(5, "Unknown")

    async def stats(topic: str | None = None) -> ConsumeStats:
        header = GetConsumeStatsRequestHeader("G", topic)
        response = await peer.ask(RequestCode.GET_CONSUME_STATS, header)
        return decode_body(response.require_success(), ConsumeStats)

    table = (await stats("T")).offset_table
    one, other = (table[MessageQueue("T", "broker-a", queue_id)] for queue_id in (0, 1))
    assert (one.broker_offset, one.consumer_offset) == (3, 2)
    assert one.last_timestamp == EPOCH_MS + 1_000
    assert (other.broker_offset, other.consumer_offset, other.last_timestamp) == (0, 0, 0)
    assert {queue.topic for queue in (await stats()).offset_table} == {"T", "Old"}
    await peer.heartbeat()
    assert {queue.topic for queue in (await stats()).offset_table} == {"T"}
    await stage.at(9.0)
    await peer.pull(0)
    await stage.at(20.5)
    assert (await stats()).consume_tps == pytest.approx(3 / 20)


@pytest.mark.parametrize("profile", PROFILES)
@simulated()
async def test_two_connections_with_one_client_id_are_two_consumers(
    stage: SimStage, profile: Profile
) -> None:
    first, second = stage.peer("same"), stage.peer("same")
    await first.create_topic()
    await first.heartbeat()
    await second.heartbeat()
    # RocketMQ's ConsumerGroupInfo#getAllClientId lists each channel.
    assert await members(first) == ["same", "same"]
    header = GetConsumerConnectionListRequestHeader("G")
    response = await first.ask(RequestCode.GET_CONSUMER_CONNECTION_LIST, header)
    listed = decode_body(response.require_success(), ConsumerConnection).connection_set
    assert [each.client_id for each in listed] == ["same", "same"]
    assert len({each.client_addr for each in listed}) == 2
