"""RemotingCommand: one request or response, independent of its serialization type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Any, Final, TypeVar

import msgspec

from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import HeaderError, ResponseError
from rewindmq.protocol.ext_text import ext_text
from rewindmq.protocol.version import CURRENT_VERSION, LanguageCode

FLAG_RESPONSE: Final = 1
FLAG_ONEWAY: Final = 2

ExtValue = str | int | bool | bytes | None
# A body before the frame encoder encodes it: raw bytes, or a structured value (``body/``).
Body = bytes | memoryview | msgspec.Struct | None


class SerializeType(IntEnum):
    """The frame's type byte: the serialization type of its header and of every structured body in it."""

    JSON = 0
    ROCKETMQ = 1
    MSGPACK = 2


class CommandHeader(msgspec.Struct, omit_defaults=True, rename="camel", gc=False):
    """Base of every typed header: snake_case names in Python, RocketMQ's camelCase names in a frame.

    A field without default is required. ``None`` and values equal to the default are not sent.
    """


# The errors that msgspec raises for malformed bytes, for a value of another type, and for nesting beyond the
# interpreter's recursion limit.
DECODE_FAILURES: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

# Bound once: each access to a member through its enum class costs as much as a look-up in a dict.
_JSON: Final = SerializeType.JSON

HeaderT = TypeVar("HeaderT", bound=CommandHeader)
BodyT = TypeVar("BodyT", bound=msgspec.Struct)

_Decode = Callable[[bytes], Any]
# Decoders by header type; each is created on first use.
_DECODE_MSGPACK: dict[type[CommandHeader], _Decode] = {}
_DECODE_JSON: dict[type[CommandHeader], _Decode] = {}
_UNTYPED: Final = msgspec.msgpack.Decoder(dict[str, Any])
_PLAIN_JSON: Final = msgspec.json.Decoder(dict[str, str | int | float | bool | None])
_EXT_TYPES: Final = frozenset((str, int, bool, bytes, type(None)))
_NO_EXT: Final[Mapping[str, ExtValue]] = MappingProxyType({})


class _Content(msgspec.Struct, eq=False, gc=False):
    code: int
    header: CommandHeader | None = None
    body: Body = None


class RemotingCommand(_Content, kw_only=True, eq=False, gc=False):
    """The fields that requests and responses share (docs/spec/protocol.md 1.2).

    A struct because every frame in each direction creates a command; a struct never forms reference cycles.

    Attributes:
        code: request code, or response code when ``is_response``.
        header: the typed header to send; None in a received command, see ``decode_header``.
        body: to send: bytes or a structured value; received: bytes, or None if empty or absent.
        remark: error text, or None.
        language: the sender's ``LanguageCode`` number.
        version: the sender's ``MQVersion`` ordinal.
        opaque: int32 chosen by the requester, copied into the response.
        flag: bit 0 response, bit 1 oneway.
        ext_fields: ext fields beside the typed header; read them through ``ext``.
        raw_ext: the received ext fields, still encoded in msgpack or JSON (see ``serialize_type``), until
            ``ext`` decodes them. The header codec has checked that JSON text contains no nested values.
        serialize_type: the serialization type of a received command; the connection sets it when sending.
    """

    remark: str | None = None
    language: int = int(LanguageCode.PYTHON)
    version: int = CURRENT_VERSION
    opaque: int = 0
    flag: int = 0
    ext_fields: Mapping[str, ExtValue] | None = None
    raw_ext: bytes | None = None
    serialize_type: SerializeType = SerializeType.MSGPACK

    @property
    def is_response(self) -> bool:
        return self.flag & FLAG_RESPONSE != 0

    @property
    def is_oneway(self) -> bool:
        return self.flag & FLAG_ONEWAY != 0

    @property
    def received_bytes(self) -> int:
        """The bytes of a received command's body and of its encoded ext fields."""
        body = len(self.body) if isinstance(self.body, (bytes, memoryview)) else 0
        return body + (len(self.raw_ext) if self.raw_ext is not None else 0)

    def drop_content(self) -> None:
        """Drop the body and the ext fields of a received request that is answered later."""
        self.body = self.ext_fields = self.raw_ext = None

    @property
    def ext(self) -> Mapping[str, ExtValue]:
        """Return the ext fields without those of ``header``; ``all_ext_fields`` merges both.

        Raises:
            HeaderError: the encoded ext fields are not a map from text to plain values.
        """
        if self.ext_fields is None:
            if self.raw_ext is None:
                return _NO_EXT
            unpack = _read_json_ext if self.serialize_type is SerializeType.JSON else _unpack_ext
            self.ext_fields = unpack(self.raw_ext)
        return self.ext_fields

    def all_ext_fields(self) -> dict[str, ExtValue]:
        """Return the ext fields to send; a field of the typed header wins."""
        if self.header is None:
            return dict(self.ext)
        fields: dict[str, ExtValue] = msgspec.to_builtins(self.header)
        return {**self.ext, **fields} if self.ext_fields or self.raw_ext else fields

    def set_ext(self, key: str, value: ExtValue) -> None:
        """Add an ext field beside the typed header (docs/spec/protocol.md 3.1)."""
        self.ext_fields = {**self.ext, key: value}
        self.raw_ext = None

    def decode_header(self, header_type: type[HeaderT]) -> HeaderT:
        """Return the typed header of a received command.

        Raises:
            HeaderError: a required field is missing or a value has the wrong type. Its code is SYSTEM_ERROR
                (1), which RocketMQ returns when its handler fails on the field.
        """
        try:
            raw = self.raw_ext
            if raw is not None and self.serialize_type is _JSON:
                try:
                    decode = _DECODE_JSON.get(header_type) or _json_decoder(header_type)
                    return decode(raw)  # type: ignore[no-any-return]
                except DECODE_FAILURES:
                    # ``ext`` drops nulls and converts numbers to text; ``convert`` parses text for number
                    # fields.
                    return msgspec.convert(self.ext, header_type, strict=False)
            if raw is not None:
                decode = _DECODE_MSGPACK.get(header_type) or _msgpack_decoder(header_type)
                return decode(raw)  # type: ignore[no-any-return]
            return msgspec.convert(self.ext_fields or {}, header_type, strict=False)
        except DECODE_FAILURES as error:
            raise HeaderError(f"{header_type.__name__}: {error}") from None

    def require_success(self) -> RemotingCommand:
        """Return self if this is a response with code SUCCESS (0).

        Raises:
            ResponseError: any other code.
        """
        if self.code != ResponseCode.SUCCESS:
            raise ResponseError(self.code, self.remark)
        return self

    def __repr__(self) -> str:
        kind = "response" if self.is_response else "oneway" if self.is_oneway else "request"
        size = len(self.body) if isinstance(self.body, (bytes, memoryview)) else None
        return (
            f"<RemotingCommand {kind} code={self.code} opaque={self.opaque} "
            f"remark={self.remark!r} body={size}>"
        )


def _msgpack_decoder(header_type: type[CommandHeader]) -> _Decode:
    decode = _DECODE_MSGPACK[header_type] = msgspec.msgpack.Decoder(header_type, strict=False).decode
    return decode


def _json_decoder(header_type: type[CommandHeader]) -> _Decode:
    decode = _DECODE_JSON[header_type] = msgspec.json.Decoder(header_type, strict=False).decode
    return decode


def _read_json_ext(raw: bytes) -> dict[str, ExtValue]:
    try:
        fields = _PLAIN_JSON.decode(raw)
    except DECODE_FAILURES as error:
        raise HeaderError(f"ext fields: {error}") from None
    return {key: text for key, value in fields.items() if (text := ext_text(value)) is not None}


def _unpack_ext(raw: bytes) -> dict[str, ExtValue]:
    try:
        fields: dict[str, ExtValue] = _UNTYPED.decode(raw)
    except DECODE_FAILURES as error:
        raise HeaderError(f"ext fields: {error}") from None
    for key, value in fields.items():
        if type(value) not in _EXT_TYPES:
            raise HeaderError(f"ext field {key!r} is a {type(value).__name__}")
    return fields
