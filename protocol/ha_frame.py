"""The frames between a master and its slaves, which use a separate port.

RocketMQ 4.9.4 ``HAConnection`` and ``HAService``. A slave reports the end of its log (8 bytes); its first
report names the position to start from. A master sends pieces of its log: position (8 bytes), size (4 bytes)
and data. Size 0 is a heartbeat.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from rewindmq.protocol.errors import FrameError

_REPORT: Final = struct.Struct(">q")
_HEAD: Final = struct.Struct(">qi")
# RocketMQ's slave reads a piece, including its header, into a buffer of this size.
MAX_TRANSFER_BYTES: Final = (4 << 20) - _HEAD.size


class Transfer(NamedTuple):
    """A piece of the master's log; a heartbeat if it has no data."""

    position: int
    data: bytes


def encode_report(position: int) -> bytes:
    """Return the report of a slave that has the log up to ``position``."""
    return _REPORT.pack(position)


def encode_transfer(position: int, data: bytes) -> bytes:
    """Return the frame of a piece of the log, at most ``MAX_TRANSFER_BYTES``."""
    return _HEAD.pack(position, len(data)) + data


class ReportDecoder:
    """Decodes slave reports from a stream."""

    def __init__(self) -> None:
        self._rest = b""

    def receive(self, data: bytes) -> int | None:
        """Return the newest complete report, or None; a newer report replaces older ones.

        Raises:
            FrameError: a negative position.
        """
        data = self._rest + data
        end = len(data) - len(data) % _REPORT.size
        self._rest = data[end:]
        if not end:
            return None
        (position,) = _REPORT.unpack_from(data, end - _REPORT.size)
        if position < 0:
            raise FrameError(f"invalid slave report: position {position}")
        return int(position)


class TransferDecoder:
    """Decodes transfers from a stream; buffers at most one incomplete transfer."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def receive(self, data: bytes) -> list[Transfer]:
        """Return the transfers that ``data`` completes.

        Raises:
            FrameError: an invalid position or size.
        """
        self._buffer += data
        buffer, at = self._buffer, 0
        transfers: list[Transfer] = []
        while len(buffer) - at >= _HEAD.size:
            position, size = _HEAD.unpack_from(buffer, at)
            if position < 0 or not 0 <= size <= MAX_TRANSFER_BYTES:
                raise FrameError(f"invalid transfer from a master: position {position}, size {size}")
            end = at + _HEAD.size + size
            if len(buffer) < end:
                break
            transfers.append(Transfer(position, bytes(buffer[at + _HEAD.size : end])))
            at = end
        del buffer[:at]
        return transfers
