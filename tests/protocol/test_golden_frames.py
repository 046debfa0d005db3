"""Frames that real peers sent are decoded and encoded again, and nothing is lost or made up on the way."""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, Final

import msgspec
import pytest
from golden.compare import differences
from golden.frames import GoldenFrame, golden
from golden.shapes import ANSWERS_WITH_FIELDS, SHAPES, Half, Raw

import rewindmq.client
import rewindmq.protocol.body
import rewindmq.protocol.header
from rewindmq.broker.handlers import HANDLERS as BROKER_HANDLERS
from rewindmq.namesrv.handlers import HANDLERS as NAMESRV_HANDLERS
from rewindmq.namesrv.registration_body import decode_register_broker_body
from rewindmq.protocol import fastjson
from rewindmq.protocol.batch import decode_batch, encode_batch
from rewindmq.protocol.body import RemotingBody
from rewindmq.protocol.body.offset_table import ResetOffsetBody, ResetOffsetBodyForC
from rewindmq.protocol.body.registration import RegisterBrokerBody
from rewindmq.protocol.body_codec import decode_body, encode_body
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.codec import HEADER_CODECS
from rewindmq.protocol.command import CommandHeader, RemotingCommand, SerializeType
from rewindmq.protocol.frame import encode_frame
from rewindmq.protocol.ha_frame import ReportDecoder, TransferDecoder, encode_report, encode_transfer
from rewindmq.protocol.header.send import (
    ReplyMessageRequestHeader,
    SendMessageRequestHeader,
    SendMessageRequestHeaderV2,
)
from rewindmq.protocol.message import Message, MessageExt
from rewindmq.protocol.properties import format_properties, parse_properties
from rewindmq.protocol.property_file import parse_properties_file
from rewindmq.protocol.record import crc_ok, decode_records, encode_record

FRAMES, REPLICATIONS = golden()

# Ext fields that may ride on any request (``wire.md`` 3.1).
ON_ANY_REQUEST: Final = frozenset(("AccessKey", "Signature", "ReqT", "bname", "ns", "nsd", "oway", "lo"))
_PAGES: Final = "5.x asks for long tables in pages; who does not know pages sends everything"
_FLAGS: Final = "5.x tells a consumer that it is proxied"
# Fields that this project's typed headers leave out: header class, or code where there is none, and field.
UNTYPED_FIELDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "QueryMessageRequestHeader.indexType": "5.x has several indexes; K, keys, is the only one here",
        "21 request.topicSeq": _PAGES,
        "21 request.maxTopicNum": _PAGES,
        "21 request.dataVersion": _PAGES,
        "21 response.totalTopicNum": _PAGES,
        "201 request.groupSeq": _PAGES,
        "201 request.maxGroupNum": _PAGES,
        "201 request.dataVersion": _PAGES,
        "201 response.totalGroupNum": _PAGES,
        "ConsumeMessageDirectlyResultRequestHeader.topicSysFlag": _FLAGS,
        "ConsumeMessageDirectlyResultRequestHeader.groupSysFlag": _FLAGS,
    }
)
_STATIC: Final = "5.x's static topics"
_POP: Final = "5.x's pop consumption"
_GROUPS: Final = "5.x's settings of a group, for consumption by pop and proxy"
# Members that this project's typed bodies leave out.
UNTYPED_MEMBERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "BrokerData.enableActingMaster": "5.x's slaves that stand in for a master",
        "ConsumeStatsList.totalInflightDiff": _POP,
        "ConsumerOffsetSerializeWrapper.dataVersion": "5.x's slaves compare it before they take the table",
        "ConsumerOffsetSerializeWrapper.groupTopicMap": "5.x derives it from the table",
        "ConsumerOffsetSerializeWrapper.pullOffsetTable": "5.x's offsets of broadcasting groups at a proxy",
        "ConsumerRunningInfo.mqPopTable": _POP,
        "ConsumerRunningInfo.userConsumerInfo": "5.x's free texts of an application",
        "DelayOffsetSerializeWrapper.dataVersion": "5.x's slaves compare it before they take the table",
        "SubscriptionGroupConfig.attributes": _GROUPS,
        "SubscriptionGroupConfig.consumeMessageOrderly": _GROUPS,
        "SubscriptionGroupConfig.consumeTimeoutMinute": _GROUPS,
        "SubscriptionGroupConfig.groupRetryPolicy": _GROUPS,
        "SubscriptionGroupConfig.groupSysFlag": _GROUPS,
        "SubscriptionGroupWrapper.forbiddenTable": "5.x's groups that may not read a topic",
        "TopicConfigSerializeWrapper.mappingDataVersion": _STATIC,
        "TopicConfigSerializeWrapper.topicQueueMappingDetailMap": _STATIC,
        "TopicConfigSerializeWrapper.topicQueueMappingInfoMap": _STATIC,
        "TopicStatsTable.topicPutTps": "5.x's rate of a topic",
    }
)


def each(frames: Iterable[GoldenFrame]) -> Callable[[Callable[[GoldenFrame], None]], Callable[..., None]]:
    """Try every frame; one test for those of a request code, which is what keeps thousands of checks fast."""
    by_code: dict[int, list[GoldenFrame]] = defaultdict(list)
    for frame in frames:
        by_code[frame.code].append(frame)

    def decorate(check: Callable[[GoldenFrame], None]) -> Callable[..., None]:
        @pytest.mark.parametrize("code", sorted(by_code))
        def test(code: int) -> None:
            for frame in by_code[code]:
                try:
                    check(frame)
                except Exception as error:
                    error.add_note(f"in {frame}")
                    raise

        test.__name__ = check.__name__
        return test

    return decorate


def half_of(frame: GoldenFrame) -> Half:
    """What the frame should hold."""
    if frame.code not in SHAPES:
        return Half()
    shape = SHAPES[frame.code]
    if not frame.is_response:
        return shape.request
    if frame.outcome == 0:
        return shape.response
    has_fields = frame.outcome in ANSWERS_WITH_FIELDS.get(frame.code, ())
    return Half(shape.response.header if has_fields else None)


def body_of(frame: GoldenFrame) -> type[RemotingBody] | Raw | None:
    body = half_of(frame).body
    if body is RegisterBrokerBody and frame.decoded().ext["compressed"] == "true":
        return Raw.COMPRESSED
    if body is ResetOffsetBody and b"[" in frame.body:
        return ResetOffsetBodyForC
    return body


HALVES: Final = [half for shape in SHAPES.values() for half in shape]
STRUCTURED: Final = [frame for frame in FRAMES if frame.body and isinstance(body_of(frame), type)]


def with_body(kind: Raw) -> list[GoldenFrame]:
    return [frame for frame in FRAMES if frame.body and body_of(frame) is kind]


@each(FRAMES)
def test_the_envelope_says_what_the_recorder_noted(frame):
    command = frame.decoded()
    assert command.serialize_type is frame.codec
    assert command.is_response is frame.is_response
    assert command.is_oneway is (frame.form == "oneway")
    assert command.code == (frame.outcome if frame.is_response else frame.code)
    assert command.body == (frame.body or None)


@each(FRAMES)
def test_a_command_is_written_again_as_it_came(frame):
    again = encode_frame(frame.decoded(), frame.codec)
    if frame.codec is SerializeType.ROCKETMQ:
        fields, left_out = entries_of(frame.header)
        # Java's hooks add fields that the typed header has written already: of two the later one counts. It
        # reads empty texts as none.
        assert again == frame.data or left_out
        assert len(again) == len(frame.data) - left_out
        assert frame.decoded().ext == fields
    else:
        assert again[8 + int.from_bytes(again[5:8], "big") :] == frame.body
        assert plain_header(again[8 : len(again) - len(frame.body)]) == plain_header(frame.header)


def entries_of(header: bytes) -> tuple[dict[str, str], int]:
    """Ext fields of a ROCKETMQ header, and how many bytes repeat a key or hold nothing (``wire.md`` 2.2)."""
    remark = int.from_bytes(header[13:17], "big")
    fields: dict[str, str] = {}
    left_out, at = 0, 21 + remark
    while at < len(header):
        value_at = at + 2 + int.from_bytes(header[at : at + 2], "big")
        end = value_at + 4 + int.from_bytes(header[value_at : value_at + 4], "big")
        key, value = header[at + 2 : value_at].decode(), header[value_at + 4 : end].decode()
        if key in fields or not value:
            left_out += end - at
        if value:
            fields[key] = value
        at = end
    return fields, left_out


def plain_header(data: bytes) -> Any:
    header = json.loads(data)
    # An empty map is none.
    return {name: value for name, value in header.items() if value != {}}


def fields_of(frame: GoldenFrame) -> dict[str, str]:
    """The ext fields that the typed header should know."""
    header_type = half_of(frame).header
    known = header_type.__struct_encode_fields__ if header_type else ()
    extra = frozenset() if frame.is_response else ON_ANY_REQUEST.difference(known)
    return {
        name: str(text)
        for name, text in frame.decoded().ext.items()
        if name not in extra and f"{header_name(frame)}.{name}" not in UNTYPED_FIELDS
    }


def header_name(frame: GoldenFrame) -> str:
    header_type = half_of(frame).header
    half = "response" if frame.is_response else "request"
    return header_type.__name__ if header_type else f"{frame.code} {half}"


@each(FRAMES)
def test_ext_fields_fit_the_typed_header(frame):
    header_type = half_of(frame).header
    fields = fields_of(frame)
    if header_type is None:
        assert fields == {}
        return
    header = frame.decoded().decode_header(header_type)
    for kind, codec in HEADER_CODECS.items():
        received = codec.decode_header(codec.encode_header(RemotingCommand(1, header)))
        # ROCKETMQ headers cannot tell an empty text from none.
        if kind is not SerializeType.ROCKETMQ or "" not in fields.values():
            assert received.decode_header(header_type) == header
    codec = HEADER_CODECS[frame.codec]
    again = dict(codec.decode_header(codec.encode_header(RemotingCommand(1, header))).ext)
    # Java writes primitives even at their default; this project leaves them out.
    assert again == {name: text for name, text in fields.items() if not is_default(header_type, name, text)}


def is_default(header_type: type[CommandHeader], name: str, text: str) -> bool:
    (field,) = (each for each in msgspec.structs.fields(header_type) if each.encode_name == name)
    default = field.default
    return default is not msgspec.NODEFAULT and text == (
        str(default).lower() if isinstance(default, bool) else str(default)
    )


def test_fields_said_to_be_untyped_are_in_some_frame_and_no_header():
    seen = {f"{header_name(frame)}.{name}" for frame in FRAMES for name in frame.decoded().ext}
    assert UNTYPED_FIELDS.keys() <= seen
    typed = {
        f"{half.header.__name__}.{name}"
        for half in HALVES
        if half.header
        for name in half.header.__struct_encode_fields__
    }
    assert not UNTYPED_FIELDS.keys() & typed


@each(FRAMES)
def test_there_is_a_body_only_where_one_is_known(frame):
    if frame.code in SHAPES and body_of(frame) is None:
        assert frame.body == b""


@each(STRUCTURED)
def test_a_structured_body_keeps_every_member(frame):
    body_type = body_of(frame)
    typed = decode_body(frame.decoded(), body_type)
    for codec in SerializeType:
        encoded = encode_body(typed, codec)
        assert decode_body(RemotingCommand(1, body=encoded, serialize_type=codec), body_type) == typed
    before = fastjson.loads(frame.body)
    after = fastjson.loads(encode_body(typed, frame.codec))
    assert [each for each in differences(body_type, before, after) if each not in UNTYPED_MEMBERS] == []


def test_members_said_to_be_untyped_are_in_some_body_and_no_type():
    found = set()
    for frame in STRUCTURED:
        body_type = body_of(frame)
        after = fastjson.loads(encode_body(decode_body(frame.decoded(), body_type), SerializeType.JSON))
        found.update(differences(body_type, fastjson.loads(frame.body), after))
    assert found == UNTYPED_MEMBERS.keys()


@each(STRUCTURED)
def test_json_is_written_as_fastjson_does(frame):
    value = fastjson.loads(frame.body)
    again = fastjson.dumps(value, standard=b'"brokerAddrs":{"' in frame.body).encode()
    # Tables come in the order of a Java map, which nobody can tell from the text: the same bytes are there.
    assert sorted(again) == sorted(frame.body)
    if is_in_order(value):
        assert again == frame.body


def is_in_order(value: Any) -> bool:
    if isinstance(value, dict):
        return list(value) == sorted(value) and all(map(is_in_order, value.values()))
    return not isinstance(value, list) or all(map(is_in_order, value))


@each(with_body(Raw.RECORDS))
def test_records_are_written_again_byte_for_byte(frame):
    messages = decode_records(frame.body)
    assert all(map(crc_ok, messages))
    assert b"".join(map(record_of, messages)) == frame.body


def record_of(message: MessageExt) -> bytes:
    return encode_record(
        topic=message.topic,
        stored_body=message.stored_body,
        properties=message.packed_properties,
        queue_id=message.queue_id,
        queue_offset=message.queue_offset,
        physical_offset=message.commit_log_offset,
        born_timestamp=message.born_timestamp,
        born_host=message.packed_born_host,
        store_timestamp=message.store_timestamp,
        store_host=message._fields[11],
        flag=message.flag,
        sys_flag=message.sys_flag,
        reconsume_times=message.reconsume_times,
        prepared_transaction_offset=message.prepared_transaction_offset,
    )


@each(with_body(Raw.BATCH))
def test_a_batch_is_written_again_byte_for_byte(frame):
    messages = []
    for body, properties, flag in decode_batch(frame.body):
        message = Message("T", body, flag=flag)
        message.properties = parse_properties(properties.decode())
        messages.append(message)
    if frame.recording.startswith("rocketmq-4"):
        assert encode_batch(messages) == frame.body
    else:
        # 5.x ends each properties text with a separator.
        pairs = zip(decode_batch(encode_batch(messages)), decode_batch(frame.body), strict=True)
        assert all(ours == (body, text.removesuffix(b"\x02"), flag) for ours, (body, text, flag) in pairs)


def properties_texts(frame: GoldenFrame) -> list[str]:
    ext = frame.decoded().ext
    if frame.body and body_of(frame) is Raw.RECORDS:
        return [message.packed_properties.decode() for message in decode_records(frame.body)]
    if half_of(frame).header in (
        SendMessageRequestHeader,
        SendMessageRequestHeaderV2,
        ReplyMessageRequestHeader,
    ):
        return [str(ext.get("properties") or ext["i"])]
    return []


@each(FRAMES)
def test_properties_are_written_again_as_they_came(frame):
    for text in properties_texts(frame):
        # 5.x ends the text with a separator.
        pieces = text.removesuffix("\x02").split("\x02")
        # What a batch has in common is put behind what each of its messages has, there already or not.
        assert format_properties(parse_properties(text)).split("\x02") == list(dict.fromkeys(pieces))


@each(with_body(Raw.PROPERTIES))
def test_configurations_are_read_line_by_line(frame):
    text = frame.body.decode()
    read = parse_properties_file(text)
    assert len(read) == len(text.splitlines())
    assert all(f"{each.key}=" in text for each in read)


@each(with_body(Raw.COMPRESSED))
def test_a_compressed_registration_is_read_to_the_last_byte(frame):
    body = decode_register_broker_body(frame.decoded(), compressed=True)
    wrapper = body.topic_config_serialize_wrapper
    blocks = [encode_body(wrapper.data_version, SerializeType.JSON)]
    blocks += (
        f"{topic.topic_name} {topic.read_queue_nums} {topic.write_queue_nums} {topic.perm} "
        f"{topic.topic_filter_type}".encode()
        for topic in wrapper.topic_config_table.values()
    )
    blocks.append(b"[]")
    written = [len(block).to_bytes(4, "big") + block for block in blocks]
    written.insert(1, len(wrapper.topic_config_table).to_bytes(4, "big"))
    assert b"".join(written) == zlib.decompress(frame.body)


@pytest.mark.parametrize("replication", REPLICATIONS, ids=str)
def test_replication_is_written_again_byte_for_byte(replication):
    if replication.sender == "slave":
        reports = [replication.data[at : at + 8] for at in range(0, len(replication.data) - 7, 8)]
        positions = [ReportDecoder().receive(report) for report in reports]
        assert list(map(encode_report, positions)) == reports
        # What a slave has only grows.
        assert all(earlier <= later for earlier, later in pairwise(positions))
        return
    transfers = TransferDecoder().receive(replication.data)
    again = b"".join(encode_transfer(*transfer) for transfer in transfers)
    assert replication.data.startswith(again)
    first = next(transfer for transfer in transfers if transfer.data)
    assert decode_records(first.data)[0].commit_log_offset == first.position


# What no real peer can be made to send, or none in this codec; each with the reason.
OWN: Final = "this project's own"
NOT_RECORDED_CODES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "190001 request": OWN,
        "190001 response": OWN,
        "190002 request": OWN,
        "190002 response": OWN,
    }
)
NOT_RECORDED_CLASSES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "FencedCommit": OWN,
        "FencedCommitList": OWN,
        "InvokeBrokerToResetOffsetResponseHeader": OWN,
        "ListFencedCommitsRequestHeader": OWN,
        "NotifyQueueResetRequestHeader": OWN,
        "OffsetFencedResponseHeader": OWN,
    }
)


def sent_by_our_client() -> set[int]:
    """Codes that the client's source names."""
    names = set()
    for path in Path(rewindmq.client.__file__).parent.rglob("*.py"):
        names |= set(re.findall(r"\bRequestCode\.([A-Z][A-Z0-9_]+)", path.read_text()))
    return {int(RequestCode[name]) for name in names}


IMPLEMENTED: Final = sorted({*NAMESRV_HANDLERS, *BROKER_HANDLERS, *sent_by_our_client()})


@pytest.mark.parametrize("codec", [SerializeType.JSON, SerializeType.ROCKETMQ], ids=lambda codec: codec.name)
def test_every_implemented_code_has_golden_frames(codec):
    recorded = {(frame.code, frame.is_response) for frame in FRAMES if frame.codec is codec}
    oneway = {frame.code for frame in FRAMES if frame.form == "oneway"}
    missing = {
        f"{code} {'response' if is_response else 'request'}"
        for code in IMPLEMENTED
        for is_response in (False, True)
        if (code, is_response) not in recorded and not (is_response and code in oneway)
    }
    assert missing == set(NOT_RECORDED_CODES)


@pytest.mark.parametrize("codec", [SerializeType.JSON, SerializeType.ROCKETMQ], ids=lambda codec: codec.name)
def test_every_header_and_body_class_has_golden_frames(codec):
    seen = set()
    for frame in FRAMES:
        if frame.codec is codec:
            seen |= types_in(frame)
    classes = classes_in(rewindmq.protocol.header, CommandHeader) + classes_in(
        rewindmq.protocol.body, RemotingBody
    )
    assert {each.__name__ for each in classes} - seen == set(NOT_RECORDED_CLASSES)


def types_in(frame: GoldenFrame) -> set[str]:
    command = frame.decoded()
    names = set()
    header_type, body_type = half_of(frame).header, body_of(frame)
    if header_type is not None and command.ext:
        names.add(header_type.__name__)
    if frame.body and isinstance(body_type, type):
        names |= structs_in(decode_body(command, body_type))
    return names


def structs_in(value: Any) -> set[str]:
    if isinstance(value, msgspec.Struct):
        parts = (getattr(value, name) for name in value.__struct_fields__)
        return {type(value).__name__}.union(*map(structs_in, parts))
    if isinstance(value, dict):
        return set().union(*map(structs_in, value.values()))
    if isinstance(value, (list, set)):
        return set().union(*map(structs_in, value))
    return set()


def classes_in(package: ModuleType, base: type) -> list[type]:
    found = {}
    for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, type) and issubclass(value, base) and value is not base:
                found[value.__name__] = value
    return [found[name] for name in sorted(found)]
