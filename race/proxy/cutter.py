"""Cuts a byte stream into whole frames without changing a byte of them."""

from __future__ import annotations

from typing import Final, NamedTuple

from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.frame import FrameDecoder
from rewindmq.protocol.limits import MAX_FRAME_BYTES

_LENGTH_BYTES: Final = 4


class Piece(NamedTuple):
    """Part of a stream: a frame and what it says, or bytes that say nothing (``command`` None)."""

    data: bytes
    command: RemotingCommand | None


class FrameCutter:
    """Fed with whatever arrived; gives pieces that joined are exactly what was fed.

    A frame that does not decode is a piece of its own, and the next one is read again. After a length that
    no frame can have (TLS, another protocol, a frame beyond 16 MiB) everything is passed on as it comes.
    At most one incomplete frame is kept.
    """

    __slots__ = ("_chunks", "_have", "_is_lost", "_need")

    def __init__(self) -> None:
        self._chunks: list[bytes] = []
        self._have = 0
        self._need = _LENGTH_BYTES
        self._is_lost = False

    def feed(self, data: bytes) -> list[Piece]:
        """The pieces completed by ``data``, in order."""
        if self._is_lost:
            return [Piece(data, None)]
        self._chunks.append(data)
        self._have += len(data)
        # Joining only once enough has come keeps a large frame in small pieces linear.
        return self._cut(self.rest()) if self._have >= self._need else []

    def rest(self) -> bytes:
        """What has come of an incomplete frame; it is not kept any longer."""
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
                self._is_lost = True
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
