"""Requests without a client: sends bytes over a plain socket and returns the frames that come back."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Mapping
from types import TracebackType
from typing import Final, Self

from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import FLAG_RESPONSE, RemotingCommand, SerializeType
from rewindmq.protocol.frame import FrameDecoder, encode_frame
from rewindmq.protocol.header.admin import CreateTopicRequestHeader
from rewindmq.protocol.remoting.address import parse_address

_SECONDS: Final = 10.0
_PATIENCE_SECONDS: Final = 300.0
_CHUNK: Final = 1 << 16
_PREFIX: Final = struct.Struct(">II")


def ask(
    address: str,
    command: RemotingCommand,
    codec: SerializeType = SerializeType.JSON,
    seconds: float = _SECONDS,
) -> RemotingCommand:
    """Send ``command`` and return the answer.

    Raises:
        ConnectionError: the peer closed the connection instead.
        TimeoutError: the peer did not answer.
    """
    data = encode_frame(command, codec)
    decoder = FrameDecoder()
    with socket.create_connection(parse_address(address), seconds) as connection:
        connection.sendall(data)
        while data := connection.recv(_CHUNK):
            for answer in decoder.feed(data):
                return answer
    raise ConnectionError(f"{address} closed the connection instead of answering {command.code}")


def create_topic(address: str, topic: str, queues: int, perm: int = 6) -> None:
    """Have a broker create a topic, with a longer timeout than an admin client: its JVM may be new.

    Args:
        perm: 4 to read, 2 to write, or their sum.

    Raises:
        ResponseError: the broker refused.
    """
    header = CreateTopicRequestHeader(
        topic=topic,
        default_topic="TBW102",
        read_queue_nums=queues,
        write_queue_nums=queues,
        perm=perm,
        topic_filter_type="SINGLE_TAG",
    )
    command = RemotingCommand(RequestCode.UPDATE_AND_CREATE_TOPIC, header)
    ask(address, command, seconds=_PATIENCE_SECONDS).require_success()


def frame(
    header: bytes | str | Mapping[str, object],
    body: bytes = b"",
    *,
    codec: int = SerializeType.JSON,
    length: int | None = None,
    header_length: int | None = None,
) -> bytes:
    """Return a frame with the given content, however wrong.

    Args:
        header: the header's bytes, its text, or the fields of a JSON header.
        codec: the type byte, 0 to 255.
        length: the value of the first word, instead of the true one.
        header_length: the value of the second word, instead of the true one.
    """
    if isinstance(header, Mapping):
        header = json.dumps(header)
    if isinstance(header, str):
        header = header.encode("utf-8", "surrogatepass")
    if header_length is None:
        header_length = len(header)
    if length is None:
        length = 4 + len(header) + len(body)
    return _PREFIX.pack(length, codec << 24 | header_length) + header + body


class RawConnection:
    """A connection that sends exactly the given bytes and ignores the peer's requests."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._decoder = FrameDecoder()
        self._answers: list[RemotingCommand] = []
        self.is_closed = False

    @classmethod
    async def open(cls, address: str) -> Self:
        host, port = parse_address(address)
        return cls(*await asyncio.open_connection(host, port))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.transport.abort()

    def send(self, data: bytes) -> None:
        self._writer.write(data)

    def send_end(self) -> None:
        """Close the sending side; the peer may still answer."""
        self._writer.write_eof()

    async def answer(self, seconds: float = _SECONDS) -> RemotingCommand | None:
        """Return the next answer; None if the peer closed (``is_closed``) or sent none in ``seconds``."""
        try:
            async with asyncio.timeout(seconds):
                while not self._answers and not self.is_closed:
                    await self._read()
        except TimeoutError:
            return None
        return self._answers.pop(0) if self._answers else None

    async def _read(self) -> None:
        try:
            data = await self._reader.read(_CHUNK)
        except ConnectionError:
            data = b""
        if not data:
            self.is_closed = True
        self._answers += [answer for answer in self._decoder.feed(data) if answer.flag & FLAG_RESPONSE]
