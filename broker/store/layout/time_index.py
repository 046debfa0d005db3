"""The files of a time index, which only RewindMQ has.

``timeindex/<topic>/<queueId>/<20 digits>``: positional like the consume queue. Each entry of the queue has
one big-endian number of 8 bytes: the store timestamp in ms, 0 if unknown. A file has as many numbers as a
consume queue file has entries, and its name is 8 * the queue offset of its first entry. Its bounds are
therefore those of a consume queue file. Files without a known entry may be missing.

``timeindex/position``: one JSON object that describes the part of the log from which the index was made. It
is written last and durably; without this file there is no index::

    {"begin": 0, "end": 4711, "last": 4400, "lastStoreTimestamp": 1700000000000}

``begin`` is the log position of the first record read, and ``last`` that of the last. ``end`` is the position
right behind the last record (not behind a blank record that may follow), and ``lastStoreTimestamp`` its store
timestamp. An index number is valid only for an entry whose record begins in [begin, end). The broker compares
``last`` and ``lastStoreTimestamp`` with its log: if recovery has cut the log since, other messages may now
have the same positions and queue offsets. If the values do not match, the broker removes the position file
and ignores the index. Without any record, ``begin`` and ``end`` are 0, ``last`` and ``lastStoreTimestamp``
are -1.
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
        """Return the file's content."""
        return msgspec.json.encode(self)


def file_bytes(entries_per_file: int) -> int:
    """Return the size of a file in bytes, given the number of entries of a consume queue file."""
    return entries_per_file * TIME_BYTES
