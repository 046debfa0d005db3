"""Frames that real peers sent are decoded and encoded again, and nothing is lost or made up on the way."""

from __future__ import annotations

import json
import zlib
from itertools import pairwise
from typing import Any, Final

import msgspec
import pytest

from rewindmq.namesrv.registration_body import decode_register_broker_body
from rewindmq.protocol.codec import HEADER_CODECS, fastjson
from rewindmq.protocol.codec.body import decode_body, encode_body
from rewindmq.protocol.command import CommandHeader, RemotingCommand, SerializeType
from rewindmq.protocol.config.property_file import parse_properties_file
from rewindmq.protocol.frame import encode_frame
from rewindmq.protocol.ha_frame import ReportDecoder, TransferDecoder, encode_report, encode_transfer
from rewindmq.protocol.header.send import (
    ReplyMessageRequestHeader,
    SendMessageRequestHeader,
    SendMessageRequestHeaderV2,
)
from rewindmq.protocol.message import Message, MessageExt
from rewindmq.protocol.message.batch import decode_batch, encode_batch
from rewindmq.protocol.message.properties import format_properties, parse_properties
from rewindmq.protocol.message.record import crc_ok, decode_records, encode_record
from tests.protocol.golden.compare import differences
from tests.protocol.golden.each import each
from tests.protocol.golden.frames import GoldenFrame, Replication, golden
from tests.protocol.golden.left_out import UNTYPED_MEMBERS
from tests.protocol.golden.shapes import SHAPES, Raw, body_of, fields_of, half_of

FRAMES, REPLICATIONS = golden()
STRUCTURED: Final = [frame for frame in FRAMES if frame.body and isinstance(body_of(frame), type)]


def with_body(kind: Raw) -> list[GoldenFrame]:
    return [frame for frame in FRAMES if frame.body and body_of(frame) is kind]


@each(FRAMES)
def test_the_envelope_matches_the_notes_of_the_recorder(frame: GoldenFrame) -> None:
    command = frame.decoded()
    assert command.serialize_type is frame.codec
    assert command.is_response is frame.is_response
    assert command.is_oneway is (frame.form == "oneway")
    assert command.code == (frame.outcome if frame.is_response else frame.code)
    assert command.body == (frame.body or None)


@each(FRAMES)
def test_a_command_is_written_again_as_it_came(frame: GoldenFrame) -> None:
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
    """Return the ext fields of a ROCKETMQ header, and the number of bytes with repeated keys or empty values.

    Specification: docs/spec/protocol.md 2.2.
    """
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
    # An empty map counts as absent.
    return {name: value for name, value in header.items() if value != {}}


@each(FRAMES)
def test_ext_fields_fit_the_typed_header(frame: GoldenFrame) -> None:
    header_type = half_of(frame).header
    fields = fields_of(frame)
    if header_type is None:
        assert fields == {}
        return
    header = frame.decoded().decode_header(header_type)
    for kind, codec in HEADER_CODECS.items():
        received = codec.decode_header(codec.encode_header(RemotingCommand(1, header)))
        # ROCKETMQ headers do not distinguish an empty text from an absent one.
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


@each(FRAMES)
def test_there_is_a_body_only_where_one_is_known(frame: GoldenFrame) -> None:
    if frame.code in SHAPES and body_of(frame) is None:
        assert frame.body == b""


@each(STRUCTURED)
def test_a_structured_body_keeps_every_field(frame: GoldenFrame) -> None:
    body_type = body_of(frame)
    assert isinstance(body_type, type)
    typed = decode_body(frame.decoded(), body_type)
    for codec in SerializeType:
        encoded = encode_body(typed, codec)
        assert decode_body(RemotingCommand(1, body=encoded, serialize_type=codec), body_type) == typed
    before = fastjson.loads(frame.body)
    after = fastjson.loads(encode_body(typed, frame.codec))
    assert [each for each in differences(body_type, before, after) if each not in UNTYPED_MEMBERS] == []


@each(STRUCTURED)
def test_json_is_written_as_fastjson_does(frame: GoldenFrame) -> None:
    value = fastjson.loads(frame.body)
    again = fastjson.dumps(value, standard=b'"brokerAddrs":{"' in frame.body).encode()
    # Tables have the order of a Java map, which the text does not show: compare the sorted bytes.
    assert sorted(again) == sorted(frame.body)
    if is_in_order(value):
        assert again == frame.body


def is_in_order(value: Any) -> bool:
    if isinstance(value, dict):
        return list(value) == sorted(value) and all(map(is_in_order, value.values()))
    return not isinstance(value, list) or all(map(is_in_order, value))


@each(with_body(Raw.RECORDS))
def test_records_are_written_again_byte_for_byte(frame: GoldenFrame) -> None:
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
def test_a_batch_is_written_again_byte_for_byte(frame: GoldenFrame) -> None:
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
def test_properties_are_written_again_as_they_came(frame: GoldenFrame) -> None:
    for text in properties_texts(frame):
        # 5.x ends the text with a separator.
        pieces = text.removesuffix("\x02").split("\x02")
        # A batch's own properties follow each message's properties, even if the message has them already.
        assert format_properties(parse_properties(text)).split("\x02") == list(dict.fromkeys(pieces))


@each(with_body(Raw.PROPERTIES))
def test_configurations_are_read_line_by_line(frame: GoldenFrame) -> None:
    text = frame.body.decode()
    read = parse_properties_file(text)
    assert len(read) == len(text.splitlines())
    assert all(f"{each.key}=" in text for each in read)


@each(with_body(Raw.COMPRESSED))
def test_a_compressed_registration_is_read_to_the_last_byte(frame: GoldenFrame) -> None:
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
def test_replication_is_written_again_byte_for_byte(replication: Replication) -> None:
    if replication.sender == "slave":
        reports = [replication.data[at : at + 8] for at in range(0, len(replication.data) - 7, 8)]
        positions = [ReportDecoder().receive(report) for report in reports]
        known = [position for position in positions if position is not None]
        assert list(map(encode_report, known)) == reports
        # A slave's tables only grow.
        assert all(earlier <= later for earlier, later in pairwise(known))
        return
    transfers = TransferDecoder().receive(replication.data)
    again = b"".join(encode_transfer(*transfer) for transfer in transfers)
    assert replication.data.startswith(again)
    first = next(transfer for transfer in transfers if transfer.data)
    assert decode_records(first.data)[0].commit_log_offset == first.position
