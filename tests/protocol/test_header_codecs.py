"""The three serialization types against the bytes of the specification, and against invalid bytes.

Specification: docs/spec/protocol.md 2.
"""

import struct
from typing import Any

import msgpack
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.codec import HEADER_CODECS, HeaderCodec
from rewindmq.protocol.command import RemotingCommand, SerializeType
from rewindmq.protocol.errors import FrameError, HeaderError
from rewindmq.protocol.header.namesrv import GetRouteInfoRequestHeader
from rewindmq.protocol.header.pull import PullMessageRequestHeader
from rewindmq.protocol.header.reset import ResetOffsetRequestHeader
from rewindmq.protocol.header.send import SendMessageRequestHeaderV2
from rewindmq.protocol.limits import MAX_EXT_FIELDS
from rewindmq.protocol.version import LanguageCode

JSON = HEADER_CODECS[SerializeType.JSON]
ROCKETMQ = HEADER_CODECS[SerializeType.ROCKETMQ]
MSGPACK = HEADER_CODECS[SerializeType.MSGPACK]
ALL = pytest.mark.parametrize("codec", [JSON, ROCKETMQ, MSGPACK], ids=["json", "rocketmq", "msgpack"])

ROUTE_REQUEST = {
    "json": (
        b'{"code":105,"extFields":{"topic":"TopicA"},"flag":0,"language":"JAVA","opaque":0,'
        b'"serializeTypeCurrentRPC":"JSON","version":401}'
    ),
    "rocketmq": bytes.fromhex(
        "0069 00 0191 00000000 00000000 00000000 00000011 0005 746f706963 00000006 546f70696341"
    ),
    "msgpack": bytes.fromhex("97 69 03 cd0191 00 00 c0 81 a5 746f706963 a6 546f70696341"),
}


@pytest.mark.parametrize(
    ("name", "codec", "language"),
    [("json", JSON, 0), ("rocketmq", ROCKETMQ, 0), ("msgpack", MSGPACK, LanguageCode.PYTHON)],
)
def test_a_route_request_has_the_bytes_of_the_specification(
    name: str, codec: HeaderCodec, language: int
) -> None:
    command = RemotingCommand(
        RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoRequestHeader("TopicA"), language=language
    )
    assert codec.encode_header(command) == ROUTE_REQUEST[name]
    decoded = codec.decode_header(ROUTE_REQUEST[name])
    assert (decoded.code, decoded.language, decoded.version, decoded.opaque) == (105, language, 401, 0)
    assert (decoded.flag, decoded.remark, dict(decoded.ext)) == (0, None, {"topic": "TopicA"})
    assert decoded.decode_header(GetRouteInfoRequestHeader) == GetRouteInfoRequestHeader("TopicA")


def test_sizes_of_the_three_serialization_types() -> None:
    assert [len(ROUTE_REQUEST[name]) for name in ("json", "rocketmq", "msgpack")] == [128, 38, 23]


TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
COMMANDS = st.builds(
    RemotingCommand,
    code=st.integers(0, 2**15 - 1),
    remark=st.none() | TEXTS,
    language=st.sampled_from(LanguageCode),
    version=st.integers(0, 612),
    opaque=st.integers(-(2**31), 2**31 - 1),
    flag=st.integers(0, 3),
    ext_fields=st.dictionaries(TEXTS, TEXTS, max_size=20),
)


@ALL
@given(command=COMMANDS)
def test_a_header_comes_back_as_it_went(codec: HeaderCodec, command: RemotingCommand) -> None:
    decoded = codec.decode_header(codec.encode_header(command))
    for name in ("code", "remark", "language", "version", "opaque", "flag"):
        assert getattr(decoded, name) == getattr(command, name), name
    assert dict(decoded.ext) == dict(command.ext)


@ALL
@given(command=COMMANDS)
def test_a_received_command_can_be_forwarded_in_every_serialization_type(
    codec: HeaderCodec, command: RemotingCommand
) -> None:
    received = codec.decode_header(codec.encode_header(command))
    for onward in HEADER_CODECS.values():
        assert dict(onward.decode_header(onward.encode_header(received)).ext) == dict(command.ext)


@ALL
@given(data=st.binary(max_size=200))
def test_garbage_is_a_frame_error_and_nothing_else(codec: HeaderCodec, data: bytes) -> None:
    try:
        command = codec.decode_header(data)
        _ = command.ext
    except (FrameError, HeaderError):
        return
    assert -(2**31) <= command.opaque < 2**31


@ALL
@given(command=COMMANDS, cut=st.integers(1, 400))
def test_a_truncated_header_is_a_frame_error(codec: HeaderCodec, command: RemotingCommand, cut: int) -> None:
    data = codec.encode_header(command)
    with pytest.raises(FrameError):
        codec.decode_header(data[: max(0, len(data) - cut)])


@pytest.mark.parametrize("codec", [ROCKETMQ, MSGPACK])
def test_bytes_left_over_are_a_frame_error(codec: HeaderCodec) -> None:
    with pytest.raises(FrameError):
        codec.decode_header(codec.encode_header(RemotingCommand(11)) + b"\0")


@ALL
def test_more_ext_fields_than_allowed_are_a_frame_error(codec: HeaderCodec) -> None:
    def header(count: int) -> bytes:
        return codec.encode_header(RemotingCommand(11, ext_fields={f"k{i}": "v" for i in range(count)}))

    assert len(codec.decode_header(header(MAX_EXT_FIELDS)).ext) == MAX_EXT_FIELDS
    with pytest.raises(FrameError):
        codec.decode_header(header(MAX_EXT_FIELDS + 1))


# --- JSON


def test_T3_json_coerces_what_ali_ons_and_pyrocketmq_send() -> None:
    command = JSON.decode_header(
        b'{"code":310,"language":3,"extFields":{"d":4,"e":3,"k":false,"m":true,"x":null,"f":1.5}}'
    )
    assert dict(command.ext) == {"d": "4", "e": "3", "k": "false", "m": "true", "f": "1.5"}
    assert command.language == LanguageCode.PYTHON


def test_json_tolerates_missing_fields() -> None:
    command = JSON.decode_header(b'{"code":34}')
    assert (command.opaque, command.flag, command.version, command.language) == (0, 0, 0, LanguageCode.JAVA)
    assert command.remark is None
    assert dict(command.ext) == {}
    # As Java, whose numbers are 0 until set.
    assert JSON.decode_header(b'{"opaque":1,"flag":0}').code == 0
    assert JSON.decode_header(b'{"opaque":1,"code":null}').code == 0


def test_json_reads_an_unknown_language_and_nulls() -> None:
    command = JSON.decode_header(
        b'{"code":1,"language":"KLINGON","extFields":null,"remark":null,"opaque":null,"more":[{}]}'
    )
    assert command.language == LanguageCode.OTHER
    assert command.remark is None


@pytest.mark.parametrize(
    "text",
    [
        "{'code':105,'opaque':7,'version':401,'extFields':{'topic':'T'}}",
        "{code:105,opaque:7,version:401,extFields:{topic:'T'}}",
        '{"code":105,"opaque":7,"version":401,"extFields":{"topic":"T",},}',
        '{"code":"105","opaque":"7","version":"401","extFields":{"topic":"T"}}',
        '{"code":105.0,"opaque":7e0,"version":401,"extFields":{"topic":"T"}}',
        '{/* who */"code":105,// me\n"opaque":7,"version":401,"extFields":{"topic":"T"}}',
        '\ufeff{"code":105,"opaque":7,"version":401,"extFields":{"topic":"T"}}\0',
        '{"code":105,"opaque":7,"version":401,"extFields":{"topic":"T","n":NaN}}',
        '{"code":105,"opaque":7,"version":401,"hello":{1:NaN},"extFields":{"topic":"T"}}',
    ],
)
def test_json_is_read_as_fastjson_reads_it(text: str) -> None:
    command = JSON.decode_header(text.encode())
    assert (command.code, command.opaque, command.version, dict(command.ext)) == (105, 7, 401, {"topic": "T"})


def test_json_keeps_containers_among_the_ext_fields_as_their_text() -> None:
    command = JSON.decode_header(
        b'{"code":105,"remark":5,"extFields":{"a":{"b":[1,null]},"c":["d"],"e":1.5,"f":true}}'
    )
    assert dict(command.ext) == {"a": '{"b":[1,null]}', "c": '["d"]', "e": "1.5", "f": "true"}
    assert command.remark == "5"
    mixed = JSON.decode_header(b"{code:1,remark:[{b:1,2:3}],extFields:{a:{b:1,2:3}}}")
    assert (mixed.remark, mixed.ext["a"]) == ('[{2:3,"b":1}]', '{2:3,"b":1}')
    assert JSON.decode_header(b'{"code":1,"remark":"\\ud800"}').remark == "\ufffd"


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "7",
        "{",
        "null",
        '{"code":"send"}',
        '{"code":105}}',
        '{"code":"2147483648"}',
        '{"code":2147483648}',
        '{"code":1,"opaque":1.5}',
        '{"code":1,"extFields":[]}',
        '{"code":1,"extFields":"a"}',
        '{"code":1,"extFields":{1:"a"}}',
        '{"code":1,"more":' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"code":1,"extFields":{"a":' + "9" * 10_000 + "}}",
    ],
)
def test_json_of_the_wrong_shape_is_a_frame_error(text: str) -> None:
    with pytest.raises(FrameError):
        JSON.decode_header(text.encode())


@pytest.mark.parametrize(
    "ext",
    [
        '{"topic":"T","group":"G","isForce":"true","timestamp":"7","queueId":"3"}',
        '{"topic":"T","group":"G","isForce":true,"timestamp":7,"queueId":3}',
        '{"topic":"T","group":"G","isForce":"true","timestamp":"7","queueId":"3","offset":null}',
        '{"topic":"T","group":"G","isForce":"true","timestamp":"7","queueId":"3","other":{"a":["b"]}}',
        '{"topic":"T","group":"G","isForce":"true","timestamp":"7","queueId":"3","other":"\u00e9"}',
        '{"topic":"T","group":"G","isForce":"true","timestamp":"7","queueId":"3","other":"%s"}'
        % ("x" * 4096),
    ],
    ids=["texts", "values", "null", "containers", "not ASCII", "long"],
)
def test_json_ext_fields_give_one_typed_header_however_they_are_written(ext: str) -> None:
    command = JSON.decode_header(f'{{"code":222,"extFields":{ext}}}'.encode())
    before = command.decode_header(ResetOffsetRequestHeader)
    assert (before.topic, before.is_force, before.timestamp, before.queue_id) == ("T", True, 7, 3)
    assert command.ext["queueId"] == "3"
    assert None not in command.ext.values()
    # Having looked at the map changes nothing.
    assert command.decode_header(ResetOffsetRequestHeader) == before


def test_a_json_number_is_a_text_where_the_header_has_one() -> None:
    command = JSON.decode_header(
        b'{"code":222,"extFields":{"topic":7,"group":"G","isForce":"true","timestamp":"1"}}'
    )
    assert command.decode_header(ResetOffsetRequestHeader).topic == "7"


def test_json_writes_every_ext_value_as_text_and_no_nulls() -> None:
    header = ResetOffsetRequestHeader("T", "G", 1700000000000, True)
    sent = msgspec.json.decode(JSON.encode_header(RemotingCommand(222, header)))
    assert sent["extFields"] == {"topic": "T", "group": "G", "timestamp": "1700000000000", "isForce": "true"}
    assert "remark" not in sent
    assert sent["language"] == "PYTHON"
    assert "extFields" not in msgspec.json.decode(JSON.encode_header(RemotingCommand(34)))


def test_json_keeps_the_control_characters_of_properties() -> None:
    header = SendMessageRequestHeaderV2("pg", "T", "TBW102", 4, 0, 0, 1, 0, "TAGS\x01A\x02KEYS\x01k 标签")
    data = JSON.encode_header(RemotingCommand(310, header))
    assert b"\\u0001" in data
    assert "标签".encode() in data
    assert JSON.decode_header(data).decode_header(SendMessageRequestHeaderV2) == header


# --- ROCKETMQ


def rocketmq_header(entries: bytes, *, length: int | None = None) -> bytes:
    fixed = struct.pack(">hBhiii", 11, 0, 401, 1, 0, 0)
    return fixed + struct.pack(">i", len(entries) if length is None else length) + entries


def entry(key: bytes, value: bytes) -> bytes:
    return struct.pack(">h", len(key)) + key + struct.pack(">i", len(value)) + value


def test_T24_rocketmq_keeps_the_last_of_duplicate_keys() -> None:
    command = ROCKETMQ.decode_header(
        rocketmq_header(entry(b"a", b"1") + entry(b"b", b"2") + entry(b"a", b"3"))
    )
    assert dict(command.ext) == {"a": "3", "b": "2"}


def test_rocketmq_reads_length_0_as_absent() -> None:
    command = ROCKETMQ.decode_header(rocketmq_header(entry(b"a", b"") + entry(b"", b"x")))
    assert dict(command.ext) == {}
    assert command.remark is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        rocketmq_header(b"")[:-1],
        rocketmq_header(b"", length=1),
        rocketmq_header(b"", length=-1),
        rocketmq_header(struct.pack(">h", -1)),
        rocketmq_header(struct.pack(">h", 2) + b"a"),
        rocketmq_header(struct.pack(">h", 1) + b"a" + struct.pack(">i", -1)),
        rocketmq_header(struct.pack(">h", 1) + b"a" + struct.pack(">i", 2**31 - 1)),
        rocketmq_header(entry(b"\xff", b"x")),
        struct.pack(">hBhiii", 11, 0, 401, 1, 0, -5) + bytes(8),
        struct.pack(">hBhiii", 11, 0, 401, 1, 0, 2**31 - 1) + bytes(8),
    ],
)
def test_rocketmq_lengths_that_do_not_add_up_are_frame_errors(data: bytes) -> None:
    with pytest.raises(FrameError):
        ROCKETMQ.decode_header(data)


def test_T24_rocketmq_cannot_hold_pop_codes() -> None:
    with pytest.raises(FrameError, match="code 200050 cannot be written in a ROCKETMQ header"):
        ROCKETMQ.encode_header(RemotingCommand(RequestCode.POP_MESSAGE))
    for codec in (JSON, MSGPACK):
        assert codec.decode_header(codec.encode_header(RemotingCommand(200050))).code == 200050


# --- MSGPACK


def test_msgpack_ignores_elements_after_the_seventh() -> None:
    data = msgpack.packb([105, 3, 401, 1, 0, None, {"topic": "T"}, "later", [1, {"x": 2}]])
    assert MSGPACK.decode_header(data).decode_header(GetRouteInfoRequestHeader).topic == "T"


@pytest.mark.parametrize(
    "value",
    [
        [105, 3, 401, 1, 0, None],
        {},
        7,
        [105, 3, 401, 1, 0, None, []],
        [105, 3, 401, 1, 0, 5, None],
        [105, 3, 401, 1, -1, None, None],
        [105, -1, 401, 1, 0, None, None],
        [105, 3, 401, 2**31, 0, None, None],
        ["105", 3, 401, 1, 0, None, None],
        [None, 3, 401, 1, 0, None, None],
    ],
)
def test_msgpack_of_the_wrong_shape_is_a_frame_error(value: Any) -> None:
    with pytest.raises(FrameError):
        MSGPACK.decode_header(msgpack.packb(value))


@pytest.mark.parametrize("place", [6, 7])
def test_msgpack_nested_without_end_is_a_frame_error(place: int) -> None:
    head = msgpack.packb([105, 3, 401, 1, 0, None, None, None])
    elements = head[1 : 1 + len(head) - 1 - (8 - place)]
    with pytest.raises(FrameError):
        MSGPACK.decode_header(bytes([0x90 | (place + 1)]) + elements + b"\x91" * 200_000 + b"\x01")


@pytest.mark.parametrize("ext", [{"a": [1]}, {"a": {"b": 1}}, {1: "a"}, {"a": 1.5}])
def test_msgpack_ext_values_of_the_wrong_type_refuse_the_request(ext: dict[object, object]) -> None:
    command = MSGPACK.decode_header(msgpack.packb([105, 3, 401, 1, 0, None, ext]))
    with pytest.raises(HeaderError):
        _ = command.ext


def test_msgpack_keeps_native_values_and_coerces_them_where_they_cross_over() -> None:
    ext = {"a": 7, "b": True, "c": b"raw", "d": None, "e": "text"}
    command = MSGPACK.decode_header(msgpack.packb([11, 3, 401, 1, 0, None, ext]))
    assert dict(command.ext) == ext
    as_text = {"a": "7", "b": "true", "c": "raw", "e": "text"}
    assert dict(JSON.decode_header(JSON.encode_header(command)).ext) == as_text
    assert dict(ROCKETMQ.decode_header(ROCKETMQ.encode_header(command)).ext) == as_text


@pytest.mark.parametrize("codec", [JSON, ROCKETMQ])
def test_bytes_that_are_no_text_cannot_leave_msgpack(codec: HeaderCodec) -> None:
    with pytest.raises(FrameError):
        codec.encode_header(RemotingCommand(11, ext_fields={"a": b"\xff"}))


@ALL
def test_a_lone_surrogate_is_a_frame_error(codec: HeaderCodec) -> None:
    for command in (RemotingCommand(1, remark="\ud800"), RemotingCommand(1, ext_fields={"a": "\ud800"})):
        with pytest.raises(FrameError):
            codec.encode_header(command)


# --- typed headers


@ALL
@pytest.mark.parametrize(
    ("ext", "what"),
    [
        ({"topic": "T", "group": "G", "isForce": "true"}, "timestamp"),
        ({"topic": "T", "group": "G", "isForce": "true", "timestamp": "soon"}, "timestamp"),
        ({"topic": "T", "group": "G", "isForce": "maybe", "timestamp": "1"}, "isForce"),
        ({"topic": "T", "group": "G", "isForce": "true", "timestamp": "9" * 30}, "timestamp"),
        (
            {"topic": "T", "group": "G", "isForce": "true", "timestamp": "1", "queueId": "2147483648"},
            "queueId",
        ),
    ],
)
def test_missing_and_wrong_typed_fields_name_the_field(
    codec: HeaderCodec, ext: dict[str, str], what: str
) -> None:
    command = codec.decode_header(codec.encode_header(RemotingCommand(222, ext_fields=ext)))
    with pytest.raises(HeaderError, match=what) as refusal:
        command.decode_header(ResetOffsetRequestHeader)
    assert refusal.value.code == 1
    assert "ResetOffsetRequestHeader" in refusal.value.remark


def test_booleans_are_read_in_any_case_as_java_does() -> None:
    command = RemotingCommand(
        222, ext_fields={"topic": "T", "group": "G", "isForce": "TRUE", "timestamp": "-1"}
    )
    assert command.decode_header(ResetOffsetRequestHeader).is_force is True


def test_old_clients_send_no_expression_type() -> None:
    ext = {
        "consumerGroup": "G", "topic": "T", "queueId": "0", "queueOffset": "0", "maxMsgNums": "32",
        "sysFlag": "6", "commitOffset": "-1", "suspendTimeoutMillis": "0", "subVersion": "0",
        "ReqT": "0", "bname": "broker-a",
    }  # fmt: skip
    assert RemotingCommand(11, ext_fields=ext).decode_header(PullMessageRequestHeader).expression_type is None


def test_set_ext_joins_the_typed_header() -> None:
    command = RemotingCommand(105, GetRouteInfoRequestHeader("T"))
    command.set_ext("AccessKey", "k")
    for codec in HEADER_CODECS.values():
        assert dict(codec.decode_header(codec.encode_header(command)).ext) == {"topic": "T", "AccessKey": "k"}
