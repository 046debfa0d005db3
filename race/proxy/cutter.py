"""Cuts a byte stream into whole frames, without changing a byte."""

from __future__ import annotations

from typing import Final, NamedTuple

from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.frame import FrameDecoder
from rewindmq.protocol.limits import MAX_FRAME_BYTES

_LENGTH_BYTES: Final = 4


class Piece(NamedTuple):
    """Part of a stream: a frame with its decoded command, or bytes that do not decode (``command`` None)."""

    data: bytes
    command: RemotingCommand | None


class FrameCutter:
    """Cuts the bytes it is fed into pieces; the pieces joined are exactly these bytes.

    A frame that does not decode is a piece of its own; the cutter continues with the next frame. After an
    impossible frame length (TLS, another protocol, a frame beyond 16 MiB) it no longer looks for frames: each
    later chunk is one piece. It buffers at most one incomplete frame.
    """

    __slots__ = ("_chunks", "_have", "_is_unframed", "_need")

    def __init__(self) -> None:
        self._chunks: list[bytes] = []
        self._have = 0
        self._need = _LENGTH_BYTES
        self._is_unframed = False

    def feed(self, data: bytes) -> list[Piece]:
        """Return the pieces that ``data`` completes, in order."""
        if self._is_unframed:
            return [Piece(data, None)]
        self._chunks.append(data)
        self._have += len(data)
        # The chunks are joined once per frame, so a large frame in small chunks takes linear time.
        return self._cut(self.rest()) if self._have >= self._need else []

    def rest(self) -> bytes:
        """Return the bytes of an incomplete frame, and clear the buffer."""
        data = b"".join(self._chunks)
        self._chunks.clear()
        self._have = 0
        return data

    def _cut(self, data: bytes) -> list[Piece]:
        pieces: list[Piece] = []
        position = 0
        self._need = _LENGTH_BYTES
        while len(data) - position >= _LENGTH_BYTES:
            size = _LENGTH_BYTES + int.from_bytes(data[position : position + _LENGTH_BYTES], "big")
            if size > MAX_FRAME_BYTES:
                self._is_unframed = True
                pieces.append(Piece(data[position:], None))
                return pieces
            if position + size > len(data):
                self._need = size
                break
            frame = data[position : position + size]
            commands = FrameDecoder().feed(frame)
            pieces.append(Piece(frame, commands[0] if commands else None))
            position += size
        if position < len(data):
            self._chunks.append(data[position:])
            self._have = len(data) - position
        return pieces
