"""Header codecs, one for each serialization type (the frame's type byte).

Specification: docs/spec/protocol.md 2.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final, Protocol

from rewindmq.protocol.codec import json_header, msgpack_header, rocketmq_header
from rewindmq.protocol.command import RemotingCommand, SerializeType


class HeaderCodec(Protocol):
    """The functions that each codec module has."""

    def encode_header(self, command: RemotingCommand) -> bytes:
        """Return the header's bytes, without the body."""

    def decode_header(self, data: bytes) -> RemotingCommand:
        """Return the command in ``data``, without body.

        Raises:
            FrameError: ``data`` is not exactly one header of this serialization type.
        """


HEADER_CODECS: Final = MappingProxyType[int, HeaderCodec](
    {
        SerializeType.JSON: json_header,
        SerializeType.ROCKETMQ: rocketmq_header,
        SerializeType.MSGPACK: msgpack_header,
    }
)
