"""Structured bodies: the exact texts, every form peers send, and bodies that do not fit.

Specification: docs/spec/protocol.md 5.
"""

import json
from typing import Any, TypeVar

import msgpack
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindmq.protocol.body import RemotingBody
from rewindmq.protocol.body.cluster import ClusterInfo
from rewindmq.protocol.body.connection import Connection, ConsumerConnection
from rewindmq.protocol.body.group import GetConsumerListByGroupResponseBody, SubscriptionGroupConfig
from rewindmq.protocol.body.heartbeat import (
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    HeartbeatData,
    MessageModel,
    ProducerData,
)
from rewindmq.protocol.body.kv import KVTable
from rewindmq.protocol.body.lock import LockBatchRequestBody, LockBatchResponseBody
from rewindmq.protocol.body.offset_table import (
    ConsumerOffsetSerializeWrapper,
    GetConsumerStatusBody,
    MessageQueueForC,
    ResetOffsetBody,
    ResetOffsetBodyForC,
)
from rewindmq.protocol.body.registration import (
    DataVersion,
    RegisterBrokerBody,
    TopicConfig,
    TopicConfigSerializeWrapper,
)
from rewindmq.protocol.body.route import BrokerData, QueueData, TopicRouteData
from rewindmq.protocol.body.running_info import CMResult, ConsumeMessageDirectlyResult, ConsumerRunningInfo
from rewindmq.protocol.body.stats import ConsumeStats, OffsetWrapper, TopicOffset, TopicStatsTable
from rewindmq.protocol.codec import body as body_module
from rewindmq.protocol.codec import fastjson
from rewindmq.protocol.codec.body import decode_body, encode_body, plain_body
from rewindmq.protocol.command import FLAG_RESPONSE, RemotingCommand, SerializeType
from rewindmq.protocol.errors import BodyError
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.subscription import build_subscription_data

B = TypeVar("B", bound=RemotingBody)
MQ = MessageQueue("T", "b", 0)
MQ_TEXT = '{"brokerName":"b","queueId":0,"topic":"T"}'


def from_json(text: str | bytes, body_type: type[B]) -> B:
    data = text if isinstance(text, bytes) else text.encode()
    return decode_body(RemotingCommand(1, body=data, serialize_type=SerializeType.JSON), body_type)


def from_msgpack(value: Any, body_type: type[B]) -> B:
    data = value if isinstance(value, bytes) else msgpack.packb(value)
    return decode_body(RemotingCommand(1, body=data, serialize_type=SerializeType.MSGPACK), body_type)


ROUTE = TopicRouteData(
    queue_datas=[QueueData("broker-a", 4, 4, 6)],
    broker_datas=[BrokerData("C", "broker-a", {0: "10.0.0.1:10911", 1: "10.0.0.2:10911"})],
)
GOLDEN = [
    (
        ROUTE,
        (
            '{"brokerDatas":[{"brokerAddrs":{0:"10.0.0.1:10911",1:"10.0.0.2:10911"},"brokerName":"broker-a",'
            '"cluster":"C"}],"filterServerTable":{},"queueDatas":[{"brokerName":"broker-a","perm":6,'
            '"readQueueNums":4,"topicSysFlag":0,"writeQueueNums":4}]}'
        ),
    ),
    (
        ClusterInfo({"broker-a": BrokerData("C", "broker-a", {0: "10.0.0.1:10911"})}, {"C": {"broker-a"}}),
        (
            '{"brokerAddrTable":{"broker-a":{"brokerAddrs":{0:"10.0.0.1:10911"},"brokerName":"broker-a",'
            '"cluster":"C"}},"clusterAddrTable":{"C":["broker-a"]}}'
        ),
    ),
    (
        ResetOffsetBody(
            {MessageQueue("TopicA", "broker-a", 0): 100, MessageQueue("TopicA", "broker-a", 1): -1}
        ),
        (
            '{"offsetTable":{{"brokerName":"broker-a","queueId":0,"topic":"TopicA"}:100,'
            '{"brokerName":"broker-a","queueId":1,"topic":"TopicA"}:-1}}'
        ),
    ),
    (
        ResetOffsetBodyForC([MessageQueueForC(*MQ, 100)]),
        '{"offsetTable":[{"brokerName":"b","offset":100,"queueId":0,"topic":"T"}]}',
    ),
    (
        GetConsumerStatusBody(message_queue_table={MQ: 100}),
        '{"consumerTable":{},"messageQueueTable":{' + MQ_TEXT + ":100}}",
    ),
    (
        GetConsumerStatusBody(consumer_table={"clientId": {MQ: 100}}),
        '{"consumerTable":{"clientId":{' + MQ_TEXT + ':100}},"messageQueueTable":{}}',
    ),
    (
        ConsumeStats({MQ: OffsetWrapper(10, 5, 1700000000000)}, 1.5),
        '{"consumeTps":1.5,"offsetTable":{'
        + MQ_TEXT
        + ':{"brokerOffset":10,"consumerOffset":5,"lastTimestamp":1700000000000}}}',
    ),
    (
        TopicStatsTable({MQ: TopicOffset(0, 10, 0)}),
        '{"offsetTable":{' + MQ_TEXT + ':{"lastUpdateTimestamp":0,"maxOffset":10,"minOffset":0}}}',
    ),
    (GetConsumerListByGroupResponseBody(["a", "b"]), '{"consumerIdList":["a","b"]}'),
    (LockBatchResponseBody({MQ}), '{"lockOKMQSet":[' + MQ_TEXT + "]}"),
    (LockBatchRequestBody("G", "c", {MQ}), '{"clientId":"c","consumerGroup":"G","mqSet":[' + MQ_TEXT + "]}"),
    (
        SubscriptionGroupConfig("G"),
        (
            '{"brokerId":0,"consumeBroadcastEnable":true,"consumeEnable":true,"consumeFromMinEnable":true,'
            '"groupName":"G","notifyConsumerIdsChangedEnable":true,"retryMaxTimes":16,"retryQueueNums":1,'
            '"whichBrokerWhenConsumeSlowly":1}'
        ),
    ),
    (
        TopicConfig("T", 4, 4, 6),
        (
            '{"order":false,"perm":6,"readQueueNums":4,"topicFilterType":"SINGLE_TAG","topicName":"T",'
            '"topicSysFlag":0,"writeQueueNums":4}'
        ),
    ),
    (DataVersion(1700000000000, 3), '{"counter":3,"timestamp":1700000000000}'),
    (
        RegisterBrokerBody(TopicConfigSerializeWrapper({}, DataVersion(1, 2))),
        (
            '{"filterServerList":[],"topicConfigSerializeWrapper":{"dataVersion":{"counter":2,"timestamp":1},'
            '"topicConfigTable":{}}}'
        ),
    ),
    (ConsumerOffsetSerializeWrapper({"T@G": {0: 5, 1: 6}}), '{"offsetTable":{"T@G":{0:5,1:6}}}'),
    (KVTable({"k": "v"}), '{"table":{"k":"v"}}'),
    (
        ConsumeMessageDirectlyResult(CMResult.CR_SUCCESS, remark="…", spent_time_mills=26),
        '{"autoCommit":true,"consumeResult":"CR_SUCCESS","order":false,"remark":"…","spentTimeMills":26}',
    ),
    (
        ConsumerConnection([Connection("a", "1.1.1.1:5", "JAVA", 401)]),
        (
            '{"connectionSet":[{"clientAddr":"1.1.1.1:5","clientId":"a","language":"JAVA","version":401}],'
            '"consumeFromWhere":"CONSUME_FROM_LAST_OFFSET","consumeType":"CONSUME_PASSIVELY",'
            '"messageModel":"CLUSTERING","subscriptionTable":{}}'
        ),
    ),
]


@pytest.mark.parametrize(("body", "text"), GOLDEN, ids=lambda value: type(value).__name__)
def test_bodies_have_the_text_of_the_specification(body: RemotingBody, text: str) -> None:
    assert encode_body(body, SerializeType.JSON).decode() == text
    assert encode_body(body, SerializeType.ROCKETMQ).decode() == text
    assert from_json(text, type(body)) == body


def test_T1_only_the_route_has_a_strict_form() -> None:
    strict = encode_body(ROUTE, SerializeType.JSON, standard_json=True).decode()
    assert '"brokerAddrs":{"0":"10.0.0.1:10911","1":"10.0.0.2:10911"}' in strict
    assert from_json(strict, TopicRouteData) == ROUTE
    for body, text in GOLDEN[1:]:
        assert encode_body(body, SerializeType.JSON, standard_json=True).decode() == text


def test_T1_the_strict_route_escapes_what_is_not_ascii() -> None:
    route = TopicRouteData(broker_datas=[BrokerData("标", "b", {0: "h:1"})])
    assert b'"cluster":"\\u6807"' in encode_body(route, SerializeType.JSON, standard_json=True)
    assert '"cluster":"标"'.encode() in encode_body(route, SerializeType.JSON)


def test_T1_the_bare_route_is_a_python_literal_with_integer_keys() -> None:
    text = encode_body(ROUTE, SerializeType.JSON).decode()
    assert not {"true", "false", "null"} & set(text.replace(":", ",").split(","))
    assert fastjson.loads(text)["brokerDatas"][0]["brokerAddrs"][0] == "10.0.0.1:10911"


HEARTBEAT_TEXT = (
    '{"clientID":"10.0.0.1@1234#5678","consumerDataSet":[{"consumeFromWhere":"CONSUME_FROM_LAST_OFFSET",'
    '"consumeType":"CONSUME_PASSIVELY","groupName":"G","messageModel":"CLUSTERING","subscriptionDataSet":'
    '[{"classFilterMode":false,"codeSet":[2598919],"expressionType":"TAG","subString":"TagA",'
    '"subVersion":1700000000000,"tagsSet":["TagA"],"topic":"T"}],"unitMode":false}],'
    '"producerDataSet":[{"groupName":"CLIENT_INNER_PRODUCER"}]}'
)
HEARTBEAT = HeartbeatData(
    "10.0.0.1@1234#5678",
    [ProducerData("CLIENT_INNER_PRODUCER")],
    [
        ConsumerData(
            "G",
            ConsumeType.CONSUME_PASSIVELY,
            MessageModel.CLUSTERING,
            ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
            [build_subscription_data("T", "TagA", sub_version=1700000000000)],
        )
    ],
)


def test_the_heartbeat_body_of_the_specification() -> None:
    assert from_json(HEARTBEAT_TEXT, HeartbeatData) == HEARTBEAT
    assert from_json(encode_body(HEARTBEAT, SerializeType.JSON), HeartbeatData) == HEARTBEAT


def test_T23_pyrocketmqs_name_for_subscriptions_is_taken() -> None:
    text = HEARTBEAT_TEXT.replace("subscriptionDataSet", "subscriptionData")
    assert from_json(text, HeartbeatData) == HEARTBEAT
    both = '{"groupName":"G","subscriptionData":[{"topic":"A"}],"subscriptionDataSet":[]}'
    assert from_json(both, ConsumerData).subscription_data_set == []


def test_old_heartbeats_without_expression_type_mean_tag() -> None:
    text = HEARTBEAT_TEXT.replace('"expressionType":"TAG",', '"filterClassSource":null,')
    assert from_json(text, HeartbeatData) == HEARTBEAT


def test_the_queue_flag_of_routes_older_than_4_9_is_taken() -> None:
    assert from_json('{"brokerName":"b","topicSynFlag":2}', QueueData).topic_sys_flag == 2


TABLE_FORMS = {
    "object keys": "{" + MQ_TEXT + ":100}",
    "any order": '{ {"topic":"T", "brokerName":"b", "queueId":0} : 100 }',
    "text keys": '{"{\\"brokerName\\":\\"b\\",\\"queueId\\":0,\\"topic\\":\\"T\\"}":100}',
    "tolerant text keys": "{\"{topic:'T',queueId:0,brokerName:'b'}\":100}",
    "pairs": "[[" + MQ_TEXT + ",100]]",
    "quoted numbers": "[[" + MQ_TEXT.replace("0", '"0"') + ',"100"]]',
}


@pytest.mark.parametrize("table", TABLE_FORMS.values(), ids=TABLE_FORMS.keys())
def test_T2_every_form_of_an_object_keyed_table_is_read(table: str) -> None:
    assert from_json('{"offsetTable":' + table + "}", ResetOffsetBody) == ResetOffsetBody({MQ: 100})
    nested = '{"consumerTable":{"c":' + table + "}}"
    assert from_json(nested, GetConsumerStatusBody).consumer_table == {"c": {MQ: 100}}


def test_object_keys_hold_structures_too() -> None:
    text = '{"mqTable":{' + MQ_TEXT + ':{"commitOffset":7,"droped":true,"unheardOf":{}}},"properties":{}}'
    info = from_json(text, ConsumerRunningInfo)
    assert info.mq_table[MQ].commit_offset == 7
    assert info.mq_table[MQ].droped is True


def test_null_fields_get_defaults_and_unknown_fields_are_ignored() -> None:
    text = '{"brokerDatas":null,"queueDatas":[{"brokerName":"b","perm":null}],"more":{"x":[{}]}}'
    assert from_json(text, TopicRouteData) == TopicRouteData(queue_datas=[QueueData("b")])


def test_msgpack_tables_have_arrays_as_keys() -> None:
    packed = encode_body(ResetOffsetBody({MQ: 100}), SerializeType.MSGPACK)
    unpacked = msgpack.unpackb(packed, use_list=False, strict_map_key=False, raw=False)
    assert unpacked == {"offsetTable": {("T", "b", 0): 100}}
    packed = encode_body(ROUTE, SerializeType.MSGPACK)
    addresses = msgpack.unpackb(packed, strict_map_key=False)["brokerDatas"][0]["brokerAddrs"]
    assert addresses == {0: "10.0.0.1:10911", 1: "10.0.0.2:10911"}
    packed = encode_body(LockBatchResponseBody({MQ}), SerializeType.MSGPACK)
    assert msgpack.unpackb(packed) == {"lockOKMQSet": [{"topic": "T", "brokerName": "b", "queueId": 0}]}


class _CountingDecoder:
    """Notes the sizes of what is unpacked as a whole."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def __call__(self, data: bytes) -> Any:
        self.sizes.append(len(memoryview(data)))
        return msgspec.msgpack.decode(data)


@pytest.mark.parametrize(
    "value",
    [
        {"offsetTable": [[["T", "b", number], number] for number in range(20_000)]},
        {"offsetTable": {f"T@{number}": {0: number} for number in range(20_000)}},
        {"a": [{"b": list(range(30_000))}, "x" * 10], "c": {}},
        [[["x" * 200] * 300] * 3],
    ],
)
def test_a_large_response_in_msgpack_is_unpacked_in_small_parts(
    value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread, such as the event loop's, can run between two parts."""
    decoder = _CountingDecoder()
    monkeypatch.setattr(body_module, "_UNPACK", decoder)
    packed = msgpack.packb(value)
    response = RemotingCommand(0, body=packed, flag=FLAG_RESPONSE, serialize_type=SerializeType.MSGPACK)
    assert plain_body(response, KVTable) == value
    assert max(decoder.sizes) <= 32 << 10 < len(packed)


@pytest.mark.parametrize("cut", [1, 2, 1_000, 50_000])
def test_a_large_response_that_ends_early_is_a_body_error(cut: int) -> None:
    packed = msgpack.packb({"offsetTable": [[["T", "b", number], number] for number in range(20_000)]})
    response = RemotingCommand(
        0, body=packed[:-cut], flag=FLAG_RESPONSE, serialize_type=SerializeType.MSGPACK
    )
    with pytest.raises(BodyError, match="msgpack body"):
        plain_body(response, KVTable)


def test_a_large_response_that_is_nested_too_deep_is_a_body_error() -> None:
    packed = msgpack.packb("x" * 40_000)
    for _ in range(500):
        packed = b"\x91" + packed
    response = RemotingCommand(0, body=packed, flag=FLAG_RESPONSE, serialize_type=SerializeType.MSGPACK)
    with pytest.raises(BodyError, match="nested deeper"):
        plain_body(response, KVTable)


LARGE: list[RemotingBody] = [
    ConsumerOffsetSerializeWrapper({f"T@{number}": dict.fromkeys(range(100), 7) for number in range(1_000)}),
    TopicStatsTable({MessageQueue("T", "b", number): TopicOffset(0, 9, 5) for number in range(20_000)}),
    KVTable({str(number): "x" for number in range(20_000)}),
]


@pytest.mark.parametrize("body", LARGE, ids=lambda body: type(body).__name__)
def test_a_large_map_is_converted_in_small_parts(body: RemotingBody, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread, such as the event loop's, can run between two parts."""
    sizes: list[int] = []

    def convert(plain: Any, *args: Any, **options: Any) -> Any:
        values = plain.values() if isinstance(plain, dict) else plain
        sizes.append(sum(len(value) if isinstance(value, dict) else 1 for value in values))
        return original(plain, *args, **options)

    original = msgspec.convert
    data = encode_body(body, SerializeType.MSGPACK)
    response = RemotingCommand(0, body=data, flag=FLAG_RESPONSE, serialize_type=SerializeType.MSGPACK)
    with monkeypatch.context() as patch:
        patch.setattr(msgspec, "convert", convert)
        assert decode_body(response, type(body)) == body
    # A part ends with the entry that fills it.
    assert max(sizes) <= 5_100
    assert sum(sizes) >= 20_000


def test_msgpack_queues_are_read_as_map_and_as_array() -> None:
    for queue in ({"topic": "T", "brokerName": "b", "queueId": 0}, ["T", "b", 0]):
        assert from_msgpack({"lockOKMQSet": [queue]}, LockBatchResponseBody) == LockBatchResponseBody({MQ})


@pytest.mark.parametrize(
    ("text", "body_type", "what"),
    [
        ("[]", KVTable, "KVTable"),
        ('{"table":[1]}', KVTable, r"\$.table"),
        ('{"table":{"a":1}}', KVTable, r"\$.table"),
        ("{}", HeartbeatData, "clientID"),
        ('{"clientID":5}', HeartbeatData, "clientID"),
        (HEARTBEAT_TEXT.replace("CONSUME_PASSIVELY", "CONSUME_SIDEWAYS"), HeartbeatData, "consumeType"),
        (HEARTBEAT_TEXT.replace("2598919", "2598919000"), HeartbeatData, "codeSet"),
        ('{"offsetTable":{"T":1}}', ResetOffsetBody, "JSON body"),
        ('{"offsetTable":{"{}":1}}', ResetOffsetBody, "offsetTable"),
        ('{"offsetTable":[[1]]}', ResetOffsetBody, "offsetTable"),
        ('{"offsetTable":{' + MQ_TEXT + ':"x"}}', ResetOffsetBody, "offsetTable"),
        ('{"offsetTable":{' + MQ_TEXT + ":9223372036854775808}}", ResetOffsetBody, "offsetTable"),
        ('{"offsetTable":{"T@G":{"x":1}}}', ConsumerOffsetSerializeWrapper, "offsetTable"),
        (
            json.dumps(
                {"offsetTable": {f"T@{number}": {"0": number} for number in range(1_000)} | {"U": {"x": 1}}}
            ),
            ConsumerOffsetSerializeWrapper,
            r"\$\.offsetTable",
        ),
        ("{offsetTable:", ResetOffsetBody, "JSON body"),
    ],
)
def test_a_body_that_does_not_fit_names_the_place(
    text: str, body_type: type[RemotingBody], what: str
) -> None:
    with pytest.raises(BodyError, match=what) as refusal:
        from_json(text, body_type)
    assert refusal.value.code == 1


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        b"\x81\xa5table",
        b"\x80\x80",
        msgpack.packb([1]),
        msgpack.packb({"offsetTable": {("T", "b"): 1}}),
        msgpack.packb({"offsetTable": {"T": 1}}),
        msgpack.packb({"offsetTable": {("T", "b", "x"): 1}}),
        b"\x81\xaboffsetTable\x81\x81\xa1a\x01\x01",
        b"\x91" * 100_000 + b"\x01",
        b"\x81\xa4more" + b"\x91" * 40 + b"\x01",
        b"\xdd\xff\xff\xff\xff",
        (b"\xdd\x7f\xff\xff\xff" * 500) + bytes(100),
        b"\x81\xd7\xff" + bytes(8) + b"\x01",
    ],
)
def test_msgpack_that_does_not_fit_is_a_body_error(data: bytes) -> None:
    with pytest.raises(BodyError):
        from_msgpack(data, ResetOffsetBody)


@given(data=st.binary(max_size=120))
def test_garbage_is_a_body_error_and_nothing_else(data: bytes) -> None:
    for decode in (from_json, from_msgpack):
        for body_type in (ResetOffsetBody, HeartbeatData, TopicRouteData):
            try:
                body = decode(data, body_type)
            except BodyError:
                continue
            assert isinstance(body, body_type)


@pytest.mark.parametrize("serialize_type", SerializeType)
def test_no_body_is_a_body_error(serialize_type: SerializeType) -> None:
    with pytest.raises(BodyError, match="no body"):
        decode_body(RemotingCommand(34, serialize_type=serialize_type), HeartbeatData)


def test_a_body_in_a_memoryview_is_read() -> None:
    command = RemotingCommand(1, body=memoryview(b'{"table":{}}'), serialize_type=SerializeType.JSON)
    assert decode_body(command, KVTable) == KVTable()


@pytest.mark.parametrize("serialize_type", SerializeType)
def test_what_cannot_be_written_is_a_body_error(serialize_type: SerializeType) -> None:
    with pytest.raises(BodyError):
        encode_body(KVTable({"a": "\ud800"}), serialize_type)


def test_data_versions_are_equal_when_time_and_counter_are() -> None:
    assert DataVersion(1, 2, 0) == DataVersion(1, 2)
    assert DataVersion(1, 2) != DataVersion(1, 3)
    assert DataVersion(1, 2) != DataVersion(2, 2)
    assert hash(DataVersion(1, 2, 5)) == hash(DataVersion(1, 2))


def test_total_diff_of_consume_stats() -> None:
    stats = ConsumeStats({MQ: OffsetWrapper(10, 5), MessageQueue("T", "b", 1): OffsetWrapper(4, 4)})
    assert stats.total_diff() == 5
