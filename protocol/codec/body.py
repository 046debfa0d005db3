"""Encodes and decodes structured bodies in the form that the serialization type requires.

Specification: docs/spec/protocol.md 2.4, 5.

JSON and ROCKETMQ frames carry fastjson text; MSGPACK frames carry msgpack with typed map keys. This module
does not handle raw bodies (message bodies, record streams, properties texts).
"""

from __future__ import annotations

import functools
from typing import Any, Final, TypeVar

import msgpack
import msgspec

from rewindmq.protocol.body import RemotingBody
from rewindmq.protocol.codec import fastjson
from rewindmq.protocol.codec.body_shape import repair_for
from rewindmq.protocol.command import DECODE_FAILURES, RemotingCommand, SerializeType
from rewindmq.protocol.errors import BodyError
from rewindmq.protocol.limits import MAX_BODY_DEPTH
from rewindmq.protocol.message_queue import MessageQueue

BodyT = TypeVar("BodyT", bound=RemotingBody)

# msgspec grows a container as it reads elements; msgpack's own reader allocates the size that the bytes
# claim.
_UNPACK: Final = msgspec.msgpack.Decoder().decode
_SCALARS: Final = (str, int, float, bytes)


def encode_body(body: msgspec.Struct, serialize_type: SerializeType, standard_json: bool = False) -> bytes:
    """Return the bytes of a structured body.

    Args:
        standard_json: the receiver wants strict JSON; applies where the body type ``may_be_standard_json``.

    Raises:
        BodyError: a text contains a lone surrogate, or an integer exceeds 64 bits.
    """
    plain = _plain(body)
    if serialize_type is SerializeType.MSGPACK:
        try:
            packed: bytes = msgpack.packb(plain)
        except (OverflowError, UnicodeEncodeError) as error:
            raise BodyError(f"{type(body).__name__}: {error}") from None
        return packed
    standard = standard_json and isinstance(body, RemotingBody) and body.may_be_standard_json
    return fastjson.dumps(plain, standard=standard).encode()


def _plain(value: Any) -> Any:
    """Convert structs to dicts with encoded names, without None fields; sort sets, keep keys."""
    if isinstance(value, _SCALARS):
        return value
    if isinstance(value, msgspec.Struct):
        return {
            wire_name: _plain(member)
            for name, wire_name in _members(type(value))
            if (member := getattr(value, name)) is not None
        }
    if isinstance(value, dict):
        return {key: _plain(member) for key, member in value.items()}
    if isinstance(value, MessageQueue):
        return {"topic": value.topic, "brokerName": value.broker_name, "queueId": value.queue_id}
    if isinstance(value, (set, frozenset)):
        return [_plain(member) for member in sorted(value)]
    if isinstance(value, (list, tuple)):
        return [_plain(member) for member in value]
    return value


@functools.cache
def _members(struct: type[msgspec.Struct]) -> tuple[tuple[str, str], ...]:
    return tuple(zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True))


def decode_body(command: RemotingCommand, body_type: type[BodyT]) -> BodyT:
    """Return the typed body of a received command.

    Unknown fields are ignored; absent and null fields take their default.

    Raises:
        BodyError: no body, bytes that do not parse, a required field missing, a value of the wrong type or
            out of range.
    """
    data = command.body
    if data is None or isinstance(data, msgspec.Struct):
        raise BodyError(f"{body_type.__name__}: the request has no body")
    data = bytes(data)
    plain = _unpacked(data) if command.serialize_type is SerializeType.MSGPACK else fastjson.loads(data)
    try:
        return msgspec.convert(repair_for(body_type)(plain), body_type, strict=False)
    except DECODE_FAILURES as error:
        raise BodyError(f"{body_type.__name__}: {error}") from None


def _unpacked(data: bytes) -> Any:
    try:
        value = _UNPACK(data)
    # An unhashable map key is a TypeError.
    except (*DECODE_FAILURES, TypeError) as error:
        raise BodyError(f"msgpack body: {error}") from None
    if fastjson.is_deeper_than(value, MAX_BODY_DEPTH):
        raise BodyError(f"msgpack body: nested deeper than {MAX_BODY_DEPTH}")
    return value
