"""Encodes and decodes structured bodies in the form that the serialization type requires.

Specification: docs/spec/protocol.md 2.4, 5.

JSON and ROCKETMQ frames carry fastjson text; MSGPACK frames carry msgpack with typed map keys. This module
does not handle raw bodies (message bodies, record streams, properties texts).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final, TypeVar, get_origin

import msgpack
import msgspec

from rewindmq.protocol.body import RemotingBody
from rewindmq.protocol.codec import fastjson
from rewindmq.protocol.codec.body_shape import repair_for
from rewindmq.protocol.codec.request_limits import request_limit
from rewindmq.protocol.command import DECODE_FAILURES, RemotingCommand, SerializeType
from rewindmq.protocol.errors import BodyError
from rewindmq.protocol.limits import MAX_BODY_DEPTH
from rewindmq.protocol.message_queue import MessageQueue

BodyT = TypeVar("BodyT", bound=RemotingBody)

# msgspec grows a container as it reads elements; msgpack's own reader allocates the size that the bytes
# claim.
_UNPACK: Final = msgspec.msgpack.Decoder().decode
# Finds the parts of a container without unpacking them.
_MAP_PARTS: Final = msgspec.msgpack.Decoder(dict[Any, msgspec.Raw]).decode
_ARRAY_PARTS: Final = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode
# First bytes of msgpack's maps and arrays.
_FIXMAP: Final = 0x80
_MAPS: Final = b"\xde\xdf"
_FIXARRAY: Final = 0x90
_ARRAYS: Final = b"\xdc\xdd"
# A value of so many bytes is unpacked at once: less than 1 ms.
_PART_BYTES: Final = 32 << 10
# A map of so many entries is converted at once; larger ones in parts of so many values: less than 2 ms.
_ENTRIES_AT_ONCE: Final = 256
_VALUES_PER_PART: Final = 5_000
_CONTAINERS: Final = frozenset((dict, list))
_SCALARS: Final = (str, int, float, bytes)
# Most members have one of these types: no call for them.
_SCALAR_TYPES: Final = frozenset((*_SCALARS, bool))
# The first bytes of all values except small integers. They are counted within texts and numbers, too.
_MSGPACK_TYPES: Final = bytes(range(0x80, 0xE0))


class PreparedBody(msgspec.Struct):
    """A structured body with the bytes that were encoded before it is sent, see ``body_slices.prepare``.

    Attributes:
        encoded: the bytes by serialization type; other types are encoded when they are needed.
        used: the serialization types in which it was sent.
    """

    body: msgspec.Struct
    encoded: dict[SerializeType, bytes] = msgspec.field(default_factory=dict)
    used: set[SerializeType] = msgspec.field(default_factory=set)


def encode_body(body: msgspec.Struct, serialize_type: SerializeType, standard_json: bool = False) -> bytes:
    """Return the bytes of a structured body.

    Args:
        standard_json: the receiver wants strict JSON; applies where the body type ``may_be_standard_json``.

    Raises:
        BodyError: a text contains a lone surrogate, or an integer exceeds 64 bits.
    """
    if isinstance(body, PreparedBody):
        body.used.add(serialize_type)
        encoded = body.encoded.get(serialize_type)
        return encode_body(body.body, serialize_type, standard_json) if encoded is None else encoded
    plain = plain_value(body)
    if serialize_type is SerializeType.MSGPACK:
        try:
            packed: bytes = msgpack.packb(plain)
        except (OverflowError, UnicodeEncodeError) as error:
            raise BodyError(f"{type(body).__name__}: {error}") from None
        return packed
    standard = standard_json and isinstance(body, RemotingBody) and body.may_be_standard_json
    return fastjson.dumps(plain, standard=standard).encode()


def plain_value(value: Any) -> Any:
    """Convert structs to dicts with encoded names, without None fields; sort sets, keep keys."""
    if isinstance(value, _SCALARS):
        return value
    if isinstance(value, msgspec.Struct):
        return {
            wire_name: member if type(member) in _SCALAR_TYPES else plain_value(member)
            for name, wire_name in _members(type(value))
            if (member := getattr(value, name)) is not None
        }
    if isinstance(value, dict):
        return {
            key: member if type(member) in _SCALAR_TYPES else plain_value(member)
            for key, member in value.items()
        }
    if isinstance(value, MessageQueue):
        return {"topic": value.topic, "brokerName": value.broker_name, "queueId": value.queue_id}
    if isinstance(value, (set, frozenset)):
        return [plain_value(member) for member in sorted(value)]
    if isinstance(value, (list, tuple)):
        return [plain_value(member) for member in value]
    return value


def encoded_fields(value: msgspec.Struct) -> dict[str, Any]:
    """Return a struct's fields by encoded name, without None."""
    return {
        wire_name: member
        for name, wire_name in _members(type(value))
        if (member := getattr(value, name)) is not None
    }


@functools.cache
def _members(struct: type[msgspec.Struct]) -> tuple[tuple[str, str], ...]:
    return tuple(zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True))


def decode_body(command: RemotingCommand, body_type: type[BodyT], max_values: int | None = None) -> BodyT:
    """Return the typed body of a received command.

    Unknown fields are ignored; absent and null fields take their default.

    Args:
        max_values: limit on the values in a response, about; a request has that of its code.

    Raises:
        BodyError: no body, bytes that do not parse, a required field missing, a value of the wrong type or
            out of range; more values than the limit.
    """
    return typed_body(plain_body(command, body_type, max_values), body_type)


def plain_body(command: RemotingCommand, body_type: type[RemotingBody], max_values: int | None = None) -> Any:
    """Return the body of a received command as dicts and lists: the first step of ``decode_body``.

    Raises:
        BodyError: no body, bytes that do not parse, or more values than the limit.
    """
    data = command.body
    if data is None or isinstance(data, msgspec.Struct):
        raise BodyError(f"{body_type.__name__}: the request has no body")
    data = bytes(data)
    if not command.is_response:
        max_values = request_limit(command.code).values
    if command.serialize_type is SerializeType.MSGPACK:
        return _unpacked(data, max_values, in_parts=command.is_response)
    return fastjson.loads(data, max_values)


def typed_body(plain: Any, body_type: type[BodyT]) -> BodyT:
    """Return the typed body from the result of ``plain_body``.

    Raises:
        BodyError: a required field is missing, or a value has the wrong type or is out of range.
    """
    plain = repair_for(body_type)(plain)
    try:
        with suppress(*DECODE_FAILURES):
            return _converted_in_parts(plain, body_type)
        # Once more, for an error that names the value's place in the whole body.
        return msgspec.convert(plain, body_type, strict=False)
    except DECODE_FAILURES as error:
        raise BodyError(f"{body_type.__name__}: {error}") from None


def _converted_in_parts(plain: Any, body_type: type[BodyT]) -> BodyT:
    """Convert a body whose fields are large maps entry by entry, for the reason of ``_unpack_in_parts``."""
    if type(plain) is not dict:
        return msgspec.convert(plain, body_type, strict=False)
    large = {
        name: value
        for name, value in plain.items()
        if type(value) is dict and len(value) > _ENTRIES_AT_ONCE and name in _map_fields(body_type)
    }
    if large:
        plain = {name: {} if name in large else value for name, value in plain.items()}
    body = msgspec.convert(plain, body_type, strict=False)
    for name, value in large.items():
        field = _map_fields(body_type)[name]
        entries: dict[Any, Any] = getattr(body, field.name)
        for part in _parts(value):
            entries.update(msgspec.convert(part, field.type, strict=False))
    return body


def _parts(table: dict[Any, Any]) -> Iterator[dict[Any, Any]]:
    """Yield the entries of a map in maps of some thousand values."""
    part: dict[Any, Any] = {}
    values = 0
    for key, value in table.items():
        part[key] = value
        values += len(value) if type(value) in _CONTAINERS else 1
        if values > _VALUES_PER_PART:
            yield part
            part, values = {}, 0
    yield part


@functools.cache
def _map_fields(body_type: type[msgspec.Struct]) -> dict[str, msgspec.structs.FieldInfo]:
    """Return the fields of a body that are maps, by encoded name."""
    fields = msgspec.structs.fields(body_type)
    return {field.encode_name: field for field in fields if get_origin(field.type) is dict}


def _unpacked(data: bytes, max_values: int | None, *, in_parts: bool) -> Any:
    if max_values is not None and len(data) - len(data.translate(None, _MSGPACK_TYPES)) > max_values:
        raise BodyError(f"msgpack body: more than {max_values} values")
    try:
        value = _unpack_in_parts(data) if in_parts else _UNPACK(data)
    # An unhashable map key is a TypeError.
    except (*DECODE_FAILURES, TypeError) as error:
        raise BodyError(f"msgpack body: {error}") from None
    if fastjson.is_deeper_than(value, MAX_BODY_DEPTH):
        raise BodyError(f"msgpack body: nested deeper than {MAX_BODY_DEPTH}")
    return value


def _unpack_in_parts(data: bytes | msgspec.Raw, depth: int = 0) -> Any:
    """Unpack a large value container by container.

    Clients do so on a worker thread. The interpreter can change threads only between two calls, and one call
    for 100,000 queues held the event loop for 30 ms.
    """
    size = len(memoryview(data))
    if size <= _PART_BYTES:
        return _UNPACK(data)
    if depth > MAX_BODY_DEPTH:
        raise BodyError(f"msgpack body: nested deeper than {MAX_BODY_DEPTH}")
    first = memoryview(data)[0]
    if first & 0xF0 == _FIXMAP or first in _MAPS:
        return {key: _unpack_in_parts(part, depth + 1) for key, part in _MAP_PARTS(data).items()}
    if first & 0xF0 == _FIXARRAY or first in _ARRAYS:
        return [_unpack_in_parts(part, depth + 1) for part in _ARRAY_PARTS(data)]
    return _UNPACK(data)
