"""Every typed header and body is the same after encoding and decoding in every serialization type."""

import contextlib
import importlib
import json
import pkgutil
from functools import cache
from types import ModuleType
from typing import Any, TypeVar

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import inspect

import rewindmq.protocol.body
import rewindmq.protocol.header
from rewindmq.protocol.body import RemotingBody
from rewindmq.protocol.body.heartbeat import HeartbeatData
from rewindmq.protocol.body.lock import LockBatchResponseBody
from rewindmq.protocol.body.running_info import ConsumeStatus, ProcessQueueInfo
from rewindmq.protocol.codec import HEADER_CODECS
from rewindmq.protocol.codec.body import decode_body, encode_body
from rewindmq.protocol.command import CommandHeader, RemotingCommand, SerializeType
from rewindmq.protocol.errors import BodyError, HeaderError
from rewindmq.protocol.header.client import UnregisterClientRequestHeader
from rewindmq.protocol.header.message import QueryMessageRequestHeader
from rewindmq.protocol.header.reset import ResetOffsetRequestHeader
from rewindmq.protocol.header.send import (
    SendMessageRequestHeader,
    SendMessageRequestHeaderV2,
    SendMessageResponseHeader,
)

T = TypeVar("T")
# ROCKETMQ headers do not distinguish an empty text from an absent one.
TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)


def classes_in(package: ModuleType, base: type[T]) -> list[type[T]]:
    found: dict[str, type[T]] = {}
    for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, type) and issubclass(value, base) and value is not base:
                found[value.__name__] = value
    return [found[name] for name in sorted(found)]


HEADERS = classes_in(rewindmq.protocol.header, CommandHeader)
BODIES = classes_in(rewindmq.protocol.body, RemotingBody)


def values(info: inspect.Type) -> st.SearchStrategy[Any]:
    match info:
        case inspect.StrType():
            return TEXT
        case inspect.BoolType():
            return st.booleans()
        case inspect.IntType(ge=ge, le=le):
            return st.integers(ge, le)
        case inspect.FloatType():
            return st.floats(allow_nan=False, allow_infinity=False)
        case inspect.NoneType():
            return st.none()
        case inspect.EnumType(cls=cls):
            return st.sampled_from(cls)
        case inspect.UnionType(types=types):
            return st.one_of([values(part) for part in types])
        case inspect.ListType(item_type=item):
            return st.lists(values(item), max_size=3)
        case inspect.SetType(item_type=item):
            return st.sets(values(item), max_size=3)
        case inspect.DictType(key_type=key, value_type=value):
            return st.dictionaries(values(key), values(value), max_size=3)
        case inspect.NamedTupleType(cls=cls, fields=fields):
            return st.builds(cls, *[values(field.type) for field in fields])
        case inspect.StructType(cls=cls, fields=fields):
            return st.builds(cls, **{field.name: values(field.type) for field in fields})
    raise NotImplementedError(info)


@cache
def values_of(cls: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    """Kept: Hypothesis looks through a new strategy before it draws from it."""
    return values(inspect.type_info(cls))


def test_there_is_something_to_try() -> None:
    assert len(HEADERS) > 60
    assert len(BODIES) > 40


@pytest.mark.parametrize("header_type", HEADERS, ids=lambda cls: cls.__name__)
@settings(max_examples=10)
@given(data=st.data())
def test_headers(header_type: type[CommandHeader], data: st.DataObject) -> None:
    header = data.draw(values_of(header_type))
    for codec in HEADER_CODECS.values():
        received = codec.decode_header(codec.encode_header(RemotingCommand(1, header)))
        assert received.decode_header(header_type) == header


@pytest.mark.parametrize("body_type", BODIES, ids=lambda cls: cls.__name__)
@settings(max_examples=10)
@given(data=st.data())
def test_bodies(body_type: type[RemotingBody], data: st.DataObject) -> None:
    body = data.draw(values_of(body_type))
    for serialize_type in SerializeType:
        for standard in (False, True):
            encoded = encode_body(body, serialize_type, standard_json=standard)
            received = RemotingCommand(1, body=encoded, serialize_type=serialize_type)
            assert decode_body(received, body_type) == body


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**65), 2**65)
    | st.floats()
    | st.sampled_from(("", "1", "true", "NaN", "0x1", "TAG", "\ud800", "9" * 30, "a:1"))
    | st.binary(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(("", "topic", "queueId", "1", "table")), inner, max_size=3)
    ),
    max_leaves=6,
)


@cache
def near_misses(cls: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    """Objects with the fields of a body or header, and arbitrary values."""
    names = st.sampled_from((*cls.__struct_encode_fields__, "else"))
    return st.dictionaries(names, JUNK, max_size=5) | JUNK


def as_json(value: Any) -> bytes:
    """Text as a careless peer may write it: NaN, numbers of any size, lone surrogates."""
    return json.dumps(value, default=lambda data: data.decode("latin-1")).encode()


def as_msgpack(value: Any) -> bytes:
    def fit(part: Any) -> Any:
        match part:
            case int() if not -(2**63) <= part < 2**64:
                return str(part)
            case str():
                return part.encode("utf-8", "replace").decode()
            case list():
                return [fit(member) for member in part]
            case dict():
                return {key: fit(member) for key, member in part.items()}
        return part

    return msgspec.msgpack.encode(fit(value))


@pytest.mark.slow
@settings(max_examples=200)
@given(data=st.data(), body_type=st.sampled_from(BODIES))
def test_a_body_with_anything_in_it_is_taken_or_a_body_error(
    data: st.DataObject, body_type: type[RemotingBody]
) -> None:
    value = data.draw(near_misses(body_type))
    for serialize_type in SerializeType:
        raw = as_msgpack(value) if serialize_type is SerializeType.MSGPACK else as_json(value)
        with contextlib.suppress(BodyError):
            body = decode_body(RemotingCommand(1, body=raw, serialize_type=serialize_type), body_type)
            assert isinstance(body, body_type)


@settings(max_examples=120)
@given(data=st.data(), body_type=st.sampled_from(BODIES), serialize_type=st.sampled_from(SerializeType))
def test_a_damaged_body_is_taken_or_a_body_error(
    data: st.DataObject, body_type: type[RemotingBody], serialize_type: SerializeType
) -> None:
    raw = bytearray(encode_body(data.draw(values_of(body_type)), serialize_type))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(raw)))
        raw[place : place + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    for damaged in (raw, raw[: len(raw) // 2]):
        with contextlib.suppress(BodyError):
            decode_body(RemotingCommand(1, body=bytes(damaged), serialize_type=serialize_type), body_type)


@pytest.mark.slow
@settings(max_examples=200)
@given(data=st.data(), header_type=st.sampled_from(HEADERS))
def test_a_header_with_anything_in_it_is_taken_or_a_header_error(
    data: st.DataObject, header_type: type[CommandHeader]
) -> None:
    value = data.draw(near_misses(header_type))
    # The header codecs let no lone surrogate in.
    texts = value if isinstance(value, dict) else {}
    fields = {name: str(member).encode("utf-8", "replace").decode() for name, member in texts.items()}
    for command in (
        RemotingCommand(1, ext_fields=fields),
        RemotingCommand(1, raw_ext=as_msgpack(value)),
    ):
        with contextlib.suppress(HeaderError):
            assert isinstance(command.decode_header(header_type), header_type)


def test_field_names_of_the_send_headers_are_those_of_the_specification() -> None:
    long_names = (
        "producerGroup", "topic", "defaultTopic", "defaultTopicQueueNums", "queueId", "sysFlag",
        "bornTimestamp", "flag", "properties", "reconsumeTimes", "unitMode", "maxReconsumeTimes", "batch",
        "bname",
    )  # fmt: skip
    assert SendMessageRequestHeader.__struct_encode_fields__ == long_names
    assert SendMessageRequestHeaderV2.__struct_encode_fields__ == tuple("abcdefghijklmn")
    assert SendMessageRequestHeaderV2.__struct_fields__ == SendMessageRequestHeader.__struct_fields__


def test_field_names_that_are_not_camel_case() -> None:

    for struct, names in {
        HeartbeatData: {"clientID"},
        UnregisterClientRequestHeader: {"clientID"},
        LockBatchResponseBody: {"lockOKMQSet"},
        ProcessQueueInfo: {"cachedMsgSizeInMiB", "droped"},
        ConsumeStatus: {"pullRT", "pullTPS", "consumeRT", "consumeOKTPS", "consumeFailedTPS"},
        QueryMessageRequestHeader: {"_UNIQUE_KEY_QUERY"},
        SendMessageResponseHeader: {"MSG_REGION", "TRACE_ON"},
    }.items():
        assert names <= set(struct.__struct_encode_fields__)


def test_fields_at_their_default_stay_off_the_wire() -> None:

    assert msgspec.to_builtins(ResetOffsetRequestHeader("T", "G", -1, False)) == {
        "topic": "T",
        "group": "G",
        "timestamp": -1,
        "isForce": False,
    }
