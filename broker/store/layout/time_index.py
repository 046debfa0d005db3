"""The files of a time index, which RewindMQ has and RocketMQ does not.

``timeindex/<topic>/<queueId>/<20 digits>``: positional like the consume queue. One number of 8 bytes,
big-endian, for each unit: the store timestamp in ms, 0 where none is known. A file has as many numbers as a
consume queue file has units, and is named after 8 * the queue offset of its first unit, so its bounds are
those of a consume queue file. Files of units that are gone, and of none, may be missing.

``timeindex/position``: one JSON object that says which part of the log the index was made from, written
last and durably, so that there is no index without it::

    {"begin": 0, "end": 4711, "last": 4400, "lastStoreTimestamp": 1700000000000}

``begin`` is the log position of the first record read. ``last`` is that of the last one, ``end`` the position
right behind it (not behind a blank record that may follow), ``lastStoreTimestamp`` its store timestamp. A
number counts only for a unit whose record begins in [begin, end). The members about the last record prove
that the log still is the one the index was made from: recovery may have cut it, and other messages have taken
the same positions and queue offsets. Where the proof fails, the position file is removed and the index with
it. Without any record ``begin`` and ``end`` are 0, ``last`` and ``lastStoreTimestamp`` -1.
"""

from __future__ import annotations

import struct
from typing import Final

import msgspec

FOLDER: Final = "timeindex"
POSITION_FILE: Final = "position"
TIME: Final = struct.Struct(">q")
TIME_BYTES: Final = 8
NOT_KNOWN: Final = 0


class TimeIndexPosition(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Content of ``timeindex/position``; log positions in bytes, the time in ms."""

    begin: int
    end: int
    last: int
    last_store_timestamp: int

    def to_json(self) -> bytes:
        """The file's content."""
        return msgspec.json.encode(self)


def file_bytes(units_per_file: int) -> int:
    """Size of a file, given the units of a consume queue file."""
    return units_per_file * TIME_BYTES
