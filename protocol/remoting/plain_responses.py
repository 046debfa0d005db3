"""Completes requests whose responses are plain, without a ``RemotingCommand`` for each response.

A plain response has a msgpack header with code SUCCESS (0) and ext fields, and neither a remark nor a body.
Whatever differs is left to ``FrameDecoder`` and ``PendingRequests.complete``, which give the same header.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from typing import Final

from rewindmq.protocol.command import DECODE_FAILURES, CommandHeader, RemotingCommand, SerializeType

# Decodes the ext fields of a plain response.
DecodeExt = Callable[[bytes], CommandHeader]
# The result of a request: its response, or only the typed header of a plain response.
Response = RemotingCommand | CommandHeader
# The future, the deadline and the timeout of a request, and how to decode a plain response to it.
PendingRequest = tuple[asyncio.Future[Response], float, float, DecodeExt | None]

# Length and second word of the frame; array of seven, code 0, language and mark of the version; the version;
# mark of the opaque, and the bytes from the opaque to the first byte of the ext fields.
_FRAME: Final = struct.Struct(">IIIHBIHB")
_FRAME_BYTES: Final = _FRAME.size
_UNPACK: Final = _FRAME.unpack_from
# A longer response is not plain.
_MAX_LENGTH: Final = 1024
_MSGPACK_WORD: Final = SerializeType.MSGPACK << 24
# The language is any byte that is a number by itself.
_BEGIN: Final = 0x970000CD
_BEGIN_MASK: Final = 0xFFFF80FF
_UINT16: Final = 0xCD
_UINT32: Final = 0xCE
# The flag of a response, and nil for the remark.
_RESPONSE_AND_NIL: Final = 0x01C0
_FIXMAP: Final = 0x80
_FIXMAP_MASK: Final = 0xF0
# From the begin of a frame to its ext fields, if its opaque is a uint32.
_EXT_OFFSET: Final = 21


def complete_plain(table: dict[int, PendingRequest], data: bytes, position: int) -> int:
    """Complete the requests of the leading plain responses of ``data`` from ``position`` on.

    Args:
        table: the pending requests by opaque; completed ones are removed.

    Returns:
        The position behind these responses.
    """
    end = len(data)
    while end - position >= _FRAME_BYTES:
        length, word, begin, _, kind, opaque, flag, first = _UNPACK(data, position)
        frame_end = position + 4 + length
        if (
            begin & _BEGIN_MASK != _BEGIN
            or length > _MAX_LENGTH
            # No body.
            or word != _MSGPACK_WORD + length - 4
            or frame_end > end
        ):
            break
        ext = position + _EXT_OFFSET
        if kind == _UINT16:
            # The opaque is two bytes shorter.
            opaque, flag, first = opaque >> 16, opaque & 0xFFFF, flag >> 8
            ext -= 2
        elif kind != _UINT32:
            break
        entry = table.get(opaque)
        if flag != _RESPONSE_AND_NIL or first & _FIXMAP_MASK != _FIXMAP or entry is None:
            break
        decode = entry[3]
        if decode is None:
            break
        try:
            header = decode(data[ext:frame_end])
        except DECODE_FAILURES:
            break
        del table[opaque]
        future = entry[0]
        if not future.done():
            future.set_result(header)
        position = frame_end
    return position
