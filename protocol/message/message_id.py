"""Message ids: the offset id, which the broker assigns, and the unique id, which the producer assigns.

Specification: docs/spec/protocol.md 6.7.
"""

from __future__ import annotations

import struct
from typing import Final

from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import RequestError

_OFFSET: Final = struct.Struct(">q")
# A larger port means that the text is a producer's unique id, which has the same form.
_MAX_PORT: Final = 0xFFFF


def offset_message_id(store_host: bytes, commit_log_offset: int) -> str:
    """Upper-case hex of the store host (address and 4-byte port) and the log position."""
    return (store_host + _OFFSET.pack(commit_log_offset)).hex().upper()


def parse_offset_message_id(text: str) -> tuple[bytes, int]:
    """Return the store host's bytes and the log position of an offset id of 32 or 56 hex characters.

    Raises:
        RequestError: SYSTEM_ERROR (1), the text is not an offset id.
    """
    try:
        packed = bytes.fromhex(text)
    except ValueError:
        packed = b""
    port = int.from_bytes(packed[-12:-8])
    if len(packed) not in (16, 28) or len(text) != 2 * len(packed) or port > _MAX_PORT:
        raise RequestError(ResponseCode.SYSTEM_ERROR, f"{text!r} is not an offset message id")
    return packed[:-8], int(_OFFSET.unpack(packed[-8:])[0])
