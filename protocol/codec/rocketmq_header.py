"""Type 1: the header in RocketMQ's own binary form (docs/spec/protocol.md 2.2)."""

from __future__ import annotations

import struct
from typing import Final

from rewindmq.protocol.codec.ext_fields import text_fields
from rewindmq.protocol.command import ExtValue, RemotingCommand, SerializeType
from rewindmq.protocol.errors import FrameError
from rewindmq.protocol.limits import MAX_EXT_FIELDS
from rewindmq.protocol.version import LanguageCode

# code, language, version, opaque, flag, length of the remark.
_FIXED: Final = struct.Struct(">hBhiii")
_KEY_LENGTH: Final = struct.Struct(">h")
_VALUE_LENGTH: Final = struct.Struct(">i")


def encode_header(command: RemotingCommand) -> bytes:
    """Write the header.

    Raises:
        FrameError: a code or version beyond int16 (all POP codes), a key beyond 32 767 bytes, or a text with
            a lone surrogate.
    """
    try:
        remark = (command.remark or "").encode()
        entries = b"".join(_encode_entry(key, value) for key, value in text_fields(command).items())
        return b"".join(
            (
                _FIXED.pack(
                    command.code,
                    LanguageCode.parse(command.language),
                    command.version,
                    command.opaque,
                    command.flag,
                    len(remark),
                ),
                remark,
                _VALUE_LENGTH.pack(len(entries)),
                entries,
            )
        )
    except (struct.error, UnicodeEncodeError) as error:
        raise FrameError(
            f"code {int(command.code)} cannot be written in a ROCKETMQ header: {error}"
        ) from None


def _encode_entry(key: str, value: str) -> bytes:
    name, text = key.encode(), value.encode()
    return b"".join((_KEY_LENGTH.pack(len(name)), name, _VALUE_LENGTH.pack(len(text)), text))


def decode_header(data: bytes) -> RemotingCommand:
    """Read the header. An empty remark is null; if a key is repeated, its last value applies.

    Raises:
        FrameError: lengths that do not match ``data``, text that is not UTF-8, too many ext fields.
    """
    try:
        code, language, version, opaque, flag, remark_length = _FIXED.unpack_from(data)
        remark_end = _FIXED.size + _checked_length(remark_length)
        (ext_length,) = _VALUE_LENGTH.unpack_from(data, remark_end)
        ext_at = remark_end + _VALUE_LENGTH.size
        if ext_at + _checked_length(ext_length) != len(data):
            raise FrameError(f"ROCKETMQ header: {len(data)} bytes, lengths say {ext_at + ext_length}")
        return RemotingCommand(
            code,
            remark=data[_FIXED.size : remark_end].decode() or None,
            language=LanguageCode.parse(language),
            version=version,
            opaque=opaque,
            flag=flag,
            ext_fields=_decode_entries(data, ext_at),
            serialize_type=SerializeType.ROCKETMQ,
        )
    except (struct.error, UnicodeDecodeError) as error:
        raise FrameError(f"ROCKETMQ header: {error}") from None


def _decode_entries(data: bytes, position: int) -> dict[str, ExtValue]:
    fields: dict[str, ExtValue] = {}
    end = len(data)
    entries = 0
    while position < end:
        (key_length,) = _KEY_LENGTH.unpack_from(data, position)
        value_length_at = position + _KEY_LENGTH.size + _checked_length(key_length)
        (value_length,) = _VALUE_LENGTH.unpack_from(data, value_length_at)
        value_at = value_length_at + _VALUE_LENGTH.size
        value_end = value_at + _checked_length(value_length)
        if value_end > end:
            raise FrameError("ROCKETMQ header: an ext field runs past the end")
        entries += 1
        if entries > MAX_EXT_FIELDS:
            raise FrameError(f"ROCKETMQ header: more than {MAX_EXT_FIELDS} ext fields")
        # Java reads a text of length 0 as null, and treats a null field as absent.
        if key_length and value_length:
            key = data[position + _KEY_LENGTH.size : value_length_at].decode()
            fields[key] = data[value_at:value_end].decode()
        position = value_end
    return fields


def _checked_length(length: int) -> int:
    if length < 0:
        raise FrameError(f"ROCKETMQ header: length {length}")
    return length
