"""Type 2: the header as one msgpack array, RewindMQ's native type (docs/spec/protocol.md 2.4)."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from rewindmq.protocol.command import DECODE_FAILURES, RemotingCommand, SerializeType
from rewindmq.protocol.errors import FrameError
from rewindmq.protocol.integers import Int32
from rewindmq.protocol.limits import MAX_EXT_FIELDS

_UInt31 = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]

_NIL: Final = 0xC0
_FIXMAP: Final = 0x80
_FIXMAP_MASK: Final = 0xF0
_MAP16: Final = 0xDE


class _Envelope(msgspec.Struct, array_like=True, gc=False):
    code: Int32
    language: _UInt31
    version: _UInt31
    opaque: Int32
    flag: _UInt31
    remark: str | None
    ext: msgspec.Raw


_DECODER: Final = msgspec.msgpack.Decoder(_Envelope)
_ENCODE: Final = msgspec.msgpack.Encoder().encode


def encode_header(command: RemotingCommand) -> bytes:
    """Write the header; a typed header becomes the ext map without an intermediate dict.

    Raises:
        FrameError: a number exceeds 64 bits, or a text contains a lone surrogate.
    """
    ext: object = command.header
    if ext is None:
        # A forwarded command: its received ext fields are sent as they are, without decoding.
        raw = command.raw_ext if command.serialize_type is SerializeType.MSGPACK else None
        ext = command.ext or None if raw is None else msgspec.Raw(raw)
    elif command.ext_fields or command.raw_ext:
        ext = command.all_ext_fields()
    try:
        return _ENCODE(
            (
                command.code,
                command.language,
                command.version,
                command.opaque,
                command.flag,
                command.remark,
                ext,
            )
        )
    except (OverflowError, UnicodeEncodeError) as error:
        raise FrameError(f"msgpack header: {error}") from None


def decode_header(data: bytes) -> RemotingCommand:
    """Read the header; ``RemotingCommand.ext`` decodes the ext fields on first use.

    Raises:
        FrameError: not an array of at least seven elements of the right types, or bytes left over.
    """
    try:
        envelope = _DECODER.decode(data)
    except DECODE_FAILURES as error:
        raise FrameError(f"msgpack header: {error}") from None
    packed = bytes(envelope.ext)
    first = packed[0]
    if first == _NIL:
        raw_ext = None
    elif first & _FIXMAP_MASK == _FIXMAP or (
        first == _MAP16 and int.from_bytes(packed[1:3], "big") <= MAX_EXT_FIELDS
    ):
        raw_ext = packed
    else:
        raise FrameError("msgpack header: ext fields are not a map, or too many")
    return RemotingCommand(
        envelope.code,
        remark=envelope.remark,
        language=envelope.language,
        version=envelope.version,
        opaque=envelope.opaque,
        flag=envelope.flag,
        raw_ext=raw_ext,
    )
