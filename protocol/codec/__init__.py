"""Header codecs: three ways to write one header, chosen by the frame's type byte.

Specification: docs/spec/protocol.md 2.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final, Protocol

from rewindmq.protocol.codec import json_header, msgpack_header, rocketmq_header
from rewindmq.protocol.command import RemotingCommand, SerializeType


class HeaderCodec(Protocol):
    """What each codec module offers."""

    def encode_header(self, command: RemotingCommand) -> bytes:
        """The header's bytes; the body is not looked at."""

    def decode_header(self, data: bytes) -> RemotingCommand:
        """The command in ``data``, without body.

        Raises:
            FrameError: ``data`` is not exactly one header of this codec.
        """


HEADER_CODECS: Final = MappingProxyType[int, HeaderCodec](
    {
        SerializeType.JSON: json_header,
        SerializeType.ROCKETMQ: rocketmq_header,
        SerializeType.MSGPACK: msgpack_header,
    }
)
