"""Type 0: the header as one JSON object, which official clients use (docs/spec/protocol.md 2.1)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from rewindmq.protocol.codec import fastjson
from rewindmq.protocol.codec.ext_fields import text_fields
from rewindmq.protocol.command import DECODE_FAILURES, ExtValue, RemotingCommand, SerializeType
from rewindmq.protocol.errors import BodyError, FrameError
from rewindmq.protocol.ext_text import ext_text
from rewindmq.protocol.integers import Int32
from rewindmq.protocol.limits import MAX_EXT_FIELDS, MAX_HEADER_VALUES
from rewindmq.protocol.version import LanguageCode


class _Header(msgspec.Struct, rename="camel", omit_defaults=True, gc=False):
    """Fields in Java's alphabetical order; ``serializeTypeCurrentRPC`` is ignored when reading."""

    code: Int32
    ext_fields: dict[str, str | int | float | bool | None] | None = None
    flag: Int32 | None = None
    language: str | int | None = None
    opaque: Int32 | None = None
    remark: str | None = None
    serialize_type: str | None = msgspec.field(name="serializeTypeCurrentRPC", default=None)
    version: Int32 | None = None


class _PlainHeader(msgspec.Struct, rename="camel", gc=False):
    """The same fields as official clients write them: no field is null."""

    code: Int32
    ext_fields: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    flag: Int32 = 0
    language: str = LanguageCode.JAVA.name
    opaque: Int32 = 0
    remark: str | None = None
    version: Int32 = 0


class _TolerantHeader(msgspec.Struct, rename="camel", gc=False):
    """The same fields as Java reads them: any scalar as text, and 0 for a missing number."""

    code: Int32 | None = None
    ext_fields: dict[str, Any] | None = None
    flag: Int32 | None = None
    language: str | int | None = None
    opaque: Int32 | None = None
    remark: Any = None
    version: Int32 | None = None


_DECODE_PLAIN: Final = msgspec.json.Decoder(_PlainHeader).decode
_DECODER: Final = msgspec.json.Decoder(_Header)
# Used for every frame: ``LanguageCode(...)`` takes longer than the rest of the header.
_LANGUAGES: Final = MappingProxyType({language.name: language for language in LanguageCode})
_LANGUAGE_NAMES: Final = MappingProxyType({int(language): language.name for language in LanguageCode})
_OTHER: Final = LanguageCode.OTHER
_JSON: Final = SerializeType.JSON
# ``bytes`` finds a number much faster than a text of one byte.
_OPENING_OF_ARRAY: Final = ord("[")
# Text of at most this length has at most MAX_EXT_FIELDS fields: each takes at least the bytes of `"":0,`.
_SURELY_FEW_BYTES: Final = 5 * MAX_EXT_FIELDS
_ENCODE: Final = msgspec.json.Encoder().encode


def encode_header(command: RemotingCommand) -> bytes:
    """Write the header without absent remark and ext fields; every ext value becomes text.

    Raises:
        FrameError: an ext value has no text form, or a text contains a lone surrogate.
    """
    header = _Header(
        int(command.code),
        text_fields(command) or None,  # type: ignore[arg-type]  # dict is invariant
        int(command.flag),
        _LANGUAGE_NAMES.get(command.language) or LanguageCode.parse(command.language).name,
        command.opaque,
        command.remark,
        "JSON",
        command.version,
    )
    try:
        return _ENCODE(header)
    except UnicodeEncodeError as error:
        raise FrameError(f"JSON header: {error}") from None


def decode_header(data: bytes) -> RemotingCommand:
    """Read the header. Any field may be missing or null; a missing number is 0.

    Numbers and booleans among the ext fields (ali-ons sends them) become text, nulls become absent. A header
    that is not JSON is read as fastjson does (``fastjson.loads``), as 4.9.7 and 5.5.0 do.

    Raises:
        FrameError: not an object, a field of the wrong type, a number beyond int32, too many ext fields.
    """
    try:
        plain = _DECODE_PLAIN(data)
    except DECODE_FAILURES:
        return _decode_other(data)
    raw_ext = bytes(plain.ext_fields)
    # Check that the ext fields are a map without nested values and not too large; inline because every
    # request needs it.
    if raw_ext and not (
        raw_ext.rfind(b"{") == 0
        and _OPENING_OF_ARRAY not in raw_ext
        and len(raw_ext) <= _SURELY_FEW_BYTES
        and data.isascii()
    ):
        return _decode_other(data)
    return RemotingCommand(
        plain.code,
        remark=plain.remark,
        language=_LANGUAGES.get(plain.language, _OTHER),
        version=plain.version,
        opaque=plain.opaque,
        flag=plain.flag,
        raw_ext=raw_ext or None,
        serialize_type=_JSON,
    )


def _decode_other(data: bytes) -> RemotingCommand:
    header: _Header | _TolerantHeader
    try:
        header = _DECODER.decode(data)
    except DECODE_FAILURES:
        header = _tolerant(data)
    return RemotingCommand(
        header.code or 0,
        remark=header.remark,
        language=LanguageCode.JAVA if header.language is None else LanguageCode.parse(header.language),
        version=header.version or 0,
        opaque=header.opaque or 0,
        flag=header.flag or 0,
        ext_fields=_checked_ext(header.ext_fields),
        serialize_type=_JSON,
    )


def _tolerant(data: bytes) -> _TolerantHeader:
    try:
        header = msgspec.convert(fastjson.loads(data, MAX_HEADER_VALUES), _TolerantHeader, strict=False)
        header.remark = _text(header.remark)
        if header.ext_fields:
            header.ext_fields = {key: _text(value) for key, value in header.ext_fields.items()}
    except (*DECODE_FAILURES, BodyError) as error:
        raise FrameError(f"JSON header: {error}") from None
    return header


def _text(value: Any) -> str | None:
    return fastjson.dumps(value) if isinstance(value, (dict, list)) else ext_text(value)


def _checked_ext(fields: dict[str, str | int | float | bool | None] | None) -> dict[str, ExtValue] | None:
    if not fields:
        return None
    if len(fields) > MAX_EXT_FIELDS:
        raise _too_many(fields)
    return {key: text for key, value in fields.items() if (text := ext_text(value)) is not None}


def _too_many(fields: Mapping[str, object]) -> FrameError:
    return FrameError(f"JSON header: {len(fields)} ext fields, at most {MAX_EXT_FIELDS} are allowed")
