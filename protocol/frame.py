"""Encodes frames, the length-prefixed units of every serialization type, and decodes a stream of them.

A frame is (docs/spec/protocol.md 1.1): 4-byte length of the rest, 1-byte serialization type, 3-byte header
length, header, body. All integers are big-endian.
"""

from __future__ import annotations

import struct
from typing import Final

import msgspec

from rewindmq.protocol.codec import HEADER_CODECS
from rewindmq.protocol.codec.body import encode_body
from rewindmq.protocol.codec.foreign import foreign_protocol
from rewindmq.protocol.command import FLAG_RESPONSE, RemotingCommand, SerializeType
from rewindmq.protocol.errors import ForeignProtocolError, FrameError
from rewindmq.protocol.limits import MAX_FRAME_BYTES, MAX_HEADER_BYTES

_PREFIX: Final = struct.Struct(">II")
_LENGTH: Final = struct.Struct(">I")
_PACK_PREFIX: Final = _PREFIX.pack
_MSGPACK_WORD: Final = SerializeType.MSGPACK << 24
_MAX_UINT16: Final = 0xFFFF
_UINT32: Final = 0xCE
_UINT32_BYTES: Final = 5
_UNPACK_PREFIX: Final = _PREFIX.unpack_from
PREFIX_BYTES: Final = _PREFIX.size
_LENGTH_BYTES: Final = 4
_MAX_LENGTH: Final = MAX_FRAME_BYTES - _LENGTH_BYTES
_HEADER_LENGTH_MASK: Final = 0xFFFFFF
# A short piece takes much more memory than its bytes, so this many pieces become one.
_MAX_PIECES: Final = 256
# The largest frame that ``completed_by`` joins: a copy of it costs little.
_MAX_JOINED_BYTES: Final = 65_536
_ENCODE_HEADER: Final = {kind: codec.encode_header for kind, codec in HEADER_CODECS.items()}
_DECODE_HEADER: Final = {kind: codec.decode_header for kind, codec in HEADER_CODECS.items()}


def encode_frame(
    command: RemotingCommand, serialize_type: SerializeType, *, standard_json: bool = False
) -> bytes:
    """Return the whole frame of ``command`` in the given serialization type.

    Args:
        standard_json: write a structured JSON body as strict JSON, not with fastjson's bare and object keys,
            if its type allows that (docs/spec/protocol.md 5.1); no effect on msgpack.

    Raises:
        FrameError: the frame, or a request's header, exceeds the peers' limit, or the serialization type
            cannot hold it.
        BodyError: the structured body cannot be written.
    """
    header = _ENCODE_HEADER[serialize_type](command)
    body = command.body
    if body is None:
        body = b""
    elif isinstance(body, msgspec.Struct):
        body = encode_body(body, serialize_type, standard_json=standard_json)
    header_length = len(header)
    length = _LENGTH_BYTES + header_length + len(body)
    if length > _MAX_LENGTH or (header_length > MAX_HEADER_BYTES and not command.flag & FLAG_RESPONSE):
        raise FrameError(f"frame of {length} bytes (header {header_length}) exceeds the limit")
    return b"".join((_PACK_PREFIX(length, serialize_type << 24 | header_length), header, body))


def frame_end(data: bytes, position: int) -> int:
    """Return the position behind the frame at ``position``; the end of ``data`` if it is cut or invalid."""
    end = len(data)
    if end - position < PREFIX_BYTES:
        return end
    (length,) = _LENGTH.unpack_from(data, position)
    return min(end, position + _LENGTH_BYTES + length) if length >= _LENGTH_BYTES else end


class FrameStart:
    """The first bytes of msgpack frames that differ in their opaque and their lengths.

    Args:
        header: the header before the opaque.
    """

    __slots__ = ("_header", "_header_bytes", "_pack")

    def __init__(self, header: bytes) -> None:
        self._header = header
        self._header_bytes = len(header) + _UINT32_BYTES
        self._pack = struct.Struct(f">II{len(header)}sBI").pack

    def encode(self, opaque: int, rest_bytes: int, body_bytes: int) -> bytes:
        """Return the frame up to the opaque, which must be positive.

        Args:
            rest_bytes: length of the header behind the opaque.
            body_bytes: length of the body. With it, the frame must be within the limits.
        """
        header_bytes = self._header_bytes + rest_bytes
        if opaque > _MAX_UINT16:
            length = _LENGTH_BYTES + header_bytes + body_bytes
            return self._pack(length, _MSGPACK_WORD | header_bytes, self._header, _UINT32, opaque)
        number = msgspec.msgpack.encode(opaque)
        header_bytes += len(number) - _UINT32_BYTES
        prefix = _PACK_PREFIX(_LENGTH_BYTES + header_bytes + body_bytes, _MSGPACK_WORD | header_bytes)
        return prefix + self._header + number


class FrameDecoder:
    """Splits a byte stream into commands, independent of sockets.

    After invalid bytes, ``failure`` is set and further input is ignored. ``feed`` still returns the commands
    before them; the caller must then close the connection.

    Args:
        max_header_bytes: limit of a header; a server sets that of requests.

    Attributes:
        buffered: number of buffered bytes of an incomplete frame.
        failure: why the bytes are invalid; None while they are not.
    """

    __slots__ = ("_chunks", "_joined", "_max_frame", "_max_header", "_need", "buffered", "failure")

    def __init__(
        self, max_frame_bytes: int = MAX_FRAME_BYTES, max_header_bytes: int = MAX_FRAME_BYTES
    ) -> None:
        self._max_frame = max_frame_bytes
        self._max_header = max_header_bytes
        self._chunks: list[bytes] = []
        # The first chunks, each of which was joined from ``_MAX_PIECES`` pieces.
        self._joined = 0
        self._need = PREFIX_BYTES
        self.buffered = 0
        self.failure: FrameError | None = None

    def feed(self, data: bytes) -> list[RemotingCommand]:
        """Return the commands that ``data`` completes, in order of arrival."""
        if self._chunks:
            self._chunks.append(data)
            self.buffered += len(data)
            # Join a piece at most twice: the cost of a large frame in many small pieces stays linear.
            if self.buffered < self._need:
                if len(self._chunks) - self._joined >= _MAX_PIECES:
                    self._chunks[self._joined :] = [b"".join(self._chunks[self._joined :])]
                    self._joined += 1
                return []
            data = b"".join(self._chunks)
            self.discard()
        if self.failure is not None:
            return []
        return self._split(data)

    @property
    def missing(self) -> int:
        """Number of bytes that complete the buffered frame, or the first part of it that tells its length."""
        return self._need - self.buffered

    def completed_by(self, data: bytes) -> bytes | None:
        """Return the buffered frame with ``data`` behind it, if ``data`` is its rest; nothing changes.

        Returns:
            None for another ``data``, and for a large frame, which ``feed`` would join a second time.
        """
        need = self._need
        if not PREFIX_BYTES < need == self.buffered + len(data) or need > _MAX_JOINED_BYTES:
            return None
        return b"".join((*self._chunks, data))

    def discard(self) -> None:
        """Drop the bytes of an incomplete frame."""
        self._chunks.clear()
        self._joined = 0
        self.buffered = 0

    def _split(self, data: bytes) -> list[RemotingCommand]:
        commands: list[RemotingCommand] = []
        position = 0
        end = len(data)
        max_length, max_header = self._max_frame - _LENGTH_BYTES, self._max_header
        self._need = PREFIX_BYTES
        try:
            while end - position >= PREFIX_BYTES:
                length, word = _UNPACK_PREFIX(data, position)
                header_length = word & _HEADER_LENGTH_MASK
                decode_header = _DECODE_HEADER.get(word >> 24)
                if (
                    length > max_length
                    or header_length > length - _LENGTH_BYTES
                    or header_length > max_header
                    or decode_header is None
                ):
                    raise self._refusal(length, word >> 24, header_length)
                frame_end = position + _LENGTH_BYTES + length
                if frame_end > end:
                    self._need = frame_end - position
                    break
                header_start = position + PREFIX_BYTES
                header_end = header_start + header_length
                command = decode_header(data[header_start:header_end])
                if header_end < frame_end:
                    command.body = data[header_end:frame_end]
                commands.append(command)
                position = frame_end
            else:
                # The prefix is incomplete. Its length is checked at once, as in RocketMQ 4.9.7: after an
                # invalid length there is nothing to wait for.
                if end - position >= _LENGTH_BYTES:
                    (length,) = _LENGTH.unpack_from(data, position)
                    if not _LENGTH_BYTES <= length <= max_length:
                        raise self._refusal(length, 0, 0)
        except FrameError as error:
            # The traceback and the context would keep ``data`` and this decoder in memory, in a cycle.
            error.__context__ = None
            self.failure = error.with_traceback(None)
            return commands
        if position < end:
            self._chunks.append(data[position:])
            self.buffered = end - position
        return commands

    def _refusal(self, length: int, serialize_type: int, header_length: int) -> FrameError:
        foreign = foreign_protocol(length)
        if foreign is not None:
            return ForeignProtocolError(foreign)
        if length > self._max_frame - _LENGTH_BYTES:
            return FrameError(f"frame of {length} bytes exceeds {self._max_frame}")
        if header_length > length - _LENGTH_BYTES or header_length > self._max_header:
            return FrameError(f"header of {header_length} bytes in a frame of {length}")
        return FrameError(f"unknown serialize type {serialize_type}")
