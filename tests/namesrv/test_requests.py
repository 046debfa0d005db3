"""The name server's requests one by one, on real sockets: responses, refusals and bad input."""

from __future__ import annotations

import contextlib
import struct
import zlib
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewindmq.namesrv.registration_body import MAX_UNPACKED_BYTES, decode_register_broker_body
from rewindmq.protocol.body.kv import KVTable
from rewindmq.protocol.body.registration import DataVersion, RegisterBrokerBody
from rewindmq.protocol.body.topic_list import TopicList
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import RemotingCommand, SerializeType
from rewindmq.protocol.errors import BodyError
from rewindmq.protocol.header.namesrv import (
    AddWritePermOfBrokerRequestHeader,
    DeleteKVConfigRequestHeader,
    DeleteTopicFromNamesrvRequestHeader,
    GetKVConfigRequestHeader,
    GetKVConfigResponseHeader,
    GetKVListByNamespaceRequestHeader,
    GetTopicsByClusterRequestHeader,
    PutKVConfigRequestHeader,
    QueryDataVersionRequestHeader,
    QueryDataVersionResponseHeader,
    RegisterBrokerRequestHeader,
    RegisterBrokerResponseHeader,
    UnRegisterBrokerRequestHeader,
    WipeWritePermOfBrokerRequestHeader,
    WipeWritePermOfBrokerResponseHeader,
)
from rewindmq.protocol.remoting.client import RemotingClient
from tests.namesrv.connected import connected
from tests.support.answers import body_of, remark_of
from tests.support.stage import ServerStage


def identity(**changes: Any) -> dict[str, Any]:
    return {
        "broker_name": "broker-a",
        "broker_addr": "10.0.0.2:10911",
        "cluster_name": "DefaultCluster",
        "broker_id": 0,
        **changes,
    }


async def test_104_forgets_the_broker_and_twice_is_fine(stage: ServerStage) -> None:
    _, broker, client = await connected(stage)
    await broker.register()
    for _ in range(2):
        header = UnRegisterBrokerRequestHeader(**identity())
        (await broker.ask(RequestCode.UNREGISTER_BROKER, header)).require_success()
    info = await client.cluster_info()
    assert (info.broker_addr_table, info.cluster_addr_table) == ({}, {})
    assert (await client.find_route()).code == ResponseCode.TOPIC_NOT_EXIST


async def test_104_of_the_master_leaves_the_slave_and_its_queues(stage: ServerStage) -> None:
    _, broker, client = await connected(stage)
    await broker.register()
    await broker.register("10.0.0.3:10911", broker_id=1)
    header = UnRegisterBrokerRequestHeader(**identity())
    await broker.ask(RequestCode.UNREGISTER_BROKER, header)
    route = await client.route()
    assert [broker.broker_addrs for broker in route.broker_datas] == [{1: "10.0.0.3:10911"}]
    assert [(queues.read_queue_nums, queues.perm) for queues in route.queue_datas] == [(4, 6)]


async def test_103_returns_the_masters_address_to_a_slave(stage: ServerStage) -> None:
    _, broker, _ = await connected(stage)
    await broker.register(ha_address="10.0.0.2:10912")
    answer = await broker.register("10.0.0.3:10911", broker_id=1)
    header = answer.decode_header(RegisterBrokerResponseHeader)
    assert (header.master_addr, header.ha_server_addr) == ("10.0.0.2:10911", "10.0.0.2:10912")


async def test_103_carries_the_order_topics(stage: ServerStage) -> None:
    _, broker, client = await connected(stage)
    assert (await broker.register()).body is None
    put = PutKVConfigRequestHeader(namespace="ORDER_TOPIC_CONFIG", key="T", value="broker-a:4")
    await client.ask(RequestCode.PUT_KV_CONFIG, put)
    assert decode_body(await broker.register(), KVTable).table == {"T": "broker-a:4"}


async def test_206_224_304_list_topics(stage: ServerStage) -> None:
    _, broker, client = await connected(stage)
    await broker.register()
    await broker.register("10.0.0.3:10911", name="broker-b", cluster="Other", topics=("U",))

    async def topics(code: int, header: Any = None) -> TopicList:
        answer = await client.ask(code, header)
        return decode_body(answer.require_success(), TopicList)

    assert (await topics(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)).topic_list == ["T", "TBW102", "U"]
    by_cluster = [
        (
            await topics(RequestCode.GET_TOPICS_BY_CLUSTER, GetTopicsByClusterRequestHeader(cluster=name))
        ).topic_list
        for name in ("DefaultCluster", "Other", "Unknown")
    ]
    assert by_cluster == [["T", "TBW102"], ["U"], []]
    system = await topics(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS)
    assert set(system.topic_list) == {"DefaultCluster", "Other", "broker-a", "broker-b"}
    assert system.broker_addr == "10.0.0.2:10911"


async def test_205_and_327_flip_the_write_bit_until_the_next_new_version(stage: ServerStage) -> None:
    _, broker, client = await connected(stage)
    await broker.register()

    async def perm() -> int:
        return int((await client.route()).queue_datas[0].perm)

    wipe = WipeWritePermOfBrokerRequestHeader(broker_name="broker-a")
    answer = await client.ask(RequestCode.WIPE_WRITE_PERM_OF_BROKER, wipe)
    assert answer.decode_header(WipeWritePermOfBrokerResponseHeader).wipe_topic_count == 2
    assert await perm() == 4
    await broker.register()
    assert await perm() == 4
    await broker.register(version=(1, 2))
    assert await perm() == 6
    await client.ask(RequestCode.WIPE_WRITE_PERM_OF_BROKER, wipe)
    add = AddWritePermOfBrokerRequestHeader(broker_name="broker-a")
    await client.ask(RequestCode.ADD_WRITE_PERM_OF_BROKER, add)
    assert await perm() == 6


async def test_216_deletes_in_one_cluster_or_everywhere(stage: ServerStage) -> None:
    _, broker, client = await connected(stage)
    await broker.register()
    await broker.register("10.0.0.3:10911", name="broker-b", cluster="Other")
    delete = DeleteTopicFromNamesrvRequestHeader(topic="T", cluster_name="Other")
    (await client.ask(RequestCode.DELETE_TOPIC_IN_NAMESRV, delete)).require_success()
    assert [queues.broker_name for queues in (await client.route()).queue_datas] == ["broker-a"]
    delete = DeleteTopicFromNamesrvRequestHeader(topic="T")
    (await client.ask(RequestCode.DELETE_TOPIC_IN_NAMESRV, delete)).require_success()
    assert (await client.find_route()).code == ResponseCode.TOPIC_NOT_EXIST


async def test_322_says_whether_the_version_differs(stage: ServerStage) -> None:
    _, broker, _ = await connected(stage)
    await broker.register(version=(7, 3))
    header = QueryDataVersionRequestHeader(**identity())

    async def query(version: tuple[int, int]) -> tuple[bool, DataVersion]:
        body = DataVersion(timestamp=version[0], counter=version[1])
        answer = await broker.ask(RequestCode.QUERY_DATA_VERSION, header, body)
        changed = answer.require_success().decode_header(QueryDataVersionResponseHeader).changed
        return changed, decode_body(answer, DataVersion)

    held = DataVersion(timestamp=7, counter=3)
    assert await query((7, 3)) == (False, held)
    assert await query((7, 4)) == (True, held)


async def test_kv_put_get_list_delete(stage: ServerStage) -> None:
    _, _, client = await connected(stage)
    ask = client.ask
    get = GetKVConfigRequestHeader(namespace="ns", key="k")
    missing = await ask(RequestCode.GET_KV_CONFIG, get)
    assert missing.code == ResponseCode.QUERY_NOT_FOUND
    assert missing.remark == "No config item, Namespace: ns Key: k"
    every = GetKVListByNamespaceRequestHeader(namespace="ns")
    assert (await ask(RequestCode.GET_KVLIST_BY_NAMESPACE, every)).code == ResponseCode.QUERY_NOT_FOUND
    put = PutKVConfigRequestHeader(namespace="ns", key="k", value="v")
    (await ask(RequestCode.PUT_KV_CONFIG, put)).require_success()
    assert (await ask(RequestCode.GET_KV_CONFIG, get)).decode_header(GetKVConfigResponseHeader).value == "v"
    assert decode_body(await ask(RequestCode.GET_KVLIST_BY_NAMESPACE, every), KVTable).table == {"k": "v"}
    for _ in range(2):
        delete = DeleteKVConfigRequestHeader(namespace="ns", key="k")
        (await ask(RequestCode.DELETE_KV_CONFIG, delete)).require_success()
    assert (await ask(RequestCode.GET_KV_CONFIG, get)).code == ResponseCode.QUERY_NOT_FOUND


@pytest.mark.parametrize("code", [9, 11, 211, 212, 222, 999_999])
async def test_unknown_codes_return_3(stage: ServerStage, code: int) -> None:
    _, _, client = await connected(stage)
    assert (await client.ask(code)).code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED


@pytest.mark.parametrize(
    "code",
    [
        RequestCode.PUT_KV_CONFIG,
        RequestCode.GET_KV_CONFIG,
        RequestCode.DELETE_KV_CONFIG,
        RequestCode.REGISTER_BROKER,
        RequestCode.UNREGISTER_BROKER,
        RequestCode.GET_ROUTEINFO_BY_TOPIC,
        RequestCode.WIPE_WRITE_PERM_OF_BROKER,
        RequestCode.QUERY_DATA_VERSION,
    ],
)
async def test_missing_fields_return_1_and_the_server_continues(stage: ServerStage, code: int) -> None:
    _, _, client = await connected(stage)
    answer = await client.ask(code)
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert "missing required field" in remark_of(answer)
    assert (await client.cluster_info()).broker_addr_table == {}


@pytest.mark.parametrize("topic", ["../../x", "a b", "", "T\n", "ü", "x" * 128])
async def test_105_names_no_topic_can_have(stage: ServerStage, topic: str) -> None:
    _, _, client = await connected(stage)
    answer = await client.find_route(topic)
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert remark_of(answer).startswith("The specified topic")


@pytest.mark.parametrize(
    "bad",
    [
        {"name": "../../x"},
        {"name": ""},
        {"cluster": "a/b"},
        {"cluster": "c" * 128},
        {"address": "nohost"},
        {"address": "host:0"},
        {"address": "host:65536"},
        {"address": "a b:1"},
        {"address": "h" * 300 + ":1"},
        {"ha_address": "nohost"},
        {"broker_id": -1},
        {"topics": ("../x", "T")},
    ],
)
async def test_103_bad_names_and_addresses_change_nothing(stage: ServerStage, bad: dict[str, Any]) -> None:
    namesrv, broker, client = await connected(stage)
    answer = await broker.register(**bad)
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert "not " in remark_of(answer)
    assert "\n" not in remark_of(answer)
    info = await client.cluster_info()
    assert (info.broker_addr_table, info.cluster_addr_table) == ({}, {})
    assert namesrv.context.routes.topics() == []


def registration_header(**changes: Any) -> RegisterBrokerRequestHeader:
    return RegisterBrokerRequestHeader(**identity(ha_server_addr="", **changes))


@pytest.mark.parametrize(
    ("body", "compressed"),
    [
        (b"\xff\xff garbage", False),
        (b"\x90", False),
        (b"\x91" * 5_000, False),
        (b"not zlib", True),
        (zlib.compress(b""), True),
        (zlib.compress(b"\x7f\xff\xff\xff"), True),
        (zlib.compress(b"\xff\xff\xff\xff"), True),
        (zlib.compress(struct.pack(">i", 200_006) + b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"), True),
    ],
)
async def test_103_hostile_bodies_change_nothing(stage: ServerStage, body: bytes, compressed: bool) -> None:
    _, broker, client = await connected(stage)
    answer = await broker.ask(RequestCode.REGISTER_BROKER, registration_header(compressed=compressed), body)
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert remark_of(answer).startswith("compressed registration: ") is compressed
    assert (await client.cluster_info()).cluster_addr_table == {}


async def test_103_queue_numbers_have_a_bound(stage: ServerStage) -> None:
    _, broker, client = await connected(stage)
    topic = {"topicName": "T", "readQueueNums": 2**31 - 1, "writeQueueNums": 4}
    body = msgspec.msgpack.encode(
        {"topicConfigSerializeWrapper": {"topicConfigTable": {"T": topic}, "dataVersion": {}}}
    )
    answer = await broker.ask(RequestCode.REGISTER_BROKER, registration_header(), body)
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert "queue numbers" in remark_of(answer)
    assert (await client.cluster_info()).cluster_addr_table == {}


async def test_103_without_body_registers_the_broker_alone(stage: ServerStage) -> None:
    namesrv, broker, client = await connected(stage)
    answer = await broker.ask(RequestCode.REGISTER_BROKER, registration_header())
    answer.require_success()
    assert list((await client.cluster_info()).broker_addr_table) == ["broker-a"]
    assert namesrv.context.routes.topics() == []


def compressed_body(topics: list[str], version: bytes = b'{"counter":3,"timestamp":5}') -> bytes:
    blocks = [struct.pack(">i", len(version)), version, struct.pack(">i", len(topics))]
    for text in topics:
        blocks += [struct.pack(">i", len(text)), text.encode()]
    blocks += [struct.pack(">i", 2), b"[]"]
    return zlib.compress(b"".join(blocks))


async def test_103_compressed_body(stage: ServerStage) -> None:
    _, broker, client = await connected(stage)
    body = compressed_body(["T 8 4 6 SINGLE_TAG", "U 1 1 7 MULTI_TAG {}"])
    header = registration_header(compressed=True, body_crc32=zlib.crc32(body) & 0x7FFFFFFF)
    (await broker.ask(RequestCode.REGISTER_BROKER, header, body)).require_success()
    (queues,) = (await client.route()).queue_datas
    assert (queues.read_queue_nums, queues.write_queue_nums, queues.perm) == (8, 4, 6)
    await client.route("U")


def test_103_compressed_bomb_is_refused() -> None:
    bomb = zlib.compress(b"\0" * (MAX_UNPACKED_BYTES + 1))
    request = RemotingCommand(RequestCode.REGISTER_BROKER, body=bomb)
    with pytest.raises(BodyError, match="more than"):
        decode_register_broker_body(request, compressed=True)


@settings(derandomize=True, deadline=None)
@given(st.binary(max_size=200), st.booleans(), st.sampled_from(list(SerializeType)))
def test_any_body_decodes_or_is_refused(data: bytes, packed: bool, serialize_type: SerializeType) -> None:
    body = zlib.compress(data) if packed else data
    request = RemotingCommand(RequestCode.REGISTER_BROKER, body=body or None, serialize_type=serialize_type)
    with contextlib.suppress(BodyError):
        decoded = decode_register_broker_body(request, compressed=packed)
        assert isinstance(decoded, RegisterBrokerBody)


async def test_json_clients_get_json(stage: ServerStage) -> None:
    """A RocketMQ client sends JSON; the name server responds in JSON from the same tables."""
    namesrv, broker, _ = await connected(stage)
    await broker.register()
    client = RemotingClient(stage.runtime, serialize_type=SerializeType.JSON)
    try:
        command = RemotingCommand(RequestCode.GET_ROUTEINFO_BY_TOPIC, ext_fields={"topic": "T"}, version=1)
        answer = await client.invoke(namesrv.address, command)
        assert answer.serialize_type is SerializeType.JSON
        assert b'"brokerAddrs":{0:"10.0.0.2:10911"}' in body_of(answer)
        command = RemotingCommand(RequestCode.GET_ROUTEINFO_BY_TOPIC, ext_fields={"topic": "T"}, version=401)
        answer = await client.invoke(namesrv.address, command)
        assert b'"brokerAddrs":{"0":"10.0.0.2:10911"}' in body_of(answer)
    finally:
        await client.close()


async def test_319_lists_the_configuration_as_it_counts(stage: ServerStage) -> None:
    _, _, client = await connected(stage)
    answer = await client.ask(RequestCode.GET_NAMESRV_CONFIG)
    lines = body_of(answer.require_success()).decode().splitlines()
    assert {"orderMessageEnable=false", "profile=v49"} <= set(lines)


async def test_318_counts_at_once(stage: ServerStage) -> None:
    _, broker, client = await connected(stage)
    await broker.register()
    put = PutKVConfigRequestHeader(namespace="ORDER_TOPIC_CONFIG", key="T", value="broker-a:4")
    await client.ask(RequestCode.PUT_KV_CONFIG, put)
    for text, told in ((b"orderMessageEnable=true", "broker-a:4"), (b"orderMessageEnable=false", None)):
        answer = await client.ask(RequestCode.UPDATE_NAMESRV_CONFIG, body=text)
        answer.require_success()
        assert (await client.route("T")).order_topic_conf == told


async def test_318_changes_only_keys_that_can_change_at_run_time(stage: ServerStage) -> None:
    _, _, client = await connected(stage)

    async def shown() -> list[str]:
        answer = await client.ask(RequestCode.GET_NAMESRV_CONFIG)
        return body_of(answer.require_success()).decode().splitlines()

    async def change(text: bytes | None) -> RemotingCommand:
        return await client.ask(RequestCode.UPDATE_NAMESRV_CONFIG, body=text)

    (await change(b"orderMessageEnable=true\n")).require_success()
    assert "orderMessageEnable=true" in await shown()
    kept = await shown()
    for text, remark in (
        (
            b"listenPort=1\norderMessageEnable=false",
            "listenPort cannot be changed while the name server runs",
        ),
        (b"nix=1", "nix cannot be changed"),
        (b"orderMessageEnable=perhaps", "string2Properties error: "),
        (b"\xff=1", "string2Properties error: "),
        (b"x" * 65_537, "more than 65536 bytes of configuration"),
        (None, "nothing cannot be changed"),
    ):
        answer = await change(text)
        assert answer.code == ResponseCode.SYSTEM_ERROR
        assert remark_of(answer).startswith(remark)
        assert await shown() == kept
