"""Consume queues and log of a snapshot, for searches by time; read through ``Files``.

Reads ConsumeQueue entries one at a time: for searches and bounds, not for scans.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from rewindmq.pipeline.snapshot.snapshot import (
    CQ_ENTRY_BYTES,
    PRE_BLANK_SIZE,
    PositionedFile,
    QueueFiles,
    StoreSnapshot,
)
from rewindmq.protocol.message.record import STORE_TIMESTAMP_AT_V4, STORE_TIMESTAMP_AT_V6, SYS_FLAG_AT
from rewindmq.protocol.message.sysflag import MessageSysFlag

_ENTRY: Final = struct.Struct(">qiq")
_INT64: Final = struct.Struct(">q")
_UNREADABLE: Final = -1


class QueueFileList(NamedTuple):
    """The files of a queue that have entries."""

    files: tuple[PositionedFile, ...]


class QueueView:
    """One consume queue of a snapshot (a ``SearchedQueue``).

    Attributes:
        files: the files that have entries.
        first_offset: offset of the first entry whose file exists.
        min_offset: offset of the first message whose record is retained; max_offset if there is none.
        max_offset: one past the offset of the last message that lies before the snapshot's end.
    """

    def __init__(self, snapshot: StoreSnapshot, queue: QueueFiles) -> None:
        self.topic = queue.topic
        self.queue_id = queue.queue_id
        self._source = snapshot.files
        self._log_end = snapshot.end
        self.files = QueueFileList(queue.files)
        self.first_offset = queue.files[0].base // CQ_ENTRY_BYTES if queue.files else 0
        self.max_offset = self._end()
        used = tuple(file for file in queue.files if file.base < self.max_offset * CQ_ENTRY_BYTES)
        self.files = QueueFileList(used)
        self.min_offset = self._first_kept(snapshot.begin)

    def entry(self, index: int) -> tuple[int, int, int] | None:
        """Return log position, size and tagsCode; None outside [min_offset, max_offset)."""
        return self._entry(index) if self.min_offset <= index < self.max_offset else None

    @property
    def life_begin(self) -> int:
        """Log position of the message at queue offset 0; 0 if it is not known."""
        entry = self._entry(0) if self.first_offset == 0 < self.max_offset else None
        return 0 if entry is None or entry[1] == PRE_BLANK_SIZE else entry[0]

    def _entry(self, index: int) -> tuple[int, int, int] | None:
        position = index * CQ_ENTRY_BYTES
        for file in reversed(self.files.files):
            if file.base <= position:
                data = self._source.read(file.path, position - file.base, CQ_ENTRY_BYTES)
                return _ENTRY.unpack(data) if len(data) == CQ_ENTRY_BYTES else None
        return None

    def _end(self) -> int:
        for file in reversed(self.files.files):
            first = file.base // CQ_ENTRY_BYTES
            if self._is_within_log(first):
                return self._bisect(first, first + file.size // CQ_ENTRY_BYTES)
        return self.first_offset

    def _bisect(self, low: int, high: int) -> int:
        """Return the first offset of [low, high) without an entry within the log, else ``high``."""
        while low < high:
            middle = (low + high) // 2
            if self._is_within_log(middle):
                low = middle + 1
            else:
                high = middle
        return low

    def _is_within_log(self, index: int) -> bool:
        entry = self._entry(index)
        if entry is None or entry[0] < 0 or entry[1] <= 0:
            return False
        return entry[1] == PRE_BLANK_SIZE or entry[0] + entry[1] <= self._log_end

    def _first_kept(self, log_begin: int) -> int:
        low, high = self.first_offset, self.max_offset
        while low < high:
            middle = (low + high) // 2
            entry = self._entry(middle)
            if entry is None or entry[1] == PRE_BLANK_SIZE or entry[0] < log_begin:
                low = middle + 1
            else:
                high = middle
        return low


class LogView:
    """The commit log of a snapshot (a ``SearchedLog``)."""

    def __init__(self, snapshot: StoreSnapshot) -> None:
        self._snapshot = snapshot

    @property
    def min_offset(self) -> int:
        """Position of the first retained byte."""
        return self._snapshot.begin

    def store_time(self, offset: int) -> int:
        """Return the store timestamp of the record at ``offset``, ms; -1 for a position outside the log."""
        segment = self._snapshot.segment_of(offset)
        if segment is None:
            return _UNREADABLE
        length = STORE_TIMESTAMP_AT_V6 + _INT64.size
        head = self._snapshot.files.read(segment.path, offset - segment.base, length)
        if len(head) < length or offset + length > segment.end:
            return _UNREADABLE
        is_v6 = head[SYS_FLAG_AT + 3] & MessageSysFlag.BORNHOST_V6
        at = STORE_TIMESTAMP_AT_V6 if is_v6 else STORE_TIMESTAMP_AT_V4
        return int(_INT64.unpack_from(head, at)[0])
