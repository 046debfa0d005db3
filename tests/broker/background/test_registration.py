"""Registration at name servers: when the broker registers, what it sends, and what happens without one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rewindmq.broker.background import registration_body
from rewindmq.protocol import frame
from rewindmq.protocol.body.cluster import ClusterInfo
from rewindmq.protocol.body.kv import KVTable
from rewindmq.protocol.body.registration import RegisterBrokerBody
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.codec.body import PreparedBody, decode_body, encode_body
from rewindmq.protocol.command import RemotingCommand, SerializeType
from rewindmq.protocol.header.admin import CreateTopicRequestHeader
from rewindmq.protocol.header.namesrv import RegisterBrokerRequestHeader
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.remoting.server import RemotingServer
from tests.support.answers import present
from tests.support.fixtures import RunScenario, simulated
from tests.support.stage import ServerStage, SimStage


class RecordingNameServer:
    """A name server that records its requests, and responds with an ORDER_TOPIC_CONFIG table."""

    def __init__(self, stage: SimStage, host: str) -> None:
        runtime = stage.new_runtime(host)
        self._clock = runtime.clock
        self._timers = runtime.timers
        handlers = dict.fromkeys((103, 104), self._keep)
        self.server = RemotingServer(runtime, handlers)
        self.host = host
        self.received: list[tuple[float, RemotingCommand]] = []
        self.ordered: dict[str, str] = {}
        self.delay = 0.0

    async def start(self, port: int = 9876) -> str:
        await self.server.start(self.host, port)
        return f"{self.host}:{port}"

    async def _keep(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        self.received.append((self._clock.monotonic(), request))
        await self._timers.sleep(self.delay)
        return RemotingCommand(0, body=KVTable(self.ordered))

    def times(self, code: int = 103) -> list[float]:
        return [round(at, 2) for at, request in self.received if request.code == code]


@simulated(brokers=0)
async def test_A2_registers_at_start_at_10_seconds_and_then_every_30(stage: SimStage) -> None:
    recorders = [RecordingNameServer(stage, f"10.0.5.{number}") for number in (1, 2)]
    addresses = [await recorder.start() for recorder in recorders]
    broker = await stage.start_broker(namesrv_addr=";".join(addresses))
    await stage.at(71.0)
    for recorder in recorders:
        assert recorder.times() == [0.0, 10.0, 40.0, 70.0]
        request = recorder.received[0][1]
        header = request.decode_header(RegisterBrokerRequestHeader)
        assert (header.broker_name, header.broker_addr) == ("broker-a", broker.address)
        assert (header.cluster_name, header.broker_id) == ("DefaultCluster", 0)
        assert not request.is_oneway
        body = decode_body(request, RegisterBrokerBody).topic_config_serialize_wrapper
        assert body.topic_config_table["TBW102"].perm == 7
        assert {"DefaultCluster", "broker-a", "SCHEDULE_TOPIC_XXXX"} <= body.topic_config_table.keys()
    await broker.close()
    for recorder in recorders:
        assert recorder.times(104) == [71.0]
        await recorder.server.close()


@pytest.mark.parametrize(("period_ms", "second"), [(1, 20.0), (25_000, 35.0), (86_400_000, 70.0)])
@simulated(brokers=0)
async def test_A2_the_period_is_kept_between_10_and_60_seconds(
    stage: SimStage, period_ms: int, second: float
) -> None:
    recorder = RecordingNameServer(stage, "10.0.5.1")
    await stage.start_broker(namesrv_addr=await recorder.start(), register_name_server_period=period_ms)
    await stage.at(71.0)
    assert recorder.times()[1:3] == [10.0, second]
    await recorder.server.close()


@simulated(brokers=0)
async def test_A2_a_new_topic_is_announced_oneway_and_an_administrator_s_before_the_answer(
    stage: SimStage,
) -> None:
    recorder = RecordingNameServer(stage, "10.0.5.1")
    await stage.start_broker(namesrv_addr=await recorder.start())
    peer = stage.peer()
    await stage.at(1.0)
    await peer.create_topic()
    assert recorder.times() == [0.0, 1.0]
    await stage.at(2.0)
    await peer.send("N")
    await stage.at(3.0)
    assert recorder.times() == [0.0, 1.0, 2.0]
    last = recorder.received[-1][1]
    assert last.is_oneway
    wrapper = decode_body(last, RegisterBrokerBody).topic_config_serialize_wrapper
    assert {"T", "N"} <= wrapper.topic_config_table.keys()
    assert wrapper.data_version.counter == 2
    await recorder.server.close()


def test_a_new_topic_is_announced_to_a_name_server_without_msgpack_that_was_away(
    simulate: RunScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It closes the connection on an unknown request; the sender of a oneway request gets no error."""
    monkeypatch.delitem(frame._DECODE_HEADER, SerializeType.MSGPACK)

    async def scenario(stage: SimStage) -> None:
        recorder = RecordingNameServer(stage, "10.0.5.1")
        await stage.start_broker(namesrv_addr=await recorder.start())
        await stage.at(5.0)
        await recorder.server.close()
        await stage.at(12.0)
        recorder = RecordingNameServer(stage, "10.0.5.1")
        await recorder.start()
        await stage.at(15.0)
        await stage.peer().send("N")
        await stage.at(16.0)
        assert recorder.times() == [15.0]
        await recorder.server.close()

    simulate(scenario, brokers=0)


@simulated(brokers=0)
async def test_A2_topics_of_the_order_table_are_marked_and_the_others_cleared(stage: SimStage) -> None:
    recorder = RecordingNameServer(stage, "10.0.5.1")
    broker = await stage.start_broker(namesrv_addr=await recorder.start())
    await stage.peer().create_topic()
    recorder.ordered = {"T": "broker-a:4"}
    await stage.at(11.0)
    assert present(broker.context.tables.topics.find("T")).order
    recorder.ordered = {}
    await stage.at(41.0)
    assert not present(broker.context.tables.topics.find("T")).order
    await recorder.server.close()


@simulated(brokers=0)
async def test_A2_a_name_server_without_an_order_table_leaves_the_marks_alone(stage: SimStage) -> None:
    namesrv = await stage.start_namesrv()
    broker = await stage.start_broker(namesrv_addr=namesrv.address, profile=Profile.V53)
    header = CreateTopicRequestHeader("T", "TBW102", 4, 4, 6, "SINGLE_TAG", order=True)
    response = await stage.peer().ask(RequestCode.UPDATE_AND_CREATE_TOPIC, header)
    response.require_success()
    await stage.at(41.0)
    assert present(broker.context.tables.topics.find("T")).order


@simulated(brokers=0)
async def test_B01_a_topic_made_while_the_broker_registers_for_the_first_time_is_announced_too(
    stage: SimStage,
) -> None:
    recorder = RecordingNameServer(stage, "10.0.5.1")
    recorder.delay = 3.0
    starting = asyncio.ensure_future(
        stage.start_broker(namesrv_addr=await recorder.start(), listen_port=10_911)
    )
    await stage.at(1.0)
    (await stage.peer(address="10.0.1.1:10911").send("N")).require_success()
    await starting
    await stage.at(5.0)
    tables = [
        decode_body(request, RegisterBrokerBody).topic_config_serialize_wrapper.topic_config_table
        for _, request in recorder.received
    ]
    assert ["N" in table for table in tables] == [False, True]
    await stage.broker.close()
    await recorder.server.close()


@pytest.mark.parametrize(("permission", "perm"), [(6, 6), (4, 4), (2, 2)])
def test_A2_a_broker_with_less_permission_says_so_for_every_topic(
    simulate: RunScenario, permission: int, perm: int
) -> None:
    async def scenario(stage: SimStage) -> None:
        table = stage.broker.context.tables.topics.wrapper().topic_config_table
        assert table["BenchmarkTest"].perm == perm

    simulate(scenario, broker_permission=permission)


def test_registration_at_an_absent_name_server_is_retried_with_one_log_line(
    simulate: RunScenario, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "rewindmq.broker")

    async def scenario(stage: SimStage) -> None:
        await stage.start_broker(namesrv_addr="10.0.5.1:9876;10.0.5.2:9876")
        (await stage.peer().send()).require_success()
        await stage.at(101.0)
        recorder = RecordingNameServer(stage, "10.0.5.1")
        await recorder.start()
        await stage.at(131.0)
        assert recorder.times() == [130.0]
        await recorder.server.close()

    simulate(scenario, brokers=0)
    lines = [line for line in caplog.messages if "name server" in line]
    assert len([line for line in lines if line.startswith("not registered at name server 10.0.5.1")]) == 1
    assert len([line for line in lines if line.startswith("not registered at name server 10.0.5.2")]) == 1
    assert "registered at name server 10.0.5.1:9876" in lines


async def test_a_real_name_server_routes_to_a_real_broker_until_it_stops(stage: ServerStage) -> None:
    namesrv = await stage.start_namesrv()
    broker = await stage.start_broker(namesrv_addr=namesrv.address)
    asker = stage.peer("asker", namesrv.address)

    async def cluster() -> dict[str, Any]:
        answer = await asker.ask(RequestCode.GET_BROKER_CLUSTER_INFO)
        return decode_body(answer.require_success(), ClusterInfo).broker_addr_table

    assert (await cluster())["broker-a"].broker_addrs == {0: broker.address}
    await broker.close()
    assert await cluster() == {}


def test_many_topics_are_encoded_before_they_are_sent(
    simulate: RunScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker learns the serialization type of its name server by the first registration."""
    monkeypatch.setattr(registration_body, "_SMALL_TOPICS", 3)
    monkeypatch.delitem(frame._DECODE_HEADER, SerializeType.MSGPACK)
    sent: list[tuple[SerializeType, bool]] = []

    def watched(content: Any, kind: SerializeType, standard_json: bool = False) -> bytes:
        if isinstance(content, PreparedBody):
            sent.append((kind, kind in content.encoded))
        return encode_body(content, kind, standard_json)

    monkeypatch.setattr(frame, "encode_body", watched)

    async def scenario(stage: SimStage) -> None:
        recorder = RecordingNameServer(stage, "10.0.5.1")
        await stage.start_broker(namesrv_addr=await recorder.start())
        await stage.at(45.0)
        assert sent == [
            (SerializeType.MSGPACK, True),
            (SerializeType.JSON, False),
            (SerializeType.JSON, True),
            (SerializeType.JSON, True),
        ]
        first, _, last = (decode_body(request, RegisterBrokerBody) for _, request in recorder.received)
        assert first == last
        assert len(first.topic_config_serialize_wrapper.topic_config_table) > 3

    simulate(scenario, brokers=0)
