"""Frames: the length-prefixed envelope every codec shares, and a decoder fed with whatever arrived.

``wire.md`` 1.1: 4-byte length of what follows, 1-byte serialize type and 3-byte header length, header,
body. All integers big-endian.
"""

from __future__ import annotations

import struct
from typing import Final

import msgspec

from rewindmq.protocol.body_codec import encode_body
from rewindmq.protocol.codec import HEADER_CODECS, HeaderCodec
from rewindmq.protocol.command import RemotingCommand, SerializeType
from rewindmq.protocol.errors import FrameError
from rewindmq.protocol.limits import MAX_FRAME_BYTES, MAX_HEADER_BYTES

_PREFIX: Final = struct.Struct(">II")
_LENGTH_BYTES: Final = 4
_HEADER_LENGTH_MASK: Final = 0xFFFFFF


def encode_frame(
    command: RemotingCommand, serialize_type: SerializeType, *, standard_json: bool = False
) -> bytes:
    """The whole frame of ``command`` in the codec given.

    Args:
        standard_json: write structured JSON bodies without fastjson's bare and object keys where the body
            type allows it (``wire.md`` 5.1); no effect on msgpack.

    Raises:
        FrameError: the frame or its header would exceed what peers accept, or the codec cannot hold it.
        BodyError: the structured body cannot be written.
    """
    header = HEADER_CODECS[serialize_type].encode_header(command)
    body = command.body
    if body is None:
        body = b""
    elif isinstance(body, msgspec.Struct):
        body = encode_body(body, serialize_type, standard_json=standard_json)
    length = _LENGTH_BYTES + len(header) + len(body)
    if length > MAX_FRAME_BYTES - _LENGTH_BYTES or len(header) > MAX_HEADER_BYTES:
        raise FrameError(f"frame of {length} bytes (header {len(header)}) exceeds the limit")
    return b"".join((_PREFIX.pack(length, serialize_type << 24 | len(header)), header, body))


class FrameDecoder:
    """Cuts a byte stream into commands; knows nothing of sockets.

    After bytes that are no frame, ``failure`` is set and further input is ignored: the commands decoded
    before the damage are still returned, then the connection has to be closed.
    """

    __slots__ = ("_chunks", "_have", "_max_frame", "_need", "failure")

    def __init__(self, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self._max_frame = max_frame_bytes
        self._chunks: list[bytes] = []
        self._have = 0
        self._need = 2 * _LENGTH_BYTES
        self.failure: FrameError | None = None

    @property
    def buffered(self) -> int:
        """Bytes of an incomplete frame held back."""
        return self._have

    def feed(self, data: bytes) -> list[RemotingCommand]:
        """The commands completed by ``data``, in order of arrival."""
        if self._chunks:
            self._chunks.append(data)
            self._have += len(data)
            # Joining only once enough has come keeps a large frame in small pieces linear.
            if self._have < self._need:
                return []
            data = b"".join(self._chunks)
            self._chunks.clear()
            self._have = 0
        if self.failure is not None:
            return []
        return self._split(data)

    def _split(self, data: bytes) -> list[RemotingCommand]:
        commands: list[RemotingCommand] = []
        position = 0
        end = len(data)
        self._need = 2 * _LENGTH_BYTES
        while end - position >= 2 * _LENGTH_BYTES:
            length, word = _PREFIX.unpack_from(data, position)
            header_length = word & _HEADER_LENGTH_MASK
            try:
                codec = self._checked_codec(length, word >> 24, header_length)
                frame_end = position + _LENGTH_BYTES + length
                if frame_end > end:
                    self._need = frame_end - position
                    break
                header_end = position + 8 + header_length
                command = codec.decode_header(data[position + 8 : header_end])
            except FrameError as error:
                self.failure = error
                return commands
            if header_end < frame_end:
                command.body = data[header_end:frame_end]
            commands.append(command)
            position = frame_end
        if position < end:
            self._chunks.append(data[position:])
            self._have = end - position
        return commands

    def _checked_codec(self, length: int, serialize_type: int, header_length: int) -> HeaderCodec:
        if length > self._max_frame - _LENGTH_BYTES:
            raise FrameError(f"frame of {length} bytes exceeds {self._max_frame}")
        if header_length > length - _LENGTH_BYTES or header_length > MAX_HEADER_BYTES:
            raise FrameError(f"header of {header_length} bytes in a frame of {length}")
        codec = HEADER_CODECS.get(serialize_type)
        if codec is None:
            raise FrameError(f"unknown serialize type {serialize_type}")
        return codec
