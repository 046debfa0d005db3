"""The frames between a master and its slaves, on a port of their own.

RocketMQ 4.9.4 ``HAConnection`` and ``HAService``. A slave reports the end of its log, 8 bytes; its first
report says where it wants to be sent from. A master sends pieces of its log: position, 8 bytes, size, 4, then
the bytes; size 0 says that it is still there.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from rewindmq.protocol.errors import FrameError

_REPORT: Final = struct.Struct(">q")
_HEAD: Final = struct.Struct(">qi")
# RocketMQ's slave takes a piece into a buffer of this size, its head included.
MAX_TRANSFER_BYTES: Final = (4 << 20) - _HEAD.size


class Transfer(NamedTuple):
    """A piece of the master's log; without data a heartbeat."""

    position: int
    data: bytes


def encode_report(position: int) -> bytes:
    """What a slave has: everything before this log position."""
    return _REPORT.pack(position)


def encode_transfer(position: int, data: bytes) -> bytes:
    """A piece of the log, at most ``MAX_TRANSFER_BYTES``."""
    return _HEAD.pack(position, len(data)) + data


class ReportDecoder:
    """Reports out of a stream."""

    def __init__(self) -> None:
        self._rest = b""

    def receive(self, data: bytes) -> int | None:
        """The newest report that is complete, None when none is; older ones mean nothing any more.

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
            raise FrameError(f"a slave cannot have a log up to {position}")
        return int(position)


class TransferDecoder:
    """Transfers out of a stream; holds at most one that is not complete."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def receive(self, data: bytes) -> list[Transfer]:
        """The transfers that are complete now.

        Raises:
            FrameError: a position or size that cannot be.
        """
        self._buffer += data
        buffer, at = self._buffer, 0
        transfers: list[Transfer] = []
        while len(buffer) - at >= _HEAD.size:
            position, size = _HEAD.unpack_from(buffer, at)
            if position < 0 or not 0 <= size <= MAX_TRANSFER_BYTES:
                raise FrameError(f"no transfer of a master: position {position}, size {size}")
            end = at + _HEAD.size + size
            if len(buffer) < end:
                break
            transfers.append(Transfer(position, bytes(buffer[at + _HEAD.size : end])))
            at = end
        del buffer[:at]
        return transfers
