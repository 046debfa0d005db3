"""The name server's requests one by one, on real sockets: answers, refusals, and what bad input leaves."""

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
from rewindmq.protocol.body_codec import decode_body
from rewindmq.protocol.code import RequestCode, ResponseCode
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


def identity(**changes: Any) -> dict[str, Any]:
    return {
        "broker_name": "broker-a",
        "broker_addr": "10.0.0.2:10911",
        "cluster_name": "DefaultCluster",
        "broker_id": 0,
        **changes,
    }


async def test_104_forgets_the_broker_and_twice_is_fine(real_stage) -> None:
    await real_stage.broker.register()
    for _ in range(2):
        header = UnRegisterBrokerRequestHeader(**identity())
        (await real_stage.broker.ask(RequestCode.UNREGISTER_BROKER, header)).require_success()
    info = await real_stage.client.cluster_info()
    assert (info.broker_addr_table, info.cluster_addr_table) == ({}, {})
    assert (await real_stage.client.find_route()).code == ResponseCode.TOPIC_NOT_EXIST


async def test_104_of_the_master_leaves_the_slave_and_its_queues(real_stage) -> None:
    await real_stage.broker.register()
    await real_stage.broker.register("10.0.0.3:10911", broker_id=1)
    header = UnRegisterBrokerRequestHeader(**identity())
    await real_stage.broker.ask(RequestCode.UNREGISTER_BROKER, header)
    route = await real_stage.client.route()
    assert [broker.broker_addrs for broker in route.broker_datas] == [{1: "10.0.0.3:10911"}]
    assert [(queues.read_queue_nums, queues.perm) for queues in route.queue_datas] == [(4, 6)]


async def test_103_tells_a_slave_its_master(real_stage) -> None:
    await real_stage.broker.register(ha_address="10.0.0.2:10912")
    answer = await real_stage.broker.register("10.0.0.3:10911", broker_id=1)
    header = answer.decode_header(RegisterBrokerResponseHeader)
    assert (header.master_addr, header.ha_server_addr) == ("10.0.0.2:10911", "10.0.0.2:10912")


async def test_103_carries_the_order_topics(real_stage) -> None:
    assert (await real_stage.broker.register()).body is None
    put = PutKVConfigRequestHeader(namespace="ORDER_TOPIC_CONFIG", key="T", value="broker-a:4")
    await real_stage.client.ask(RequestCode.PUT_KV_CONFIG, put)
    assert decode_body(await real_stage.broker.register(), KVTable).table == {"T": "broker-a:4"}


async def test_206_224_304_list_topics(real_stage) -> None:
    await real_stage.broker.register()
    await real_stage.broker.register("10.0.0.3:10911", name="broker-b", cluster="Other", topics=("U",))

    async def topics(code: int, header: Any = None) -> TopicList:
        answer = await real_stage.client.ask(code, header)
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


async def test_205_and_327_flip_the_write_bit_until_the_next_new_version(real_stage) -> None:
    await real_stage.broker.register()

    async def perm() -> int:
        return int((await real_stage.client.route()).queue_datas[0].perm)

    wipe = WipeWritePermOfBrokerRequestHeader(broker_name="broker-a")
    answer = await real_stage.client.ask(RequestCode.WIPE_WRITE_PERM_OF_BROKER, wipe)
    assert answer.decode_header(WipeWritePermOfBrokerResponseHeader).wipe_topic_count == 2
    assert await perm() == 4
    await real_stage.broker.register()
    assert await perm() == 4
    await real_stage.broker.register(version=(1, 2))
    assert await perm() == 6
    await real_stage.client.ask(RequestCode.WIPE_WRITE_PERM_OF_BROKER, wipe)
    add = AddWritePermOfBrokerRequestHeader(broker_name="broker-a")
    await real_stage.client.ask(RequestCode.ADD_WRITE_PERM_OF_BROKER, add)
    assert await perm() == 6


async def test_216_deletes_in_one_cluster_or_everywhere(real_stage) -> None:
    await real_stage.broker.register()
    await real_stage.broker.register("10.0.0.3:10911", name="broker-b", cluster="Other")
    delete = DeleteTopicFromNamesrvRequestHeader(topic="T", cluster_name="Other")
    (await real_stage.client.ask(RequestCode.DELETE_TOPIC_IN_NAMESRV, delete)).require_success()
    assert [queues.broker_name for queues in (await real_stage.client.route()).queue_datas] == ["broker-a"]
    delete = DeleteTopicFromNamesrvRequestHeader(topic="T")
    (await real_stage.client.ask(RequestCode.DELETE_TOPIC_IN_NAMESRV, delete)).require_success()
    assert (await real_stage.client.find_route()).code == ResponseCode.TOPIC_NOT_EXIST


async def test_322_says_whether_the_version_differs(real_stage) -> None:
    await real_stage.broker.register(version=(7, 3))
    header = QueryDataVersionRequestHeader(**identity())

    async def query(version: tuple[int, int]) -> tuple[bool, DataVersion]:
        body = DataVersion(timestamp=version[0], counter=version[1])
        answer = await real_stage.broker.ask(RequestCode.QUERY_DATA_VERSION, header, body)
        changed = answer.require_success().decode_header(QueryDataVersionResponseHeader).changed
        return changed, decode_body(answer, DataVersion)

    held = DataVersion(timestamp=7, counter=3)
    assert await query((7, 3)) == (False, held)
    assert await query((7, 4)) == (True, held)


async def test_kv_put_get_list_delete(real_stage) -> None:
    ask = real_stage.client.ask
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
async def test_unknown_codes_are_answered_3(real_stage, code: int) -> None:
    assert (await real_stage.client.ask(code)).code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED


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
async def test_missing_fields_are_answered_1_and_the_server_lives_on(real_stage, code: int) -> None:
    answer = await real_stage.client.ask(code)
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert "missing required field" in answer.remark
    assert (await real_stage.client.cluster_info()).broker_addr_table == {}


@pytest.mark.parametrize("topic", ["../../x", "a b", "", "T\n", "ü", "x" * 128])
async def test_105_names_no_topic_can_have(real_stage, topic: str) -> None:
    answer = await real_stage.client.find_route(topic)
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert answer.remark.startswith("The specified topic")


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
async def test_103_bad_names_and_addresses_change_nothing(real_stage, bad: dict[str, Any]) -> None:
    answer = await real_stage.broker.register(**bad)
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert "not " in answer.remark
    assert "\n" not in answer.remark
    info = await real_stage.client.cluster_info()
    assert (info.broker_addr_table, info.cluster_addr_table) == ({}, {})
    assert real_stage.namesrv.context.routes.topics() == []


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
async def test_103_hostile_bodies_change_nothing(real_stage, body: bytes, compressed: bool) -> None:
    answer = await real_stage.broker.ask(
        RequestCode.REGISTER_BROKER, registration_header(compressed=compressed), body
    )
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert answer.remark.startswith("compressed registration: ") is compressed
    assert (await real_stage.client.cluster_info()).cluster_addr_table == {}


async def test_103_queue_numbers_have_a_bound(real_stage) -> None:
    topic = {"topicName": "T", "readQueueNums": 2**31 - 1, "writeQueueNums": 4}
    body = msgspec.msgpack.encode(
        {"topicConfigSerializeWrapper": {"topicConfigTable": {"T": topic}, "dataVersion": {}}}
    )
    answer = await real_stage.broker.ask(RequestCode.REGISTER_BROKER, registration_header(), body)
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert "queue numbers" in answer.remark
    assert (await real_stage.client.cluster_info()).cluster_addr_table == {}


async def test_103_without_body_registers_the_broker_alone(real_stage) -> None:
    answer = await real_stage.broker.ask(RequestCode.REGISTER_BROKER, registration_header())
    answer.require_success()
    assert list((await real_stage.client.cluster_info()).broker_addr_table) == ["broker-a"]
    assert real_stage.namesrv.context.routes.topics() == []


def compressed_body(topics: list[str], version: bytes = b'{"counter":3,"timestamp":5}') -> bytes:
    blocks = [struct.pack(">i", len(version)), version, struct.pack(">i", len(topics))]
    for text in topics:
        blocks += [struct.pack(">i", len(text)), text.encode()]
    blocks += [struct.pack(">i", 2), b"[]"]
    return zlib.compress(b"".join(blocks))


async def test_103_compressed_body(real_stage) -> None:
    body = compressed_body(["T 8 4 6 SINGLE_TAG", "U 1 1 7 MULTI_TAG {}"])
    header = registration_header(compressed=True, body_crc32=zlib.crc32(body) & 0x7FFFFFFF)
    (await real_stage.broker.ask(RequestCode.REGISTER_BROKER, header, body)).require_success()
    (queues,) = (await real_stage.client.route()).queue_datas
    assert (queues.read_queue_nums, queues.write_queue_nums, queues.perm) == (8, 4, 6)
    await real_stage.client.route("U")


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


async def test_json_clients_get_json(real_stage) -> None:
    """An official client speaks JSON; the same tables answer it in its codec."""
    await real_stage.broker.register()
    client = RemotingClient(real_stage.runtime, wire=SerializeType.JSON)
    try:
        command = RemotingCommand(RequestCode.GET_ROUTEINFO_BY_TOPIC, ext_fields={"topic": "T"}, version=1)
        answer = await client.invoke(real_stage.namesrv.address, command)
        assert answer.serialize_type is SerializeType.JSON
        assert b'"brokerAddrs":{0:"10.0.0.2:10911"}' in bytes(answer.body)
        command = RemotingCommand(RequestCode.GET_ROUTEINFO_BY_TOPIC, ext_fields={"topic": "T"}, version=401)
        answer = await client.invoke(real_stage.namesrv.address, command)
        assert b'"brokerAddrs":{"0":"10.0.0.2:10911"}' in bytes(answer.body)
    finally:
        await client.close()


async def test_319_lists_the_configuration_as_it_counts(real_stage) -> None:
    answer = await real_stage.client.ask(RequestCode.GET_NAMESRV_CONFIG)
    lines = bytes(answer.require_success().body).decode().splitlines()
    assert {"orderMessageEnable=false", "profile=v49"} <= set(lines)


async def test_318_counts_at_once(real_stage) -> None:
    await real_stage.broker.register()
    put = PutKVConfigRequestHeader(namespace="ORDER_TOPIC_CONFIG", key="T", value="broker-a:4")
    await real_stage.client.ask(RequestCode.PUT_KV_CONFIG, put)
    for text, told in ((b"orderMessageEnable=true", "broker-a:4"), (b"orderMessageEnable=false", None)):
        answer = await real_stage.client.ask(RequestCode.UPDATE_NAMESRV_CONFIG, body=text)
        answer.require_success()
        assert (await real_stage.client.route("T")).order_topic_conf == told


async def test_318_changes_what_can_be_changed_and_nothing_else(real_stage) -> None:
    async def shown() -> list[str]:
        answer = await real_stage.client.ask(RequestCode.GET_NAMESRV_CONFIG)
        return bytes(answer.require_success().body).decode().splitlines()

    async def change(text: bytes | None) -> RemotingCommand:
        return await real_stage.client.ask(RequestCode.UPDATE_NAMESRV_CONFIG, body=text)

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
        assert answer.remark.startswith(remark)
        assert await shown() == kept
