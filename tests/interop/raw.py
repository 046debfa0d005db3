"""Requests without any client: one frame out, one frame back, over a plain socket."""

from __future__ import annotations

import socket
from typing import Final

from rewindmq.protocol.command import RemotingCommand, SerializeType
from rewindmq.protocol.frame import FrameDecoder, encode_frame
from rewindmq.protocol.remoting.address import parse_address

_SECONDS: Final = 10.0
_CHUNK: Final = 1 << 16


def ask(
    address: str,
    command: RemotingCommand,
    codec: SerializeType = SerializeType.JSON,
    seconds: float = _SECONDS,
) -> RemotingCommand:
    """The answer to ``command``.

    Raises:
        ConnectionError: the peer closed instead.
        TimeoutError: it said nothing.
    """
    frame = encode_frame(command, codec)
    decoder = FrameDecoder()
    with socket.create_connection(parse_address(address), seconds) as connection:
        connection.sendall(frame)
        while data := connection.recv(_CHUNK):
            for answer in decoder.feed(data):
                return answer
    raise ConnectionError(f"{address} closed the connection instead of answering {command.code}")
